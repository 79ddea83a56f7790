"""Finds the passages of long files that fit a question, while the window goes on."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QObject, Signal

from ui.chat.attachments.passages import Place, by_vectors, by_words, places_of, text_at, with_best
from ui.client.api import Api
from ui.client.attachments import Attachment, SentParts

MOST_VECTORS = 256  # passages that get vectors: those with the best words; more would take minutes on a processor
AT_ONCE = 16  # texts in one request


class PassageFinder(QObject):
    """Works on one question at a time; ``found`` comes once, unless it is cancelled."""

    progressed = Signal(object)  # float: the share that is done
    found = Signal(object)  # tuple[Attachment, ...]
    _ranked = Signal(object, object)  # the run, the places in the order of their words

    def __init__(self, api: Api, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._api = api
        self._run: object = None
        self._ranked.connect(self._on_ranked)

    def find(self, attachments: Sequence[Attachment], question: str, n_tokens: int, embedder: str | None) -> None:
        """Choose passages of at most ``n_tokens``; ``embedder`` is a model that gives vectors, or None."""
        run = self._run = _Run(tuple(attachments), question, n_tokens, embedder)
        # Millions of letters are counted: not on the window's thread.
        threading.Thread(target=self._rank, args=(run,), name="passages", daemon=True).start()

    def cancel(self) -> None:
        """End without a word."""
        self._run = None

    def _rank(self, run: _Run) -> None:
        places = places_of(run.attachments)
        order = by_words(run.question, [text_at(run.attachments, place) for place in places])
        if self._run is run:
            self._ranked.emit(run, [places[at] for at in order])

    def _on_ranked(self, run: _Run, ranking: list[Place]) -> None:
        if self._run is not run:
            return
        run.by_words, run.asked = ranking, ranking[:MOST_VECTORS]
        if run.embedder is None:
            self._end(run, ranking, SentParts.BY_WORDS)
        else:
            run.texts = [run.question, *(text_at(run.attachments, place) for place in run.asked)]
            self._embed(run)

    def _embed(self, run: _Run) -> None:
        at = len(run.vectors)
        self.progressed.emit(at / len(run.texts))
        if at < len(run.texts):
            self._api.embed(
                run.embedder or "", run.texts[at : at + AT_ONCE], partial(self._on_vectors, run),
                lambda problem: self._end(run, run.by_words, SentParts.BY_WORDS),
            )  # fmt: skip
            return
        order = by_vectors(run.vectors[0], run.vectors[1:])
        self._end(run, [run.asked[at] for at in order], SentParts.BY_MEANING)

    def _on_vectors(self, run: _Run, vectors: list[list[float]]) -> None:
        if self._run is run:
            run.vectors += vectors
            self._embed(run)

    def _end(self, run: _Run, ranking: list[Place], choice: SentParts) -> None:
        if self._run is run:
            self._run = None
            self.found.emit(with_best(run.attachments, ranking, run.n_tokens, choice))


class _Run:
    """One question, and what is known for it so far."""

    def __init__(self, attachments: tuple[Attachment, ...], question: str, n_tokens: int, embedder: str | None) -> None:
        self.attachments, self.question = attachments, question
        self.n_tokens, self.embedder = n_tokens, embedder
        self.by_words: list[Place] = []
        self.asked: list[Place] = []
        self.texts: list[str] = []
        self.vectors: list[list[float]] = []
