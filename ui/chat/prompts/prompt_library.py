"""The prompts that are kept, as the window knows them."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QObject, Signal

from ui.chat.storage.chat_archive import ChatArchive
from ui.chat.storage.ids import Ids
from ui.client.chat_records import Prompt


class PromptLibrary(QObject):
    """Reads all prompts, then writes what changes."""

    changed = Signal()

    def __init__(self, archive: ChatArchive, ids: Ids, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._archive, self._ids = archive, ids
        self._prompts: dict[int, Prompt] = {}
        self.read()

    def read(self) -> None:
        """Read all; those that changed here stay as they are."""
        self._archive.ask(lambda store: store.prompts(), self._on_read, list[Prompt]())

    @property
    def prompts(self) -> list[Prompt]:
        """All of them, by name."""
        return sorted(self._prompts.values(), key=lambda prompt: prompt.name.casefold())

    def texts(self, is_system: bool) -> list[Prompt]:
        """Return those for messages, or those that are instructions."""
        return [prompt for prompt in self.prompts if prompt.is_system is is_system]

    def instructions_for(self, model: str | None) -> str:
        """Return the instructions that new chats with a model begin with, "" for none."""
        return next((prompt.text for prompt in self._prompts.values() if model and prompt.model == model), "")

    def save(self, prompt: Prompt) -> Prompt:
        """Keep a prompt, a new one where its id is 0; of a model's prompts only the last one counts."""
        kept = prompt if prompt.id else replace(prompt, id=self._ids.next())
        for other in self._prompts.values():
            if kept.model and other.model == kept.model and other.id != kept.id:
                self._write(replace(other, model=""))
        self._write(kept)
        self.changed.emit()
        return kept

    def delete(self, prompt: Prompt) -> None:
        """Forget a prompt."""
        self._prompts.pop(prompt.id, None)
        self._archive.write(lambda store: store.delete_prompt(prompt.id))
        self.changed.emit()

    def _write(self, prompt: Prompt) -> None:
        self._prompts = self._prompts | {prompt.id: prompt}
        self._archive.write(lambda store: store.save_prompt(prompt))

    def _on_read(self, prompts: list[Prompt]) -> None:
        self._prompts = {prompt.id: prompt for prompt in prompts} | self._prompts
        self.changed.emit()
