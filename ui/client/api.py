"""The server as seen from the window: HTTP and server-sent events on Qt's network stack, which never blocks."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import shiboken6
from PySide6.QtCore import (
    QByteArray,
    QCoreApplication,
    QFile,
    QIODevice,
    QObject,
    QSaveFile,
    QTimer,
    QUrl,
    QUrlQuery,
    Signal,
)
from PySide6.QtNetwork import (
    QHttpMultiPart,
    QHttpPart,
    QNetworkAccessManager,
    QNetworkProxy,
    QNetworkReply,
    QNetworkRequest,
)

from core.values.messages import Snapshot
from models.formatting.json_values import fitting
from models.formatting.sentence import said_in
from ui.client.chat_records import Timings
from ui.client.problems import code_of, sentence_of
from ui.client.speeds import DeepProgress
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


CALL_TIMEOUT_MS = 10_000
NOTICED_MS = 3_000  # within that time it is known that a server has died and comes back
EMBED_TIMEOUT_MS = 120_000  # the model for them may have to be loaded first
MAX_ERROR_BYTES = 1 << 20


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


@dataclass(frozen=True, slots=True)
class ServerState:
    """The state of the server, from its ``/slipstream/state``."""

    phase: str = "unknown"
    progress: float = 0.0
    problem: str | None = None
    model: str | None = None
    n_ctx: int | None = None
    n_ctx_train: int | None = None
    n_params: int | None = None
    n_threads: int | None = None
    devices: tuple[str, ...] = ()
    is_toy: bool = False
    n_slots: int | None = None
    spark: str | None = None  # the small model that can answer alone
    why_no_spark: str = ""
    # What is not used, and why; of that, what comes back when the model is loaded again.
    notices: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    # Changes many times a second, which is no change of where the server stands.
    snapshot: Snapshot | None = field(default=None, compare=False)
    last_reply: Snapshot | None = field(default=None, compare=False)  # what the gauges said of it


class Api(QObject):
    """A server at one address. While there is none yet, replies wait for it; other calls fail with a sentence."""

    connected = Signal()
    gave_up = Signal(str)  # a sentence

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        # The application owns it: it must outlive every reply, also when Python collects this object in between.
        self._network = QNetworkAccessManager(QCoreApplication.instance())
        # Qt opens six connections at most: long answers of the library must not keep replies waiting.
        self._library = QNetworkAccessManager(QCoreApplication.instance())
        # The server is on this machine: a proxy for the web must not see its traffic.
        for network in (self._network, self._library):
            network.setProxy(QNetworkProxy(QNetworkProxy.ProxyType.NoProxy))
        self.asks_for_drafted = False  # replies are to say which of their characters were drafted
        self._url: str | None = None
        self._key: str | None = None
        self._no_hope: str | None = None
        self._calls: set[QNetworkReply] = set()
        self._waiting: list[tuple[ReplyStream, dict[str, Any]]] = []

    def connect_to(self, url: str, key: str | None) -> None:
        """Use the server at ``url`` from now on, also for the replies that wait."""
        self._url, self._key, self._no_hope = url, key, None
        waiting, self._waiting = self._waiting, []
        for stream, body in waiting:
            self._begin(stream, body)
        self.connected.emit()

    def expect(self) -> None:
        """There is no server at the moment, but one is on its way: let replies wait for it."""
        self._url, self._no_hope = None, None

    def give_up(self, reason: str) -> None:
        """No server will come: replies fail with ``reason``, also those that wait."""
        self._url, self._no_hope = None, reason
        waiting, self._waiting = self._waiting, []
        for stream, _ in waiting:
            stream.fail(reason)
        self.gave_up.emit(reason)

    def close(self) -> None:
        """End all that is on its way, without a word about it to those who asked."""
        self.give_up(tr("The window is closing."))
        for stream in self.findChildren(ReplyStream):
            stream.cancel()
        calls, self._calls = self._calls, set()
        for reply in calls:
            reply.abort()

    @property
    def is_connected(self) -> bool:
        """True where an address is known."""
        return self._url is not None

    @property
    def no_hope(self) -> str | None:
        """Why no server will come; None while there is one, or one is on its way."""
        return self._no_hope

    def open(self, method: str, path: str, fields: dict[str, Any], *, is_stream: bool = False) -> QNetworkReply:
        """Ask a route of the library; a GET has ``fields`` in its query, a POST in its body."""
        query = QUrlQuery()
        if method == "GET":
            query.setQueryItems([(name, quote(str(value))) for name, value in fields.items()])
        request = self._request(f"{path}?{query.toString()}" if fields and method == "GET" else path)
        if is_stream:
            request.setRawHeader(b"Accept", b"text/event-stream")
        return self._library.get(request) if method == "GET" else self._library.post(request, _encoded(fields))

    def ask(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None,
        done: Callable[[dict[str, Any]], object],
        failed: Callable[[str], object],
        told: Callable[[dict[str, Any]], object] = lambda error: None,
    ) -> None:
        """Ask any route; a GET and a DELETE have no body.

        ``failed`` takes a sentence. Before it ``told`` takes the error as the server sent it, where it sent one.
        """
        self._call(path, body, done, failed, method=method, told=told)

    def upload(
        self,
        path: str,
        file: Path,
        fields: dict[str, str],
        done: Callable[[dict[str, Any]], object],
        failed: Callable[[str], object],
        progressed: Callable[[float], object] = lambda share: None,
    ) -> Callable[[], object]:
        """Send a file as a form; it is read from the disk as it goes. Return what ends that early, which fails."""
        source = QFile(str(file))
        if not source.open(QIODevice.OpenModeFlag.ReadOnly):
            failed(tr("{name} cannot be read: {problem}.", name=file.name, problem=source.errorString()))
            return lambda: None
        if self._url is None:
            failed(tr("The server is not running yet."))
            return lambda: None
        form = QHttpMultiPart(QHttpMultiPart.ContentType.FormDataType)
        source.setParent(form)
        for name, value in fields.items():
            form.append(_part(f'name="{name}"', value.encode()))
        part = _part(f'name="file"; filename="{quote(file.name)}"')
        part.setBodyDevice(source)
        form.append(part)
        request = self._request(path)
        request.setHeader(QNetworkRequest.KnownHeaders.ContentTypeHeader, None)  # the form says its own
        reply = self._network.post(request, form)
        form.setParent(reply)
        self._calls.add(reply)
        reply.uploadProgress.connect(lambda sent, total: progressed(sent / total if total > 0 else 0.0))
        reply.finished.connect(lambda: self._settle(reply, done, failed))
        return reply.abort

    def download(
        self,
        path: str,
        to: Path,
        done: Callable[[], object],
        failed: Callable[[str], object],
        progressed: Callable[[float], object] = lambda share: None,
    ) -> Callable[[], object]:
        """Write what a route answers to a file, which takes its place when it is whole.

        Return what ends that early, which fails and leaves no file.
        """
        if self._url is None:
            failed(tr("The server is not running yet."))
            return lambda: None
        target = QSaveFile(str(to))
        if not target.open(QIODevice.OpenModeFlag.WriteOnly):
            failed(
                tr(
                    "{to} cannot be written: {problem}. Choose another place.",
                    to=to,
                    problem=target.errorString(),
                )
            )
            return lambda: None
        reply = self._network.get(self._request(path))
        target.setParent(reply)
        self._calls.add(reply)
        reply.readyRead.connect(lambda: target.write(reply.readAll()))
        reply.downloadProgress.connect(lambda come, total: progressed(come / total if total > 0 else 0.0))

        def end() -> None:
            reply.deleteLater()
            self._calls.discard(reply)
            if reply.error() != QNetworkReply.NetworkError.NoError:
                target.cancelWriting()
                failed(_without_words(reply))
            elif not target.commit():
                failed(
                    tr(
                        "{to} cannot be written: {problem}. Choose another place.",
                        to=to,
                        problem=target.errorString(),
                    )
                )
            else:
                done()

        reply.finished.connect(end)
        return reply.abort

    def models(self, done: Callable[[list[dict[str, Any]]], None], failed: Callable[[str], None]) -> None:
        """Ask for the models there are."""
        self._call("/v1/models", None, lambda body: done(list(body.get("data") or [])), failed)

    def state(self, done: Callable[[ServerState], None], failed: Callable[[str], None]) -> None:
        """Ask where the server stands."""
        self._call("/slipstream/state", None, lambda body: done(fitting(ServerState, body) or ServerState()), failed)

    def load(
        self,
        model: str,
        done: Callable[[], None],
        failed: Callable[[str], None],
        told: Callable[[dict[str, Any]], object] = lambda error: None,
    ) -> None:
        """Ask for another model; the state tells when it is ready. ``told`` is as in ``ask``."""
        self._call("/slipstream/load", {"model": model}, lambda body: done(), failed, told=told)

    def cancel_load(self, done: Callable[[bool], object]) -> None:
        """Ask to end a load that goes on; the answer says whether there was one."""

        def on_answer(body: dict[str, Any]) -> None:
            done(bool(body.get("cancelled")))

        self._call("/slipstream/load", None, on_answer, lambda problem: None, method="DELETE")

    def count_tokens(self, text: str, done: Callable[[int], None], failed: Callable[[str], None]) -> None:
        """Ask how many tokens ``text`` is for the model that is loaded."""
        self._call("/tokenize", {"content": text}, lambda body: done(len(body.get("tokens") or ())), failed)

    def embed(
        self, model: str, texts: list[str], done: Callable[[list[list[float]]], None], failed: Callable[[str], None]
    ) -> None:
        """Ask for the vectors of texts, which ``model`` is loaded for."""

        def on_answer(body: dict[str, Any]) -> None:
            data = [one.get("embedding") for one in body.get("data") or () if isinstance(one, dict)]
            vectors = [one for one in data if isinstance(one, list) and one]
            if len(vectors) == len(texts):
                done(vectors)
            else:
                failed(tr("The server sent other vectors than those that were asked for."))

        self._call("/v1/embeddings", {"model": model, "input": texts}, on_answer, failed, EMBED_TIMEOUT_MS)

    def chat(self, body: dict[str, Any]) -> ReplyStream:
        """Start a streamed reply."""
        stream = ReplyStream(self)
        stream.unreached.connect(partial(self._wait_again, stream, body))
        self._start(stream, body)
        return stream

    def _start(self, stream: ReplyStream, body: dict[str, Any]) -> None:
        if self._url is not None:
            self._begin(stream, body)
        elif self._no_hope is None:
            self._waiting.append((stream, body))
        else:
            reason = self._no_hope
            QTimer.singleShot(0, stream, lambda: stream.fail(reason))

    def _begin(self, stream: ReplyStream, body: dict[str, Any]) -> None:
        if shiboken6.isValid(stream) and not stream.has_ended:
            request = self._request("/v1/chat/completions")
            drafted = {"drafted_spans": True} if self.asks_for_drafted else {}
            stream.follow(self._network.post(request, _encoded({**body, **drafted, "stream": True})))

    def _wait_again(self, stream: ReplyStream, body: dict[str, Any], address: str) -> None:
        """A server is gone: let the reply wait for the next one, unless it turns out that none is on its way."""
        if self._url is None or not address.startswith(self._url):
            self._start(stream, body)
            return
        waiting = (stream, body)
        self._waiting.append(waiting)

        def give_up() -> None:
            if self._url is not None and waiting in self._waiting:
                self._waiting.remove(waiting)
                stream.fail(_NETWORK_SENTENCES[_Error.ConnectionRefusedError])

        QTimer.singleShot(NOTICED_MS, stream, give_up)

    def _call(
        self,
        path: str,
        body: dict[str, Any] | None,
        done: Callable[[dict[str, Any]], object],
        failed: Callable[[str], object],
        timeout_ms: int = CALL_TIMEOUT_MS,
        method: str = "",
        told: Callable[[dict[str, Any]], object] = lambda error: None,
    ) -> None:
        if self._url is None:
            QTimer.singleShot(0, self, lambda: failed(tr("The server is not running yet.")))
            return
        request = self._request(path)
        request.setTransferTimeout(timeout_ms)
        verb = method or ("GET" if body is None else "POST")
        sent = QByteArray() if body is None else _encoded(body)
        reply = self._network.sendCustomRequest(request, verb.encode(), sent)
        self._calls.add(reply)
        reply.finished.connect(lambda: self._settle(reply, done, failed, told))

    def _settle(
        self,
        reply: QNetworkReply,
        done: Callable[[dict[str, Any]], object],
        failed: Callable[[str], object],
        told: Callable[[dict[str, Any]], object] = lambda error: None,
    ) -> None:
        reply.deleteLater()
        if reply not in self._calls:
            return
        self._calls.discard(reply)
        if reply.error() != QNetworkReply.NetworkError.NoError:
            if isinstance(error := error_in(reply), dict):
                told(error)
            failed(describe(reply))
            return
        try:
            body = json.loads(bytes(reply.readAll().data()), object_hook=said_in)
        except ValueError:
            failed(tr("The server sent something that is not JSON."))
            return
        done(body if isinstance(body, dict) else {})

    def _request(self, path: str) -> QNetworkRequest:
        request = QNetworkRequest(QUrl(f"{self._url}{path}"))
        request.setHeader(QNetworkRequest.KnownHeaders.ContentTypeHeader, "application/json")
        request.setRawHeader(b"Prefer", b"facts")  # sentences come with what they are made of, to be said here
        request.setAttribute(
            QNetworkRequest.Attribute.RedirectPolicyAttribute, QNetworkRequest.RedirectPolicy.ManualRedirectPolicy
        )
        if self._key:
            request.setRawHeader(b"Authorization", f"Bearer {self._key}".encode())
        return request


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

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._reply: QNetworkReply | None = None
        self._parser = SseParser()
        self._finish_reason: str | None = None
        self._timings: Timings | None = None
        self._answered_by: str | None = None
        self._has_ended = False
        self._n_tokens = self._n_told = 0
        self._n_chars = 0
        self._made: dict[int, list[str]] = {}  # by place in the reply: id, name and arguments of a call

    @property
    def has_ended(self) -> bool:
        """True after the one end."""
        return self._has_ended

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
        timings = Timings.from_object(event.get("timings"))
        self._answered_by = event.get("answered_by") or self._answered_by
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
        elif self._reply.error() == _Error.ConnectionRefusedError:
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


def _part(disposition: str, body: bytes = b"") -> QHttpPart:
    part = QHttpPart()
    part.setHeader(QNetworkRequest.KnownHeaders.ContentDispositionHeader, f"form-data; {disposition}")
    if body:
        part.setBody(QByteArray(body))
    return part


def error_in(reply: QNetworkReply) -> Any:
    """Return the error in the body of a reply, without taking it; None where there is none."""
    try:
        body = json.loads(bytes(reply.peek(MAX_ERROR_BYTES).data())) if reply.isOpen() else None
    except ValueError:
        return None
    return body.get("error") if isinstance(body, dict) else None


def describe(reply: QNetworkReply) -> str:
    """Return what went wrong with ``reply`` as a sentence: the server's own words where it gave some."""
    return problem_of(reply)[0]


