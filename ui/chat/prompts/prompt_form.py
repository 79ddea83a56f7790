"""Asks for the values of a prompt's variables."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QFrame, QHBoxLayout, QLabel, QPushButton, QScrollArea, QVBoxLayout, QWidget

from ui.chat.prompts.variables import filled, variables_of
from ui.client.chat_records import Prompt
from ui.language import tr
from ui.theme.text_size import scaled
from ui.theme.tokens import Space
from ui.widgets.growing_edit import GrowingEdit

WIDTH = 460
MOST_LINES = 6  # of one value


class PromptForm(QDialog):
    """A field for each variable; Enter in a field goes on, and in the last one takes them."""

    filled = Signal(str)  # the text with all values

    def __init__(self, prompt: Prompt, parent: QWidget) -> None:
        super().__init__(parent)
        self._prompt = prompt
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(prompt.name)
        title = QLabel(prompt.name)
        title.setProperty("tone", "title")
        title.setTextFormat(Qt.TextFormat.PlainText)
        title.setWordWrap(True)
        self.fields: dict[str, GrowingEdit] = {}
        body = QWidget()
        body.setObjectName("dialogForm")
        form = QVBoxLayout(body)
        form.setContentsMargins(0, 0, Space.S, 0)
        form.setSpacing(Space.XS)
        for name in variables_of(prompt.text):
            label, field = QLabel(name), GrowingEdit(lambda text: self._on_enter(), MOST_LINES)
            label.setTextFormat(Qt.TextFormat.PlainText)
            field.setProperty("kind", "field")
            field.setAccessibleName(name)
            self.fields[name] = field
            form.addWidget(label)
            form.addWidget(field)
            form.addSpacing(Space.S)
        form.addStretch()
        area = QScrollArea()
        area.setObjectName("dialogArea")
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setWidget(body)
        self.ok, cancel = QPushButton(tr("Insert")), QPushButton(tr("Cancel"))
        self.ok.setProperty("kind", "primary")
        self.ok.setDefault(True)
        cancel.setAutoDefault(False)
        self.ok.clicked.connect(self._on_ok)
        cancel.clicked.connect(self.reject)
        foot = QHBoxLayout()
        foot.addStretch()
        foot.addWidget(cancel)
        foot.addWidget(self.ok)
        column = QVBoxLayout(self)
        column.setContentsMargins(Space.XL, Space.L, Space.L, Space.L)
        column.setSpacing(Space.M)
        column.addWidget(title)
        column.addWidget(area, 1)
        column.addLayout(foot)
        height = scaled(150 + 62 * len(self.fields))
        self.resize(min(scaled(WIDTH), parent.width() - 2 * Space.L), min(height, parent.height() - 2 * Space.L))
        next(iter(self.fields.values())).setFocus()

    def _on_enter(self) -> None:
        fields = list(self.fields.values())
        now = self.focusWidget()
        at = next((place for place, field in enumerate(fields) if field is now), len(fields) - 1)
        if at + 1 < len(fields):
            fields[at + 1].setFocus()
        else:
            self._on_ok()

    def _on_ok(self) -> None:
        values = {name: field.toPlainText() for name, field in self.fields.items()}
        self.filled.emit(filled(self._prompt.text, values))
        self.accept()
