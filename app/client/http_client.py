"""A lean client of our own endpoint: typed events from a stream, no dependency that is slow to import."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from urllib.parse import SplitResult, urlencode, urlsplit

from app.environment.exit_codes import ExitCode
from core.values.errors import SlipstreamError

_SHORT_SECONDS = 10.0  # for answers that a server has at once
_UNUSABLE_INPUT = (400, 413)
_LOCKED_OUT = (401, 403)


def _exit_code(status: int | None, code: str | None) -> ExitCode:
    if code in ("model_not_found", "model_load_failed"):
        return ExitCode.MODEL
    if status in _LOCKED_OUT or code == "remote_unavailable":
        return ExitCode.UNREACHABLE
    return ExitCode.USAGE if status in _UNUSABLE_INPUT else ExitCode.ERROR


class ServerUnreachable(SlipstreamError):
    """Nobody answers at the address."""

    exit_code = ExitCode.UNREACHABLE


class ServerRefused(SlipstreamError):
    """The server answered with an error; ``status`` is HTTP's (None inside a stream), ``code`` OpenAI's.

    ``exit_code`` is what that means to a script. ``fields`` is the whole error as it was sent.
    """

    def __init__(
        self,
        message: str,
        status: int | None = None,
        code: str | None = None,
        fields: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.fields = status, code, fields
        self.exit_code = _exit_code(status, code)


class StreamBroken(SlipstreamError):
    """The connection ended before the reply did."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text of the reply."""

    text: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The reply is complete. ``timings`` is the server's object of that name (empty for other servers)."""

    reason: str
    timings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Usage:
    """OpenAI's usage object as it was sent."""

    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AnsweringModel:
    """The model that answers."""

    model: str


@dataclass(frozen=True, slots=True)
class ReplyProgress:
    """How far a reply is that is thought over first: the server's object of that name."""

    fields: Mapping[str, Any]


ReplyEvent = TextDelta | Finished | Usage | AnsweringModel | ReplyProgress


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """The state of a server: ``phase`` as in ``core.values.messages``, ``progress`` 0 to 1 while it loads ``model``."""

    phase: str
    progress: float = 0.0
    problem: str | None = None
    model: str | None = None
    is_toy: bool = False
    fields: Mapping[str, Any] = field(default_factory=dict)


