"""The library's process as seen from the window: questions with an answer each, and news."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from models.formatting.json_values import value_of
from models.library.lines import (
    DOWNLOADS,
    JUDGED,
    MODELS,
    QUANTISINGS,
    BadMessageLine,
    LibraryAnswer,
    LibraryNews,
    read_message,
    request_line,
)
from models.library.requests import ROUTES
from models.library.values import Download, Quantising, Trouble
from ui.platform.child_process import ChildProcess, last_line

ANSWERS = {route.request: route.answer for route in ROUTES}
LOST = "The library stopped in the middle of this and is starting again. Try again."
GONE = "The library cannot start"


@dataclass(slots=True)
class _Asked:
    """A question that waits for its answer."""

    kind: object
    done: Callable[[Any], object]
    failed: Callable[[Trouble], object]
    part: Callable[[Any], object] | None


class LibraryLink(QObject):
    """Asks the library. Each question ends once: ``done`` with the answer, or ``failed`` with the trouble.

    The process is started by the first question, or by ``start``. What is asked while it is on its way waits for it.
    """

    models_changed = Signal()
    judged = Signal(object)  # tuple[RowReport, ...]
    downloads_changed = Signal(object)  # tuple[Download, ...]
    quantisings_changed = Signal(object)  # tuple[Quantising, ...]
    lost = Signal()  # it stopped and is starting again
    returned = Signal()  # it is there after it was lost
    gave_up = Signal(str)  # a sentence

    def __init__(self, process: ChildProcess, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._process = process
        self.downloads: tuple[Download, ...] = ()
        self.quantisings: tuple[Quantising, ...] = ()
        self._number = 0
        self._asked: dict[int, _Asked] = {}
        self._waiting: dict[int, bytes] = {}
        self._was_lost = False
        self._no_hope: str | None = None
        process.setParent(self)
        process.began.connect(self._on_began)
        process.line.connect(self._on_line)
        process.lost.connect(self._on_lost)
        process.gave_up.connect(self._on_gave_up)

    @property
    def process_id(self) -> int:
        """The process, 0 where there is none."""
        return self._process.process_id

    def start(self) -> None:
        """Start it unless it runs; also after it gave up."""
        self._no_hope = None
        if not self._process.is_wanted:
            self._process.start()

    def stop(self) -> None:
        """End it; nobody is told about open questions."""
        self._asked.clear()
        self._waiting.clear()
        self._process.stop()

    def ask(
        self,
        request: Any,
        done: Callable[[Any], object] = lambda answer: None,
        failed: Callable[[Trouble], object] = lambda trouble: None,
        part: Callable[[Any], object] | None = None,
    ) -> int:
        """Ask; ``part`` takes the parts of an answer that comes in several. Returns a number for ``forget``."""
        self._number += 1
        number = self._number
        if self._no_hope is not None:
            trouble = Trouble(self._no_hope)
            QTimer.singleShot(0, self, lambda: failed(trouble))
            return number
        self._asked[number] = _Asked(ANSWERS[type(request)], done, failed, part)
        line = request_line(number, request)
        if self._process.is_running:
            self._process.write(line)
        else:
            self._waiting[number] = line
            self.start()
        return number

    def forget(self, number: int) -> None:
        """Nobody wants this answer any more."""
        self._asked.pop(number, None)
        self._waiting.pop(number, None)

    def _on_began(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for line in waiting.values():
            self._process.write(line)
        if self._was_lost:
            self._was_lost = False
            self.returned.emit()

    def _on_line(self, line: bytes) -> None:
        try:
            message = read_message(line)
        except BadMessageLine:
            return  # of another version, or something that a library printed
        if isinstance(message, LibraryNews):
            self._take_news(message)
        else:
            self._take_answer(message)

    def _take_news(self, news: LibraryNews) -> None:
        if news.name == MODELS:
            self.models_changed.emit()
        elif news.name == JUDGED:
            self.judged.emit(news.judged)
        elif news.name == DOWNLOADS and news.downloads != self.downloads:
            self.downloads = news.downloads
            self.downloads_changed.emit(news.downloads)
        elif news.name == QUANTISINGS:
            self._take_quantisings(news.quantisings)

    def _take_quantisings(self, quantisings: tuple[Quantising, ...]) -> None:
        if quantisings != self.quantisings:
            self.quantisings = quantisings
            self.quantisings_changed.emit(quantisings)

    def _take_answer(self, answer: LibraryAnswer) -> None:
        asked = self._asked.get(answer.id)
        if asked is None:
            return
        if answer.trouble is not None:
            del self._asked[answer.id]
            asked.failed(answer.trouble)
            return
        try:
            value = None if answer.value is None or asked.kind is None else value_of(asked.kind, answer.value)
        except (TypeError, ValueError, KeyError):
            del self._asked[answer.id]
            asked.failed(Trouble("The library answered something that cannot be understood. Start Slipstream again."))
            return
        if answer.has_more and asked.part is not None:
            asked.part(value)
        elif not answer.has_more:
            del self._asked[answer.id]
            asked.done(value)

    def _on_lost(self, how: str) -> None:
        self._was_lost = True
        self._fail_open(Trouble(LOST))
        self.lost.emit()
        # Downloads go on in the next process; these are gone.
        self._take_quantisings(())

    def _on_gave_up(self, words: str) -> None:
        self._no_hope = f"{GONE}: {last_line(words)}"
        self._waiting.clear()
        self._fail_open(Trouble(self._no_hope))
        self.gave_up.emit(self._no_hope)

    def _fail_open(self, trouble: Trouble) -> None:
        """End the questions that were on their way; those that wait for the process go on waiting."""
        lost = [number for number in self._asked if number not in self._waiting]
        for asked in [self._asked.pop(number) for number in lost]:
            asked.failed(trouble)
