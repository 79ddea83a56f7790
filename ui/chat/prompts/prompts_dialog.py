"""Where prompts are written, changed and deleted."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import replace

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from models.formatting.safe_text import one_line
from ui.chat.prompts.prompt_library import PromptLibrary
from ui.chat.prompts.variables import variables_of
from ui.client.chat_records import Prompt
from ui.language import tr
from ui.theme.layouts import STRETCH, fill
from ui.theme.text_size import scaled
from ui.theme.tokens import Space
from ui.widgets.dialogs import Dialog, primary
from ui.widgets.fields import ChoiceField
from ui.widgets.icon_button import TextButton
from ui.widgets.page_layout import plain_label

SIZE, LIST = (720, 520), 190
MOST_OF_NAME = 40  # letters
MESSAGE, INSTRUCTIONS = tr("Text for a message"), tr("Instructions for a chat")
NO_MODEL = tr("Only where I choose it")
HINT = tr("{{name}} is a variable: its value is asked for each time.")


class PromptsDialog(Dialog):
    """A list beside one prompt. What is written is kept by Save, and when the dialog or the prompt is left."""

    def __init__(
        self, library: PromptLibrary, models: Sequence[str], parent: QWidget, begin: Prompt | None = None
    ) -> None:
        """``begin`` is a new prompt to start with."""
        super().__init__(tr("Prompts"), SIZE, parent)
        self._library, self._shown = library, Prompt(0, "", "")
        self._deleted = Prompt(0, "", "")
        self.list = QListWidget()
        self.list.setObjectName("tickList")
        self.list.ensurePolished()  # lines have their height from the first
        self.list.setAccessibleName(tr("Prompts"))
        self.list.setMaximumWidth(scaled(LIST))
        self.list.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.new = QPushButton(tr("New prompt"))
        self.name = QLineEdit()
        self.name.setAccessibleName(tr("Name"))
        self.name.setPlaceholderText(tr("Name"))
        self.kind, self.model = ChoiceField(tr("Used as")), ChoiceField(tr("Used in new chats"))
        self.kind.addItems([MESSAGE, INSTRUCTIONS])
        self.model.addItem(NO_MODEL, "")
        for model in models:
            self.model.addItem(tr("In every new chat with {model}", model=one_line(model)), model)
        for field in (self.kind, self.model):
            field.setSizeAdjustPolicy(ChoiceField.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
            field.setMinimumContentsLength(12)
        self.text = QPlainTextEdit()
        self.text.setProperty("kind", "field")
        self.text.setAccessibleName(tr("Text of the prompt"))
        self.text.setPlaceholderText(tr("Translate into {{language}}:"))
        self.text.setTabChangesFocus(True)
        self.note = plain_label(HINT, "caption")
        self.save, self.delete, self.close_button = (
            primary(tr("Save")),
            QPushButton(tr("Delete")),
            QPushButton(tr("Close")),
        )
        self.undo = TextButton(tr("Undo"), tr("Bring the deleted prompt back"))
        self.undo.hide()
        self._lay_out()
        self.list.currentRowChanged.connect(self._on_row)
        self.new.clicked.connect(self._on_new)
        self.kind.currentIndexChanged.connect(lambda at: self._show_state())
        self.name.textChanged.connect(lambda text: self._show_state())
        self.text.textChanged.connect(self._show_state)
        self.save.clicked.connect(self._on_save)
        self.delete.clicked.connect(self._on_delete)
        self.undo.clicked.connect(self._on_undo)
        self.close_button.clicked.connect(self.accept)
        self._list(0)
        prompts = library.prompts
        self._show(begin or (prompts[0] if prompts else Prompt(0, "", "")))
        if prompts and begin is None:
            self.list.setCurrentRow(0)
            self.list.setFocus()

    def _lay_out(self) -> None:
        left, right, foot = QVBoxLayout(), QVBoxLayout(), QHBoxLayout()
        for layout in (left, right, foot):
            layout.setSpacing(Space.S)
        left.addWidget(self.new)
        left.addWidget(self.list, 1)
        fill(right, self.name, self.kind, self.model, (self.text, 1), self.note)
        fill(foot, self.delete, self.undo, STRETCH, self.close_button, self.save)
        right.addLayout(foot)
        fill(QHBoxLayout(self), left, (right, 1), spacing=Space.L, margins=(Space.XL, Space.L, Space.XL, Space.L))

    @property
    def written(self) -> Prompt:
        """The prompt as it stands in the fields."""
        is_system = self.kind.currentText() == INSTRUCTIONS
        model = str(self.model.currentData() or "") if is_system else ""
        name = " ".join(self.name.text().split())
        return replace(self._shown, name=name, text=self.text.toPlainText(), is_system=is_system, model=model)

    def _list(self, chosen: int) -> None:
        self.list.blockSignals(True)
        self.list.clear()
        for prompt in self._library.prompts:
            item = QListWidgetItem(one_line(prompt.name), self.list)
            item.setData(Qt.ItemDataRole.UserRole, prompt)
            if prompt.id == chosen:
                self.list.setCurrentItem(item)
        self.list.setEnabled(self.list.count() > 0)  # of an empty one nobody sees that it has the keyboard
        self.list.blockSignals(False)

    def _on_row(self, row: int) -> None:
        item = self.list.item(row)
        if item is not None:
            prompt = item.data(Qt.ItemDataRole.UserRole)
            self._keep()
            self._show(prompt)

    def _on_new(self) -> None:
        self._keep()
        self._show(Prompt(0, "", ""))

    def done(self, result: int) -> None:
        """Leave, however that is done, and lose nothing."""
        self._keep()
        super().done(result)

    @property
    def _is_changed(self) -> bool:
        return bool(self.written.text.strip()) and (not self._shown.id or self.written != self._shown)

    def _keep(self) -> None:
        """Save what is about to leave the fields; one without a name is called by its first words."""
        if self._is_changed:
            written = self.written
            self._shown = self._library.save(
                replace(written, name=written.name or textwrap.shorten(written.text, MOST_OF_NAME, placeholder="…"))
            )
            # The list may be in the middle of choosing another row.
            QTimer.singleShot(0, self, lambda: self._list(self._shown.id))

    def _show(self, prompt: Prompt) -> None:
        self._shown = prompt
        if not prompt.id:
            self.list.setCurrentRow(-1)
        self.name.setText(prompt.name)
        self.name.setCursorPosition(0)
        self.kind.setCurrentText(INSTRUCTIONS if prompt.is_system else MESSAGE)
        if prompt.model and self.model.findData(prompt.model) < 0:
            self.model.addItem(tr("In every new chat with {model}", model=one_line(prompt.model)), prompt.model)
        self.model.setCurrentIndex(max(0, self.model.findData(prompt.model)))
        self.text.setPlainText(prompt.text)
        self._show_state()
        if not prompt.id:
            self.name.setFocus()

    def _show_state(self) -> None:
        written = self.written
        names = variables_of(written.text)
        self.note.setText(tr("Asks for: {names}.", names=", ".join(names)) if names else HINT)
        self.model.setVisible(written.is_system)
        self.delete.setVisible(bool(self._shown.id))
        self.save.setEnabled(bool(written.name) and self._is_changed)

    def _on_save(self) -> None:
        self._shown = self._library.save(self.written)
        self._list(self._shown.id)
        self._show_state()

    def _on_delete(self) -> None:
        self._deleted = self.written
        self._library.delete(self._shown)
        prompts = self._library.prompts
        self._list(prompts[0].id if prompts else 0)
        self._show(prompts[0] if prompts else Prompt(0, "", ""))
        self.undo.show()
        if not self.delete.isVisible():
            self.undo.setFocus()

    def _on_undo(self) -> None:
        self._keep()
        brought = self._library.save(replace(self._deleted, id=0))
        self.undo.hide()
        self._list(brought.id)
        self._show(brought)
