"""A list and what was chosen of it: side by side where there is room, else one at a time."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QApplication, QFrame, QHBoxLayout, QVBoxLayout, QWidget

from ui.theme.colours import Dressed
from ui.theme.layouts import STRETCH, fill
from ui.theme.text_size import scaled
from ui.theme.tokens import Space
from ui.widgets.icon_button import TextButton

LEAST_LIST = 440
LEAST_DETAILS = 380  # at the usual size of text: they have the longer words


class TwoPanes(Dressed, QWidget):
    """Holds a list and its details. In a narrow window the details cover the list until ``back``.

    The keyboard goes to what is shown: to the list, or to the way back.
    """

    left = Signal()  # the details were left by the button

    def __init__(self, listed: QWidget, details: QWidget, back: str) -> None:
        super().__init__()
        self._listed, self._is_narrow, self._shows_details = listed, False, False
        self.back_button = TextButton(f"‹  {back}", back)
        self.back_button.clicked.connect(self.uncover)
        self.side = QFrame()
        self.side.setObjectName("detailsSide")
        self.line = QFrame()
        self.line.setObjectName("paneLine")
        self.line.setFixedWidth(1)
        column = fill(QVBoxLayout(self.side), spacing=0, margins=0)
        head = fill(QHBoxLayout(), self.back_button, STRETCH, margins=(Space.S, Space.XS, 0, 0))
        column.addLayout(head)
        column.addWidget(details, 1)
        fill(QHBoxLayout(self), (listed, 1), self.line, self.side, spacing=0, margins=0)
        self._show()

    def show_details(self, is_shown: bool, by_hand: bool = False) -> None:
        """Show or hide the details.

        Where they would cover the list, only what was opened ``by_hand`` does: arrow keys go on through the list.
        """
        if is_shown and self._is_narrow and not by_hand and not self._shows_details:
            return
        self._shows_details = is_shown
        self._show()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Share the width, or take turns."""
        super().resizeEvent(event)
        self.dress()

    def dress(self) -> None:
        """Give the details the room that the text in use needs."""
        least = scaled(LEAST_DETAILS)
        self._is_narrow = self.width() < LEAST_LIST + least
        if not self._is_narrow:
            self.side.setFixedWidth(max(least, round(self.width() * 0.42)))
        else:
            self.side.setMinimumWidth(0)
            self.side.setMaximumWidth(16_777_215)
        self._show()

    def uncover(self) -> None:
        """Go back to the list where the details cover it."""
        if self._listed.isHidden():
            self.show_details(False)
            self.left.emit()
            self._listed.setFocus()

    def _show(self) -> None:
        covers = self._is_narrow and self._shows_details
        now = QApplication.focusWidget()
        had_keyboard = covers and now is not None and self._listed.isAncestorOf(now)
        self.side.setVisible(self._shows_details)
        # Beside no list it would double the line of the rail.
        self.line.setVisible(self._shows_details and not self._is_narrow)
        self.setFocusProxy(self.back_button if covers else self._listed)
        if covers:
            self.back_button.show()
        # What goes away gives the keyboard to what comes: Qt would give it to what comes first in the window.
        if had_keyboard:
            self.back_button.setFocus()
        self._listed.setVisible(not covers)
        if not self._is_narrow and self.back_button.hasFocus():
            self._listed.setFocus()
        self.back_button.setVisible(self._is_narrow)
