"""A line across the page that says what is wrong, and what can be done."""

from __future__ import annotations

import re
from collections.abc import Callable

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QApplication, QFrame, QHBoxLayout, QLabel, QPushButton

from ui.language import tr
from ui.theme.colours import Dressed, colours
from ui.theme.icons import pixmap
from ui.theme.layouts import fill
from ui.theme.tokens import Space
from ui.widgets.flow_layout import FoldingRow
from ui.widgets.icon_button import IconButton
from ui.widgets.page_layout import announce, plain_label, style_as


class Banner(Dressed, QFrame):
    """Hidden until there is something to say. ``tone`` is plain, warning or danger."""

    left = Signal()  # it went away with the keyboard in it

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("banner")
        self._tone = "plain"
        self._by: object = None
        self._say_again: Callable[[], None] | None = None  # what is to be read until it is closed
        self._stays_by: object = None
        self._is_staying = False  # it says that just now
        self._icon, self._text = QLabel(), plain_label(tone="", can_select=True)
        self.action = QPushButton()
        self._act: Callable[[], object] = lambda: None
        self.action.clicked.connect(self._on_action)
        self.close_button = IconButton("close", tr("Dismiss"), size=16)
        self.close_button.clicked.connect(self.hide)
        row = fill(QHBoxLayout(self), spacing=Space.M, margins=(Space.L, Space.S, Space.S, Space.S))
        fill(row, self._icon, (FoldingRow(self._text, self.action, Space.M), 1), self.close_button)
        self.hide()

    @property
    def text(self) -> str:
        """What it says; empty while hidden."""
        return self._text.text() if not self.isHidden() else ""

    def say(
        self,
        text: str,
        tone: str = "warning",
        action: tuple[str, Callable[[], object]] | None = None,
        can_close: bool = True,
        by: object = None,
        stays: bool = False,
    ) -> None:
        """Show ``text``, with a button where there is something to do; ``by`` is who may take it back.

        What ``stays`` comes back when others, who had something to say meanwhile, have no more to say.
        """
        if stays:
            self._say_again = lambda: self.say(text, tone, action, can_close, by, stays=True)
            self._stays_by = by
        elif self._stays_by is by:
            self._say_again = self._stays_by = None
        self._is_staying = stays
        # Of words in which only a number has changed nothing is to be said again.
        is_new = self.isHidden() or _without_numbers(text) != _without_numbers(self._text.text())
        self._tone, self._by = tone, by
        style_as(self, "tone", tone)
        self._text.setText(text)
        self.action.setVisible(action is not None)
        if action is not None:
            self.action.setText(action[0])
            self._act = action[1]
        self.close_button.setVisible(can_close)
        self.dress()
        self.show()
        if is_new:
            announce(self, text)

    def says_of(self, by: object) -> bool:
        """Return whether it still says what this one had to say: others may have had something to say meanwhile."""
        return self._by is by and not self.isHidden()

    def take_back(self, by: object) -> None:
        """Go away where it still says what this one had to say."""
        if self._stays_by is by:
            self._say_again = self._stays_by = None
        if self.says_of(by):
            self.hide()

    def hide(self) -> None:
        """Go away, or say again what was to stay."""
        say_again = self._say_again
        if say_again is not None and not self._is_staying:
            say_again()
            return
        self._say_again = self._stays_by = None
        now = QApplication.focusWidget()
        had_keyboard = now is not None and self.isAncestorOf(now)
        super().hide()
        if had_keyboard:
            self.left.emit()

    def _on_action(self) -> None:
        self._act()

    def dress(self) -> None:
        """Draw the icon."""
        name, colour = ("stream", "accent") if self._tone == "plain" else ("alert", self._tone)
        self._icon.setPixmap(pixmap(name, getattr(colours(), colour), 18, self.devicePixelRatioF()))


def _without_numbers(text: str) -> str:
    return re.sub(r"\d", "", text)