class Client:
    """Speaks to one server. Each call opens its own connection and closes it, so a cancelled stream frees its slot.

    ``timeout`` is in seconds and for everything but the stream, which may wait for its turn as long as it takes.
    Every method raises ServerUnreachable when nobody answers and ServerRefused when the server says no.
    """

    def __init__(self, url: str, api_key: str | None = None, timeout: float = _SHORT_SECONDS) -> None:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ServerUnreachable(f"{url!r} is not an address of a server; it looks like http://127.0.0.1:8642.")
        self.url = f"{parts.scheme}://{parts.netloc}"
        self._parts, self._port = parts, _port(parts)
        self._api_key, self._timeout = api_key, timeout

    @property
    def headers(self) -> dict[str, str]:
        """The headers of every request."""
        key = {"Authorization": f"Bearer {self._api_key}"} if self._api_key else {}
        return {"Content-Type": "application/json", **key}

    def state(self) -> ServerStatus:
        """Return where the server stands."""
        fields = self._json("GET", "/slipstream/state")
        return ServerStatus(
            phase=str(fields.get("phase", "")),
            progress=float(fields.get("progress") or 0.0),
            problem=fields.get("problem"),
            model=fields.get("model"),
            is_toy=bool(fields.get("is_toy")),
            fields=fields,
        )

    def models(self) -> tuple[str, ...]:
        """Return the names of the models that can be asked for."""
        return tuple(str(entry["id"]) for entry in self._json("GET", "/v1/models").get("data", ()))

    def load(self, model: str) -> None:
        """Ask the server to load a model; its state says when it is there."""
        self._json("POST", "/slipstream/load", {"model": model})

    def stream_chat(self, body: Mapping[str, Any]) -> Iterator[ReplyEvent]:
        """Yield the events of one reply to a chat completion ``body``, ``Finished`` among the last.

        Raises StreamBroken when the connection ends first. Closing the iterator cancels the request.
        """
        whole = {**body, "stream": True, "stream_options": {"include_usage": True}}
        with self._exchange("POST", "/v1/chat/completions", whole, is_patient=True) as response:
            yield from _reply_events(response)

    def call(self, method: str, path: str, fields: Mapping[str, Any]) -> Any:
        """Ask a route with these fields, wait as long as it takes, and return the JSON of its answer."""
        with self._exchange(*_asked(method, path, fields), is_patient=True) as response:
            try:
                return json.loads(response.read())
            except (OSError, ValueError, http.client.HTTPException) as error:
                raise StreamBroken("The connection to the server broke in the middle of the answer.") from error

    def events(self, method: str, path: str, fields: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Ask a route with these fields for a stream, and yield its events; raises StreamBroken where it breaks off."""
        accept = {"Accept": "text/event-stream"}
        with self._exchange(*_asked(method, path, fields), is_patient=True, more=accept) as response:
            yield from _chunks(response)

    def _json(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        with self._exchange(method, path, body) as response:
            try:
                parsed = json.loads(response.read())
            except (OSError, ValueError, http.client.HTTPException) as error:
                raise ServerUnreachable(f"What answers at {self.url} is not a Slipstream server.") from error
        return parsed if isinstance(parsed, dict) else {}

    @contextmanager
    def _exchange(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        is_patient: bool = False,
        more: Mapping[str, str] | None = None,
    ) -> Iterator[http.client.HTTPResponse]:
        """Send a request and hand out the response; ``is_patient`` waits for it as long as it takes.

        ``more`` are headers beside the usual ones.
        """
        data = None if body is None else json.dumps(body).encode()
        with closing(self._connection()) as connection:
            try:
                connection.connect()
                connection.sock.settimeout(None if is_patient else self._timeout)
                connection.request(method, path, data, {**self.headers, **(more or {})})
                response = connection.getresponse()
            except (OSError, http.client.HTTPException) as error:
                raise ServerUnreachable(f"No server answers at {self.url} ({_reason(error)}).") from error
            except ValueError:  # of a name that none can have, or a header; the error would show the key
                raise ServerUnreachable(
                    f"{self.url} cannot be asked: the address or the key has characters that it cannot have."
                ) from None
            with closing(response):
                if response.status >= 400:
                    raise _refusal(response)
                yield response

    def _connection(self) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        return kind(str(self._parts.hostname), self._port, timeout=self._timeout)


def _asked(method: str, path: str, fields: Mapping[str, Any]) -> tuple[str, str, Mapping[str, Any] | None]:
    """Return method, path and body: what a GET asks for is in its query."""
    if method != "GET":
        return method, path, fields
    return method, f"{path}?{urlencode(fields)}" if fields else path, None


def _port(parts: SplitResult) -> int | None:
    try:
        return parts.port
    except ValueError as error:
        raise ServerUnreachable(f"{parts.netloc} is not an address of a server: {error}.") from error


def _reason(error: Exception) -> str:
    """Return what went wrong without the number that the system has for it."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__


def _refusal(response: http.client.HTTPResponse) -> ServerRefused:
    try:
        problem = json.loads(response.read())["error"]
        return ServerRefused(str(problem["message"]), response.status, problem.get("code"), problem)
    except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
        return ServerRefused(f"The server answered {response.status} {response.reason}.", response.status)


def _reply_events(response: http.client.HTTPResponse) -> Iterator[ReplyEvent]:
    model, is_finished = "", False
    n_thoughts, began = 0, time.monotonic()
    for chunk in _chunks(response):
        if (name := chunk.get("answered_by") or chunk.get("model")) and name != model:
            model = name
            yield AnsweringModel(name)
        if any((choice.get("delta") or {}).get("reasoning_content") for choice in chunk.get("choices") or ()):
            n_thoughts += 1
            yield ReplyProgress({"stage": "thinking", "tokens": n_thoughts, "seconds": time.monotonic() - began})
        for event in _chunk_events(chunk):
            is_finished = is_finished or isinstance(event, Finished)
            yield event
    if not is_finished:
        raise StreamBroken("The server ended the connection before the reply was complete.")


def _chunk_events(chunk: Mapping[str, Any]) -> Iterator[ReplyEvent]:
    for choice in chunk.get("choices") or ():
        text = (choice.get("delta") or {}).get("content")
        if text:
            yield TextDelta(text)
        if choice.get("finish_reason"):
            yield Finished(choice["finish_reason"], chunk.get("timings") or {})
    if isinstance(progress := chunk.get("progress"), dict):
        yield ReplyProgress(progress)
    if chunk.get("usage"):
        yield Usage(chunk["usage"])


def _chunks(response: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    """Yield the JSON of each server-sent event up to ``[DONE]``; lines that are not data are comments."""
    for line in _lines(response):
        if not line.startswith(b"data:"):
            continue
        data = line[5:].strip()
        if data == b"[DONE]":
            return
        try:
            chunk = json.loads(data)
        except ValueError as error:
            raise StreamBroken("The server sent a line that is not JSON.") from error
        if problem := chunk.get("error"):
            raise ServerRefused(str(problem.get("message", problem)), code=problem.get("code"), fields=problem)
        yield chunk


def _lines(response: http.client.HTTPResponse) -> Iterator[bytes]:
    try:
        yield from response
    except (OSError, http.client.HTTPException) as error:
        raise StreamBroken("The connection to the server broke in the middle of the reply.") from error
