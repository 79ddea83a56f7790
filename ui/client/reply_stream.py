"""A streamed reply: server-sent events as they come, taken apart into text, thoughts, calls and how it ended."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from PySide6.QtCore import QObject, Signal
from PySide6.QtNetwork import QNetworkReply, QNetworkRequest

from models.formatting.json_values import fitting
from ui.client.chat_records import Timings
from ui.client.problems import MODEL_GONE, code_of, problem_of, sentence_of
from ui.client.speeds import DeepProgress, PromptProgress
from ui.language import tr


class SseParser:
    """Turns bytes into the ``data`` of events. Lines and UTF-8 characters may be cut anywhere."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[str]:
        """Return the data of the events that ``chunk`` completes."""
        lines = (self._rest + chunk).split(b"\n")
        self._rest = lines.pop()
        events = [self._take_line(line.removesuffix(b"\r")) for line in lines]
        return [event for event in events if event is not None]

    def _take_line(self, line: bytes) -> str | None:
        if not line:
            return self._finish_event()
        field, _, value = line.partition(b":")
        if field == b"data":
            self._data.append(value.removeprefix(b" "))
        return None

    def _finish_event(self) -> str | None:
        if not self._data:
            return None
        data = b"\n".join(self._data).decode("utf-8", "replace")
        self._data.clear()
        return data


