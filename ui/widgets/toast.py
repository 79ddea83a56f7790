"""A short notice over the page, with one thing to do, that leaves by itself."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QTimer
from PySide6.QtGui import QEnterEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QWidget

from ui.theme.layouts import fill
from ui.theme.tokens import Space
from ui.widgets.page_layout import announce, plain_label

SHOWN_MS = 8_000


class Toast(QFrame):
    """Floats near the bottom of its parent."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._page = parent
        self.setObjectName("toast")
        self._text, self.button = plain_label(tone=""), QPushButton()
        self._act: Callable[[], object] = lambda: None
        self.button.clicked.connect(self._on_button)
        self._row = fill(QHBoxLayout(self), spacing=Space.M, margins=(Space.L, Space.S, Space.S, Space.S))
        fill(self._row, self._text, self.button)
        self._timer = QTimer(self, singleShot=True, interval=SHOWN_MS)
        self._timer.timeout.connect(self._on_over)
        parent.installEventFilter(self)
        self.hide()

    @property
    def text(self) -> str:
        """What it says; empty while hidden."""
        return self._text.text() if not self.isHidden() else ""

    def say(self, text: str, action: str, act: Callable[[], object]) -> None:
        """Show ``text`` for some seconds, with a button."""
        self.button.setText(action)
        self._act = act
        self.button.show()
        self._float(text)

    def tell(self, text: str) -> None:
        """Show ``text`` for some seconds."""
        self.button.hide()
        self._float(text)

    def _float(self, text: str) -> None:
        self._text.setText(text)
        self.show()
        self._place()
        self.raise_()
        self._timer.start()
        announce(self, text)

    def enterEvent(self, event: QEnterEvent) -> None:
        """Stay while the mouse is on it."""
        self._timer.stop()

    def leaveEvent(self, event: QEvent) -> None:
        """Go on towards the end."""
        self._timer.start()

    def _on_over(self) -> None:
        if self.button.hasFocus():
            self._timer.start()
        else:
            self.hide()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Stay in place when the parent changes its size."""
        if event.type() == QEvent.Type.Resize and self.isVisible():
            self._place()
        return super().eventFilter(watched, event)

    def _place(self) -> None:
        room = self._page.width() - 2 * Space.L
        self._text.setWordWrap(False)
        self.adjustSize()
        if self.width() > room:  # a name from outside can be long
            self._text.setWordWrap(True)
            self.resize(room, self._row.totalHeightForWidth(room))
        self.move((self._page.width() - self.width()) // 2, self._page.height() - self.height() - Space.L)

    def _on_button(self) -> None:
        self.hide()
        self._act()
