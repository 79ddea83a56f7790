"""The server as seen from the window: HTTP and server-sent events on Qt's network stack, which never blocks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
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
from ui.client.problems import NOT_ANSWERING, error_in, network_problem, problem_of
from ui.client.reply_stream import ReplyStream
from ui.language import tr

CALL_TIMEOUT_MS = 10_000
NOTICED_MS = 3_000  # within that time it is known that a server has died and comes back
EMBED_TIMEOUT_MS = 120_000  # the model for them may have to be loaded first
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


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
    remotes: tuple[str, ...] = ()  # other servers: their models are called NAME/MODEL, listed or not
    # Changes many times a second, which is no change of where the server stands.
    snapshot: Snapshot | None = field(default=None, compare=False)
    last_reply: Snapshot | None = field(default=None, compare=False)  # what the gauges said of it

    def figures_since(self, before: ServerState) -> Snapshot | None:
        """Return the figures of now, else of a reply that ended since ``before``; None where nothing has run.

        Many replies are over before their speed was seen while they ran.
        """
        if self.snapshot is not None and not self.snapshot.is_idle:
            return self.snapshot
        # Before, it may have been loading or empty: the reply is the first one then.
        is_known = before.phase not in ("unknown", "gone") and before.model == self.model
        return self.last_reply if is_known and self.last_reply != before.last_reply else None


class Api(QObject):
    """A server at one address. While there is none yet, replies wait for it; other calls fail with a sentence."""

    connected = Signal()
    gave_up = Signal(str)  # a sentence

    def __init__(self) -> None:
        super().__init__()
        # The application owns it: it must outlive every reply, also when Python collects this object in between.
        self._network = QNetworkAccessManager(QCoreApplication.instance())
        # Qt opens six connections at most: long answers of the library must not keep replies waiting.
        self._library = QNetworkAccessManager(QCoreApplication.instance())
        # The server is on this machine: a proxy for the web must not see its traffic.
        for network in (self._network, self._library):
            network.setProxy(QNetworkProxy(QNetworkProxy.ProxyType.NoProxy))
        # What is done before a reply is asked of a model (None: the loaded one); it then calls what it is given.
        self.before_reply: Callable[[str | None, Callable[[], object]], object] = lambda model, then: then()
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
        *,
        timeout_ms: int = CALL_TIMEOUT_MS,
    ) -> None:
        """Ask any route; a GET and a DELETE have no body.

        ``failed`` takes a sentence. Before it ``told`` takes the error as the server sent it, where it sent one.
        """
        if self._url is None:
            QTimer.singleShot(0, self, lambda: failed(tr("The server is not running yet.")))
            return
        request = self._request(path)
        request.setTransferTimeout(timeout_ms)
        sent = QByteArray() if body is None else _encoded(body)
        reply = self._network.sendCustomRequest(request, method.encode(), sent)
        self._calls.add(reply)
        reply.finished.connect(lambda: self._settle(reply, done, failed, told))

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

        def fail_to_write() -> None:
            problem = target.errorString()
            failed(tr("{to} cannot be written: {problem}. Choose another place.", to=to, problem=problem))

        if not target.open(QIODevice.OpenModeFlag.WriteOnly):
            fail_to_write()
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
                failed(network_problem(reply))
            elif not target.commit():
                fail_to_write()
            else:
                done()

        reply.finished.connect(end)
        return reply.abort

    def models(self, done: Callable[[list[dict[str, Any]]], None], failed: Callable[[str], None]) -> None:
        """Ask for the models there are."""
        self.ask("GET", "/v1/models", None, lambda body: done(list(body.get("data") or [])), failed)

    def state(self, done: Callable[[ServerState], None], failed: Callable[[str], None]) -> None:
        """Ask where the server stands."""
        self.ask(
            "GET", "/slipstream/state", None, lambda body: done(fitting(ServerState, body) or ServerState()), failed
        )

    def load(
        self,
        model: str,
        done: Callable[[], None],
        failed: Callable[[str], None],
        told: Callable[[dict[str, Any]], object] = lambda error: None,
    ) -> None:
        """Ask for another model; the state tells when it is ready. ``told`` is as in ``ask``."""
        self.ask("POST", "/slipstream/load", {"model": model}, lambda body: done(), failed, told)

    def cancel_load(self, done: Callable[[bool], object]) -> None:
        """Ask to end a load that goes on; the answer says whether there was one."""

        def on_answer(body: dict[str, Any]) -> None:
            done(bool(body.get("cancelled")))

        self.ask("DELETE", "/slipstream/load", None, on_answer, lambda problem: None)

    def count_tokens(self, text: str, done: Callable[[int], None], failed: Callable[[str], None]) -> None:
        """Ask how many tokens ``text`` is for the model that is loaded."""
        self.ask("POST", "/tokenize", {"content": text}, lambda body: done(len(body.get("tokens") or ())), failed)

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

        body = {"model": model, "input": texts}
        self.ask("POST", "/v1/embeddings", body, on_answer, failed, timeout_ms=EMBED_TIMEOUT_MS)

    def chat(self, body: dict[str, Any]) -> ReplyStream:
        """Start a streamed reply. Where ``body`` names a model, no other one of this machine may answer."""
        stream = ReplyStream(body.get("model"), self)
        stream.unreached.connect(partial(self._wait_again, stream, body))
        self.before_reply(body.get("model"), partial(self._start, stream, body))
        return stream

    def _start(self, stream: ReplyStream, body: dict[str, Any]) -> None:
        if not shiboken6.isValid(stream):
            return
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
                stream.fail(NOT_ANSWERING)

        QTimer.singleShot(NOTICED_MS, stream, give_up)

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
            failed(problem_of(reply)[0])
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


def _part(disposition: str, body: bytes = b"") -> QHttpPart:
    part = QHttpPart()
    part.setHeader(QNetworkRequest.KnownHeaders.ContentDispositionHeader, f"form-data; {disposition}")
    if body:
        part.setBody(QByteArray(body))
    return part


def _encoded(body: dict[str, Any]) -> QByteArray:
    text = json.dumps(body, ensure_ascii=False)
    try:
        return QByteArray(text.encode())
    except UnicodeEncodeError:  # lone surrogates, which a paste and names of files can hold, have no UTF-8
        return QByteArray(_LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text).encode())
