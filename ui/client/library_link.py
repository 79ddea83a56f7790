"""The model library as seen from the window: questions to the server with an answer each, and its news."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtNetwork import QNetworkReply, QNetworkRequest

from models.formatting.json_values import value_of
from models.formatting.sentence import said_in
from models.library.requests import EVENTS, ROUTES
from models.library.values import Download, Quantising, RowReport, Trouble, TroubleKind
from ui.client.api import Api
from ui.client.problems import code_of, error_in, problem_of, sentence_of
from ui.client.remedies import clicked
from ui.client.reply_stream import SseParser
from ui.language import tr

LOST = tr("The library stopped in the middle of this and is starting again. Try again.")
UNREADABLE = Trouble(tr("The library answered something that cannot be understood. Start Slipstream again."))
ROUTE_OF = {route.request: route for route in ROUTES}
TURN_SECONDS = 0.008  # a long list does not hold up the window
AGAIN_MS = 1_000
Done = Callable[[Any], object]
Failed = Callable[[Trouble], object]


class LibraryCall(QObject):
    """One question, or the stream of news: parts as they come, and then one end."""

    part = Signal(object)
    done = Signal(object)
    failed = Signal(object)  # Trouble

    def __init__(self, reply: QNetworkReply, kind: Any, *, is_stream: bool, parent: QObject) -> None:
        super().__init__(parent)
        self._reply, self._kind, self._is_stream = reply, kind, is_stream
        self._parser, self._events = SseParser(), deque[str]()
        self._has_closed = False
        self._more = QTimer(self, singleShot=True, interval=0)
        self._more.timeout.connect(self._take_events)
        if is_stream:
            reply.readyRead.connect(self._on_bytes)
        reply.finished.connect(self._on_closed)

    def end(self) -> None:
        """Nobody wants it any more."""
        self.blockSignals(True)
        self._more.stop()
        self._reply.abort()
        self._reply.deleteLater()
        self.deleteLater()

    def _on_bytes(self) -> None:
        is_right = self._reply.error() == QNetworkReply.NetworkError.NoError
        if is_right and not self.signalsBlocked() and self._is_answer:
            self._events.extend(self._parser.feed(bytes(self._reply.readAll().data())))
            self._take_events()

    def _on_closed(self) -> None:
        if self.signalsBlocked():
            return
        self._has_closed = True
        if self._reply.error() != QNetworkReply.NetworkError.NoError:
            error = error_in(self._reply)
            self._fail(_trouble(*problem_of(self._reply), error))
        elif self._is_stream:
            self._on_bytes()
        else:
            try:
                self.done.emit(self._value(json.loads(bytes(self._reply.readAll().data()), object_hook=said_in)))
            except (TypeError, ValueError, KeyError):
                self._fail(UNREADABLE)

    @property
    def _is_answer(self) -> bool:
        # Of an error the body is read when it is whole.
        return bool(self._reply.attribute(QNetworkRequest.Attribute.HttpStatusCodeAttribute) == 200)

    def _take_events(self) -> None:
        until = time.monotonic() + TURN_SECONDS
        while self._events and not self.signalsBlocked():
            event = self._events.popleft()
            if event == "[DONE]":
                self.done.emit(None)
                return
            try:
                found = json.loads(event, object_hook=said_in)
                if isinstance(found, dict) and (sentence := sentence_of(found)) is not None:
                    self._fail(_trouble(sentence, code_of(found), found["error"]))
                    return
                self.part.emit(self._value(found))
            except (TypeError, ValueError, KeyError):
                self._fail(UNREADABLE)
                return
            if time.monotonic() > until:
                self._more.start()
                return
        if self._has_closed and not self._events:
            self._fail(Trouble(LOST))

    def _value(self, found: Any) -> Any:
        return found if found is None or self._kind is None else value_of(self._kind, found)

    def _fail(self, trouble: Trouble) -> None:
        self._events.clear()
        self.failed.emit(trouble)


def _trouble(sentence: str, code: str, error: Any = None) -> Trouble:
    """Return trouble as the window says it; ``error`` is the whole error of the server, as it was sent."""
    if code not in set(TroubleKind) or not isinstance(error, dict):
        return Trouble(sentence)
    return clicked(value_of(Trouble, {**error, "sentence": sentence, "kind": code}))


def _said(download: Download) -> Download:
    return download if download.trouble is None else replace(download, trouble=clicked(download.trouble))


class LibraryLink(QObject):
    """Asks the library of a server. Each question ends once: ``done`` with the answer, or ``failed`` with the trouble.

    What is asked while the server is on its way waits for it.
    """

    models_changed = Signal()
    judged = Signal(object)  # tuple[RowReport, ...]
    downloads_changed = Signal(object)  # tuple[Download, ...]
    quantisings_changed = Signal(object)  # tuple[Quantising, ...]
    lost = Signal()  # it stopped and is starting again
    returned = Signal()  # it is there after it was lost
    gave_up = Signal(str)  # a sentence

    def __init__(self, api: Api, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._api = api
        self.downloads: tuple[Download, ...] = ()
        self.quantisings: tuple[Quantising, ...] = ()
        self._number = 0
        self._calls: dict[int, LibraryCall] = {}
        self._waiting: dict[int, Callable[[], object]] = {}
        self._failed: dict[int, Failed] = {}
        self._news: LibraryCall | None = None
        self.knows_downloads = False  # whether it was heard which there are, before those that are told now
        self._is_wanted = self._was_lost = False
        self._again = QTimer(self, singleShot=True, interval=AGAIN_MS)
        self._again.timeout.connect(self.start)
        api.connected.connect(self._on_connected)
        api.gave_up.connect(self._on_gave_up)

    def start(self) -> None:
        """Listen to its news, which starts it."""
        self._is_wanted = True
        if self._news is None and self._api.is_connected:
            reply = self._api.open("GET", EVENTS, {}, is_stream=True)
            self._news = LibraryCall(reply, None, is_stream=True, parent=self)
            self._news.part.connect(self._take_news)
            self._news.failed.connect(self._on_deaf)

    def stop(self) -> None:
        """Ask and listen no more; nobody is told about open questions."""
        self._is_wanted = False
        self._again.stop()
        for number in list(self._calls | self._waiting):
            self.forget(number)
        self._end_news()

    def ask(
        self,
        request: Any,
        done: Done = lambda answer: None,
        failed: Failed = lambda trouble: None,
        part: Done | None = None,
        asker: QObject | None = None,
    ) -> int:
        """Ask; ``part`` takes the parts of an answer that comes in several. Returns a number for ``forget``.

        Nobody is told once ``asker``, as a dialog, is gone.
        """
        self._number += 1
        number = self._number
        if asker is not None:
            asker.destroyed.connect(lambda: self.forget(number))
        self.start()
        if self._api.is_connected:
            self._begin(number, request, done, failed, part)
        elif (reason := self._api.no_hope) is not None:
            QTimer.singleShot(0, self, lambda: failed(Trouble(reason)))
        else:
            self._waiting[number] = lambda: self._begin(number, request, done, failed, part)
            self._failed[number] = failed
        return number

    def forget(self, number: int) -> None:
        """Nobody wants this answer any more."""
        self._waiting.pop(number, None)
        self._failed.pop(number, None)
        call = self._calls.pop(number, None)
        if call is not None:
            call.end()

    def _begin(self, number: int, request: Any, done: Done, failed: Failed, part: Done | None) -> None:
        route = ROUTE_OF[type(request)]
        reply = self._api.open(route.method, route.path, asdict(request), is_stream=part is not None)
        call = self._calls[number] = LibraryCall(reply, route.answer, is_stream=part is not None, parent=self)

        def end(tell: Callable[[Any], object], value: Any) -> None:
            self.forget(number)
            tell(value)

        if part is not None:
            call.part.connect(part)
        call.done.connect(lambda value: end(done, value))
        call.failed.connect(lambda trouble: end(failed, trouble))

    def _take_news(self, news: dict[str, Any]) -> None:
        name, value = news.get("news"), news.get("value")
        if name == "models":
            self.models_changed.emit()
        elif name == "judged":
            self.judged.emit(value_of(tuple[RowReport, ...], value))
        elif name == "downloads":
            downloads = tuple(map(_said, value_of(tuple[Download, ...], value)))
            if downloads != self.downloads:
                self.downloads = downloads
                self.downloads_changed.emit(downloads)
            self.knows_downloads = True
        elif name == "quantisings":
            self._take_quantisings(value_of(tuple[Quantising, ...], value))
        elif name == "lost":
            self.lost.emit()
        elif name == "returned":
            self.returned.emit()
        elif name == "gave_up":
            self.gave_up.emit(str(value))
        if self._was_lost:
            self._was_lost = False
            self.returned.emit()

    def _take_quantisings(self, quantisings: tuple[Quantising, ...]) -> None:
        if quantisings != self.quantisings:
            self.quantisings = quantisings
            self.quantisings_changed.emit(quantisings)

    def _on_deaf(self, trouble: Trouble) -> None:
        """The stream of news has ended: the server is gone, or its library cannot start."""
        self._end_news()
        if not self._is_wanted:
            return
        if not self._was_lost:
            self._was_lost = True
            self.lost.emit()
            self._take_quantisings(())
        self._again.start()

    def _end_news(self) -> None:
        news, self._news = self._news, None
        if news is not None:
            news.end()

    def _on_connected(self) -> None:
        waiting, self._waiting = self._waiting, {}
        self._failed.clear()
        for begin in waiting.values():
            begin()
        if self._is_wanted:
            self._end_news()
            self.start()

    def _on_gave_up(self, sentence: str) -> None:
        failed, self._failed = self._failed, {}
        self._waiting.clear()
        for tell in failed.values():
            tell(Trouble(sentence))
        if self._is_wanted:
            self.gave_up.emit(sentence)
