"""Asks for the values of a prompt's variables."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from ui.chat.prompts.variables import filled, variables_of
from ui.client.chat_records import Prompt
from ui.language import tr
from ui.theme.layouts import STRETCH, fill
from ui.theme.tokens import Space
from ui.widgets.dialogs import Dialog, primary
from ui.widgets.elided_label import ElidedLabel, in_tip
from ui.widgets.growing_edit import GrowingEdit
from ui.widgets.page_layout import ScrollColumn, plain_label

WIDTH, HEIGHT, FIELD_HEIGHT = 460, 150, 62
MOST_LINES = 6  # of one value


class PromptForm(Dialog):
    """A field for each variable; Enter in a field goes on, and in the last one takes them."""

    filled = Signal(str)  # the text with all values

    def __init__(self, prompt: Prompt, parent: QWidget) -> None:
        names = variables_of(prompt.text)
        super().__init__(prompt.name, (WIDTH, HEIGHT + FIELD_HEIGHT * len(names)), parent)
        self._prompt = prompt
        self.fields: dict[str, GrowingEdit] = {}
        body = QWidget()
        form = fill(QVBoxLayout(body), spacing=Space.XS, margins=(0, 0, Space.S, 0))
        for name in names:
            label, field = ElidedLabel(name), GrowingEdit(lambda text: self._on_enter(), MOST_LINES)
            label.setToolTip(in_tip(name))
            field.setProperty("kind", "field")
            field.setAccessibleName(name)
            self.fields[name] = field
            fill(form, label, field, Space.S)
        form.addStretch()
        self.ok, cancel = primary(tr("Insert")), QPushButton(tr("Cancel"))
        self.ok.clicked.connect(self._on_ok)
        cancel.clicked.connect(self.reject)
        foot = fill(QHBoxLayout(), STRETCH, cancel, self.ok)
        column = fill(QVBoxLayout(self), spacing=Space.M, margins=(Space.XL, Space.L, Space.L, Space.L))
        fill(column, plain_label(prompt.name, "title"), (ScrollColumn(body), 1), foot)
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