class CallMade(NamedTuple):
    """A call of a tool, as a model made it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ReplyEnd:
    """How a streamed reply ended."""

    finish_reason: str
    timings: Timings | None
    answered_by: str | None = None  # the small model, where that one gave the reply
    calls: tuple[CallMade, ...] = ()  # of tools


class ReplyStream(QObject):
    """One streamed reply. After any number of ``text`` comes exactly one of ``finished``, ``failed``, ``cancelled``."""

    drafted = Signal(object)  # before its text: spans of drafted characters, counted in all text of the reply
    text = Signal(str, int)  # what was added, and how many tokens that is
    thought = Signal(str, int)  # the same of what a model thinks before it answers
    progressed = Signal(object)  # DeepProgress, before the text of a deep reply
    finished = Signal(object)  # ReplyEnd
    failed = Signal(str, str)  # a sentence, and the code of the server's error, "" where it gave none
    cancelled = Signal()
    unreached = Signal(str)  # nobody was there at this address: nothing was sent

    def __init__(self, only: str | None = None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        # The model that may answer. In place of one that is gone the server lets another one answer.
        self._only = only
        self._reply: QNetworkReply | None = None
        self._parser = SseParser()
        self._finish_reason: str | None = None
        self._timings: Timings | None = None
        self._answered_by: str | None = None
        self.ttft_ms = 0.0  # as the receipt will say; 0 until the server has told it
        self.read: PromptProgress | None = None  # of the prompt, where the server says it
        self._has_ended = False
        self._n_tokens = self._n_told = 0
        self._n_chars = 0
        self._made: dict[int, list[str]] = {}  # by place in the reply: id, name and arguments of a call

    @property
    def has_ended(self) -> bool:
        """True after the one end."""
        return self._has_ended

    @property
    def n_in_context(self) -> int:
        """Tokens of the prompt and of the reply so far; 0 where the server does not say it."""
        return self.read.total + self._n_tokens if self.read is not None else 0

    @property
    def answered_by(self) -> str | None:
        """The small model that gives this reply, as soon as the server has said so."""
        return self._answered_by

    def follow(self, reply: QNetworkReply) -> None:
        """Read ``reply`` as it comes."""
        self._reply = reply
        reply.readyRead.connect(self._on_bytes)
        reply.finished.connect(self._on_closed)
        reply.finished.connect(reply.deleteLater)

    def cancel(self) -> None:
        """Close the connection, which stops the server's work on it."""
        if self._end():
            if self._reply is not None:
                self._reply.abort()
            self.cancelled.emit()

    def _on_bytes(self) -> None:
        if self._has_ended or self._reply is None or not _is_event_stream(self._reply):
            return
        added = _Added()
        for data in self._parser.feed(bytes(self._reply.readAll().data())):
            problem = self._take(data, added)
            if problem is not None:
                self._emit(added)
                self.fail(*problem)
                self._reply.abort()
                return
        self._emit(added)

    def _emit(self, added: _Added) -> None:
        if added.drafted:
            self.drafted.emit(added.drafted)
        for signal, pieces in ((self.thought, added.thoughts), (self.text, added.text)):
            if pieces:
                n_new, self._n_told = self._n_tokens - self._n_told, self._n_tokens
                signal.emit("".join(pieces), n_new)

    def _is_from_another(self, model: object) -> bool:
        """Return whether another model of this machine answers than the one that may.

        A folder in front of a name tells files of one name apart, and comes and goes with them. Remotes, and what the
        user lets answer in their place, are marked by the server and may have any name.
        """
        if self._only is None or not isinstance(model, str) or self._reply is None:
            return False
        if any(self._reply.hasRawHeader(name) for name in ("x-slipstream-remote", "x-slipstream-fallback")):
            return False
        asked, here = (name.rpartition("/")[2].casefold() for name in (self._only, model))
        return asked != here

    def _take(self, data: str, added: _Added) -> tuple[str, str] | None:
        """Take one event; return a sentence and its code where it says that the reply failed."""
        if data == "[DONE]":
            return None
        try:
            event = json.loads(data)
        except ValueError:
            return tr("The server sent something that is not JSON."), ""
        if not isinstance(event, dict):
            return tr("The server sent something unexpected."), ""
        if "error" in event:
            return sentence_of(event) or tr("The server reported an error without saying which."), code_of(event)
        if self._is_from_another(event.get("model")):
            return tr("This model is not here any more."), MODEL_GONE
        timings = Timings.from_object(event.get("timings"))
        self.ttft_ms = (timings.ttft_ms if timings is not None else 0.0) or self.ttft_ms
        self._answered_by = event.get("answered_by") or self._answered_by
        self.read = fitting(PromptProgress, event.get("prompt_progress")) or self.read
        progress = fitting(DeepProgress, event.get("progress"))
        if progress is not None:
            self.progressed.emit(progress)
        for choice in event.get("choices") or ():
            delta = choice.get("delta") or {}
            content, thought = _said(delta)
            if thought:
                added.thoughts.append(thought)
            if content:
                added.text.append(content)
                added.drafted += [(self._n_chars + begin, self._n_chars + end) for begin, end in _spans(event)]
                self._n_chars += len(content)
            if thought or content:
                # Before the end only the tokens so far are known; of a server that does not say, one for each chunk.
                self._n_tokens = timings.decode_tokens if timings is not None else self._n_tokens + 1
            for call in delta.get("tool_calls") or ():
                self._take_call(call)
            self._finish_reason = choice.get("finish_reason") or self._finish_reason
        if self._finish_reason is not None:
            self._timings = timings or self._timings
        return None

    def _take_call(self, call: dict[str, Any]) -> None:
        function = call.get("function") or {}
        made = self._made.setdefault(call.get("index", 0), ["", "", ""])
        for at, piece in enumerate((call.get("id"), function.get("name"), function.get("arguments"))):
            made[at] += piece or ""

    def _on_closed(self) -> None:
        if self._has_ended or self._reply is None:
            return
        if _is_event_stream(self._reply):
            self._on_bytes()
        if self._has_ended:
            return
        if self._finish_reason is not None:
            self._end()
            calls = tuple(CallMade(*made) for _, made in sorted(self._made.items()))
            self.finished.emit(ReplyEnd(self._finish_reason, self._timings, self._answered_by, calls))
        elif _is_event_stream(self._reply):
            self.fail(tr("The connection to the server broke in the middle of the reply."))
        elif self._reply.error() == QNetworkReply.NetworkError.ConnectionRefusedError:
            reply, self._reply = self._reply, None
            self.unreached.emit(reply.url().toString())
        else:
            self.fail(*problem_of(self._reply))

    def fail(self, problem: str, code: str = "") -> None:
        """End the reply with a problem; ``code`` is the one of the server's error."""
        if self._end():
            self.failed.emit(problem, code)

    def _end(self) -> bool:
        was_open, self._has_ended = not self._has_ended, True
        return was_open


@dataclass(slots=True)
class _Added:
    """What one read of the network brought."""

    thoughts: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    drafted: list[tuple[int, int]] = field(default_factory=list)


def _said(delta: dict[str, Any]) -> tuple[str, str]:
    """Return what a chunk adds to the text and to the thoughts; Mistral's models that think send parts of both."""
    content, thought = delta.get("content"), delta.get("reasoning_content") or delta.get("reasoning")
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    if parts:
        content = "".join(map(_text_of, parts))
        thoughts = [one for part in parts for one in part.get("thinking") or ()]
        thought = "".join(_text_of(one) for one in thoughts if isinstance(one, dict))
    return content if isinstance(content, str) else "", thought if isinstance(thought, str) else ""


def _text_of(part: dict[str, Any]) -> str:
    text = part.get("text")
    return text if isinstance(text, str) else ""


def _spans(event: dict[str, Any]) -> list[tuple[int, int]]:
    found = event.get("drafted")
    return [(int(begin), int(end)) for begin, end in found] if isinstance(found, list) else []


def _is_event_stream(reply: QNetworkReply) -> bool:
    kind = reply.header(QNetworkRequest.KnownHeaders.ContentTypeHeader)
    return isinstance(kind, str) and kind.startswith("text/event-stream")
