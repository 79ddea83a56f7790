"""Small buttons: an icon or a word, always with a name for those who do not see it."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QPushButton, QToolButton, QWidget

from ui.theme.colours import Dressed, colours
from ui.theme.icons import set_icon
from ui.theme.text_size import scaled
from ui.theme.tokens import AROUND_ICON, ICON
from ui.widgets.page_layout import announce

SAY_MS = 1_400


class IconButton(Dressed, QToolButton):
    """A flat button with an icon; its colour is a name in the palette."""

    def __init__(self, icon_name: str, name: str, parent: QWidget | None = None, size: int = ICON) -> None:
        super().__init__(parent)
        self._icon_name, self._colour, self._size = icon_name, "muted", size
        self.setAccessibleName(name)
        self.setToolTip(name)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self._back = QTimer(self, singleShot=True, interval=SAY_MS)
        self._back.timeout.connect(self.dress)
        self.dress()

    def show_as(self, icon_name: str, name: str, colour: str = "muted") -> None:
        """Become another button."""
        self._icon_name, self._colour = icon_name, colour
        self.setAccessibleName(name)
        self.setToolTip(name)
        self.dress()

    def say_done(self, words: str) -> None:
        """Show for a moment that it worked; ``words`` say so to those who do not see it."""
        announce(self, words)
        set_icon(self, "check", colours().accent, size=self._size)
        self._back.start()

    def dress(self) -> None:
        """Draw the icon."""
        set_icon(self, self._icon_name, getattr(colours(), self._colour), colours().disabled, self._size)
        side = scaled(self._size) + AROUND_ICON
        self.setFixedSize(side, side)


class TextButton(QPushButton):
    """A flat button with a word on it."""

    def __init__(self, text: str, name: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self._text = text
        self.setProperty("kind", "flat")
        self.setAccessibleName(name or text)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self._back = QTimer(self, singleShot=True, interval=SAY_MS)
        self._back.timeout.connect(lambda: self._put(self._text))

    def say(self, text: str) -> None:
        """Show another word for a moment."""
        announce(self, text)
        self._put(text)
        self._back.start()

    def _put(self, text: str) -> None:
        before = self.geometry()
        self.setText(text)
        self.adjustSize()
        # Its end stays where it was.
        self.move(before.left() if self.isRightToLeft() else before.right() - self.width() + 1, self.y())
