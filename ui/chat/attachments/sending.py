"""What happens between Enter and the message: tokens are counted, and passages of long files are found."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, Signal

from ui.chat.attachments.passage_finder import PassageFinder
from ui.client.api import Api
from ui.client.attachments import FOUND, Attachment, SentParts

Ready = Callable[[tuple[Attachment, ...]], object]


class Sending(QObject):
    """Makes the files of one message at a time ready to be sent."""

    waits = Signal(object)  # float: the share that is done; None when nothing is waited for any more

    def __init__(self, api: Api, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._api = api
        self._finder = PassageFinder(api, self)
        self._then: Ready | None = None
        self.text = ""  # what waits to be sent
        self._finder.progressed.connect(self.waits)
        self._finder.found.connect(self._on_found)

    @property
    def is_waiting(self) -> bool:
        """True while passages are looked for."""
        return self._then is not None

    def prepare(
        self, files: tuple[Attachment, ...], text: str, n_tokens: int, embedder: str | None, then: Ready
    ) -> None:
        """Call ``then`` with the files as they are sent; passages that are wanted have at most ``n_tokens``."""
        self.cancel()
        if not any(one.choice in FOUND for one in files):
            then(files)
            return
        self._then, self.text = then, text
        self.waits.emit(0.0)
        self._finder.find(files, text, n_tokens, embedder)

    def cancel(self) -> None:
        """Stop looking for passages."""
        if self._then is not None:
            self._then = None
            self._finder.cancel()
            self.waits.emit(None)

    def count(self, text: str, then: Callable[[int], None]) -> None:
        """Count the tokens of a text for the loaded model; silent where none is loaded."""
        self._api.count_tokens(text, lambda n_tokens: then(n_tokens) if n_tokens else None, lambda problem: None)

    def _on_found(self, files: tuple[Attachment, ...]) -> None:
        then, self._then = self._then, None
        self.waits.emit(None)
        if then is not None:
            then(files)


def files_that_count(files: Sequence[Attachment]) -> tuple[Attachment, ...]:
    """Return the files whose tokens are known before they are sent: passages are chosen so that they fit."""
    return tuple(one for one in files if one.choice is not SentParts.PASSAGES)