def problem_of(reply: QNetworkReply) -> tuple[str, str]:
    """Return what went wrong with ``reply`` as a sentence, and the code of the server's error."""
    try:
        # One that was ended here is closed.
        body = json.loads(bytes(reply.read(MAX_ERROR_BYTES).data())) if reply.isOpen() else None
    except ValueError:
        body = None
    sentence = sentence_of(body)
    return (sentence, code_of(body)) if sentence is not None else (_without_words(reply), "")


def _without_words(reply: QNetworkReply) -> str:
    status = reply.attribute(QNetworkRequest.Attribute.HttpStatusCodeAttribute)
    if status is not None:
        return tr("The server answered with HTTP status {status}.", status=status)
    return _NETWORK_SENTENCES.get(
        reply.error(), tr("The server cannot be reached: {problem}.", problem=reply.errorString())
    )


_Error = QNetworkReply.NetworkError
_NETWORK_SENTENCES = {
    _Error.ConnectionRefusedError: tr("The server is not answering: it may have stopped."),
    _Error.RemoteHostClosedError: tr("The server closed the connection before it answered."),
    _Error.OperationCanceledError: tr("The server did not answer in time."),
    _Error.TimeoutError: tr("The server did not answer in time."),
}


def _is_event_stream(reply: QNetworkReply) -> bool:
    kind = reply.header(QNetworkRequest.KnownHeaders.ContentTypeHeader)
    return isinstance(kind, str) and kind.startswith("text/event-stream")


def _encoded(body: dict[str, Any]) -> QByteArray:
    # Lone surrogates, which a paste can hold, have no UTF-8.
    return QByteArray(json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"))
