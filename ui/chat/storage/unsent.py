"""What was written and not sent, with its files: kept on disk soon after it was typed. No Qt here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ui.chat.storage.chat_archive import ChatArchive
from ui.chat.storage.store import ChatStore
from ui.client.attachments import Attachment

Texts = dict[int, str]
Files = dict[int, tuple[Attachment, ...]]


class Unsent:
    """By chat what was written there, and by message what was written in its place."""

    def __init__(self, archive: ChatArchive) -> None:
        self._archive = archive
        self.texts: Texts = {}
        self.files: Files = {}
        self.untold: Texts = {}  # by chat what went wrong with files while no pane showed it

    def read(self, then: Callable[[Texts], None]) -> None:
        """Read what was kept; ``then`` gets its texts. What was written since goes before it."""

        def both(store: ChatStore) -> tuple[Texts, Files]:
            return store.drafts(), store.draft_attachments()

        def take(found: tuple[Texts, Files]) -> None:
            texts, files = found
            self.texts.update(texts | self.texts)
            self.files.update(files | self.files)
            then(texts)

        self._archive.ask(both, take, (Texts(), Files()))

    def keep_texts(self, texts: Texts) -> None:
        """Keep what is written now; "" forgets it."""
        for key, text in texts.items():
            if text != self.texts.get(key, ""):
                self.texts[key] = text
                self._archive.write(partial(ChatStore.save_draft, chat_id=key, text=text))

    def keep_files(self, key: int, files: tuple[Attachment, ...]) -> None:
        """Keep the files that are attached now; none forgets them."""
        if files != self.files.get(key, ()):
            self.files[key] = files
            self._archive.write(lambda store: store.save_draft_attachments(key, files))

    def keep_read(self, key: int, found: Attachment | str) -> None:
        """Keep one more file of a chat, or why there is none."""
        if isinstance(found, str):
            self.untold[key] = "\n".join(filter(None, (self.untold.get(key), found)))
        else:
            self.keep_files(key, (*self.files.get(key, ()), found))
