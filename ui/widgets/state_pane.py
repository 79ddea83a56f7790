"""What is shown in place of a list: that it is on its way, that it is empty, or what went wrong and what helps."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QHBoxLayout, QLabel, QProgressBar, QPushButton, QVBoxLayout, QWidget

from ui.language import tr
from ui.theme.colours import Dressed, colours
from ui.theme.icons import pixmap
from ui.theme.layouts import STRETCH, fill
from ui.theme.tokens import Space
from ui.widgets.page_layout import announce, leave_keyboard, plain_label

WIDTH = 440
ICON = 36


class StatePane(Dressed, QWidget):
    """An icon, a title, a sentence and at most one thing to do."""

    def __init__(self) -> None:
        super().__init__()
        self._icon_name, self._colour = "stream", "muted"
        self._act: Callable[[], object] = lambda: None
        self._icon, self.title, self.text = QLabel(), plain_label(tone="title"), plain_label(can_select=True)
        self.bar = QProgressBar()
        self.bar.setAccessibleName(tr("In progress"))
        self.bar.setRange(0, 0)
        self.bar.setTextVisible(False)
        self.bar.setFixedWidth(120)
        self.button = QPushButton()
        self.button.clicked.connect(self._on_button)
        middle = QWidget()
        middle.setMaximumWidth(WIDTH)
        words = fill(QVBoxLayout(middle), spacing=Space.S, margins=0)
        for label in (self._icon, self.title, self.text):
            label.setAlignment(Qt.AlignmentFlag.AlignHCenter)
            words.addWidget(label)
        row = fill(QHBoxLayout(), (STRETCH, 1), (middle, 100), (STRETCH, 1))
        column = fill(QVBoxLayout(self), (STRETCH, 2), row, margins=Space.XL)
        column.addSpacing(Space.L)
        column.addWidget(self.bar, 0, Qt.AlignmentFlag.AlignHCenter)
        column.addWidget(self.button, 0, Qt.AlignmentFlag.AlignHCenter)
        column.addStretch(3)
        self.button.hide()
        self.bar.hide()

    def say(
        self, icon: str, title: str, text: str, action: tuple[str, Callable[[], object]] | None = None,
        colour: str = "muted",
    ) -> None:  # fmt: skip
        """Show words, with a button where there is something to do."""
        is_new = (title, text) != (self.title.text(), self.text.text())
        self._icon_name, self._colour = icon, colour
        self.title.setText(title)
        self.text.setText(text)
        self.text.setVisible(bool(text))
        if action is None and self.button.hasFocus():  # it goes away
            leave_keyboard(self)
        self.button.setVisible(action is not None)
        if action is not None:
            self.button.setText(action[0])
            self._act = action[1]
        self.bar.hide()
        self.dress()
        if is_new:  # who shows it turns to it behind this
            QTimer.singleShot(0, self, lambda: announce(self, f"{title}. {text}" if text else ""))

    def say_loading(self, title: str) -> None:
        """Show that something is on its way."""
        self.say("stream", title, "")
        self.bar.setAccessibleName(title)
        self.bar.show()

    def _on_button(self) -> None:
        self._act()

    def dress(self) -> None:
        """Draw the icon."""
        colour = getattr(colours(), self._colour)
        self._icon.setPixmap(pixmap(self._icon_name, colour, ICON, self.devicePixelRatioF()))
