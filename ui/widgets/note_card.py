"""A note with something to do, set apart from what is around it."""

from __future__ import annotations

from PySide6.QtWidgets import QFrame, QPushButton, QVBoxLayout

from ui.theme.tokens import Space
from ui.widgets.flow_layout import FlowLayout
from ui.widgets.page_layout import announce, plain_label

CALM, WARNING = "calmNote", "warningNote"


class NoteCard(QFrame):
    """Words above a button, or two: ``more`` is hidden. ``kind`` is CALM or WARNING. Hidden with nothing to say."""

    def __init__(self, kind: str, button: str = "") -> None:
        super().__init__()
        self.setObjectName(kind)
        self.words, self.button = plain_label(tone="", can_select=True), QPushButton(button)
        self.more = QPushButton()
        column = QVBoxLayout(self)
        column.setContentsMargins(Space.M, Space.S + 2, Space.M, Space.S + 2)
        column.setSpacing(Space.S)
        column.addWidget(self.words)
        buttons = FlowLayout(spacing=Space.S)
        buttons.addWidget(self.more)
        buttons.addWidget(self.button)
        column.addLayout(buttons)
        self.more.hide()
        if not button:
            self.button.hide()
        self.hide()

    def say(self, words: str, kind: str = "") -> None:
        """Show these words, or nothing where there are none; ``kind`` is another one from now on."""
        if kind and kind != self.objectName():
            self.setObjectName(kind)
            self.style().polish(self)
        is_new = self.isHidden()
        self.words.setText(words)
        self.setVisible(bool(words))
        if is_new:
            announce(self, words)
