"""A message while it is edited."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPlainTextEdit, QPushButton, QVBoxLayout

from ui.language import tr
from ui.theme.layouts import STRETCH, fill
from ui.theme.tokens import Space
from ui.widgets.growing_edit import GrowingEdit


class MessageEditor(QFrame):
    """The text as a field; ``action`` is the word on the button that takes it."""

    sent = Signal(str)
    left = Signal()

    def __init__(self, text: str, name: str, action: str) -> None:
        super().__init__()
        self.setObjectName("editCard")
        self.field: QPlainTextEdit = GrowingEdit(self.sent.emit, max_lines=16)
        self.field.setPlainText(text)
        self.field.setAccessibleName(name)
        self.field.moveCursor(self.field.textCursor().MoveOperation.End)
        leave = QPushButton(tr("Cancel"))
        leave.clicked.connect(self.left)
        send = QPushButton(action)
        send.setProperty("kind", "primary")
        send.clicked.connect(lambda: self.sent.emit(self.field.toPlainText()))
        row = fill(QHBoxLayout(), STRETCH, leave, send)
        fill(QVBoxLayout(self), self.field, row, margins=(Space.M, Space.S, Space.M, Space.M))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape leaves the message as it is."""
        if event.key() == Qt.Key.Key_Escape:
            self.left.emit()
        else:
            super().keyPressEvent(event)
