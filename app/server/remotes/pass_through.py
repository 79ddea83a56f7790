"""Requests that name a remote's model go there as they are, and come back as they come: whatever the protocol is.

This layer stands before the routes, and behind the checks of host, origin, key and size.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.server.calls.speed import wanted_speed
from app.server.http.errors import (
    SERVER,
    ApiError,
    ErrorAnswer,
    ModelNotFound,
    from_exception,
    from_http_exception,
    refuse,
)
from app.server.http.limits import INTERNAL, send_error
from app.server.http.sse import HEADERS, PING, PING_SECONDS, ClientGone, while_connected
from app.server.remotes.figures import RemoteFigures, RemoteRequest
from app.server.remotes.store import Remote, RemoteStore
from app.server.remotes.upstream import (
    ModelLists,
    RemoteUnreachable,
    Upstream,
    error_text,
    kept_headers,
    read_all,
    unreachable,
)
from core.values.errors import BadRequest
from core.values.messages import FinishReason
from core.values.request import Lane
from models.formatting.program import PROGRAM

if TYPE_CHECKING:
    import httpx

PATHS = frozenset(
    {
        "/v1/chat/completions",
        "/v1/completions",
        "/v1/responses",
        "/v1/embeddings",
        "/v1/rerank",
        "/v1/messages",
        "/v1/messages/count_tokens",
        "/completion",
        "/infill",
        "/embedding",
        "/embeddings",
        "/rerank",
        "/tokenize",
        "/detokenize",
        "/apply-template",
    }
)
# Here a remote's model could be named too, and would be taken for one of this machine.
_NOT_FOR_REMOTES = frozenset(
    {"/slipstream/load", "/slipstream/unload", "/api/chat", "/api/generate", "/api/embed", "/api/embeddings"}
)
# A whole reply is held until it is complete, so that one that breaks can be answered by somebody else: vectors of
# 2,048 texts as JSON are about this large. A line of a stream is one token, or one image.
_MAX_REPLY, _MAX_LINE, _MAX_ERROR = 256 << 20, 32 << 20, 1 << 20
_BAD_GATEWAY = ErrorAnswer(502, SERVER, "remote_unavailable", may_retry=True)


class Remotes:
    """The remotes of a server: what is set, their connections, their models and their figures."""

    def __init__(self, store: RemoteStore) -> None:
        self.store = store
        self.upstream = Upstream(store)
        self.lists = ModelLists(self.upstream)
        self.figures = RemoteFigures()


@dataclass(frozen=True, slots=True)
class Call:
    """A request for a remote: ``body`` as it came, but for the fields that are ours."""

    remote: Remote
    model: str
    body: dict[str, Any]
    lane: Lane

    @property
    def streams(self) -> bool:
        """Whether the reply comes in pieces."""
        return self.body.get("stream") is True

    def encoded(self, model: str) -> bytes:
        """Return the body for another name of the model."""
        return json.dumps(self.body | {"model": model}, separators=(",", ":")).encode()


class PassThrough:
    """Sends requests on that name a remote's model, as NAME/MODEL; all others go to the routes."""

    def __init__(self, app: ASGIApp, remotes: Remotes, ping_seconds: float = PING_SECONDS) -> None:
        self._app = app
        self._remotes = remotes
        self._ping_seconds = ping_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, to a remote or to the routes."""
        may_name = scope["type"] == "http" and scope["method"] == "POST" and scope["path"] in PATHS | _NOT_FOR_REMOTES
        remotes = self._remotes.store.all() if may_name else {}
        if not remotes:
            await self._app(scope, receive, send)
            return
        try:
            body = await _read(receive)
            call = _call(scope, body, remotes)
        except ClientGone:
            return
        except HTTPException as error:  # of the layers before this one, about the body
            await send_error(scope, send, from_http_exception(error, "POST", scope["path"], ()), error.headers)
            return
        except (ApiError, BadRequest) as error:
            await send_error(scope, send, from_exception(error))
            return
        if call is None:
            await self._app(scope, _replay(body, receive), send)
            return
        await self._answer(call, scope, receive, send)

    async def _answer(self, call: Call, scope: Scope, receive: Receive, send: Send) -> None:
        reply = _Reply(scope, send, call)
        failure: ApiError | None = None
        try:
            request = self._remotes.figures.open(call.remote.name, call.model, call.lane)
        except ApiError as error:
            await reply.refuse(error)
            return
        reason = FinishReason.FAILED
        try:
            failure = await while_connected(receive, self._ask(call, scope, reply, request))
            reason = FinishReason.STOP if reply.is_good else FinishReason.FAILED
        except ClientGone:
            reason = FinishReason.CANCELLED
            return
        except Exception as error:
            if request.ended_by is not None:
                reason = FinishReason.CANCELLED
            await reply.refuse(from_exception(error))
        finally:
            self._remotes.figures.close(request, reason)
        if failure is None:
            return
        if call.remote.fallback is None:
            await reply.refuse(failure)
            return
        self._remotes.figures.n_fallbacks[call.remote.name] += 1
        body = call.encoded(call.remote.fallback)
        await self._app(_with_length(scope, body), _replay(body, receive), reply.for_fallback())

    async def _ask(self, call: Call, scope: Scope, reply: _Reply, request: RemoteRequest) -> ApiError | None:
        """Let the remote answer. Return its failure where nothing of a reply was sent yet and others may answer."""
        work = asyncio.ensure_future(self._exchange(call, scope, reply, request))
        request.work = work
        pinging = asyncio.ensure_future(reply.ping(self._ping_seconds)) if call.streams else None
        try:
            return await work
        except asyncio.CancelledError:
            if request.ended_by is None:
                raise
            raise request.ended_by from None
        finally:
            work.cancel()
            if pinging is not None:
                pinging.cancel()
                await asyncio.gather(pinging, return_exceptions=True)

    async def _exchange(self, call: Call, scope: Scope, reply: _Reply, request: RemoteRequest) -> ApiError | None:
        import httpx

        upstream = self._remotes.upstream
        try:
            client = await upstream.client()
            sent = await upstream.request(
                call.remote, scope["path"], scope["headers"], call.encoded(call.model), scope.get("query_string", b"")
            )
            response = await client.send(sent, stream=True)
            try:
                return await self._forward(call, response, reply, request)
            finally:
                await response.aclose()
        except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, ValueError, RemoteUnreachable) as error:
            told = error if isinstance(error, RemoteUnreachable) else unreachable(call.remote, error)
            failure = ApiError(_BAD_GATEWAY, told.message)
            if reply.has_begun:
                raise failure from error
            return failure

    async def _forward(
        self, call: Call, response: httpx.Response, reply: _Reply, request: RemoteRequest
    ) -> ApiError | None:
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.status_code >= 400:
            failure = _RemoteError(call.remote, response, await _beginning(response))
            if response.status_code >= 500 or response.status_code == 429:
                return failure
            raise failure
        if response.status_code >= 300:
            raise RemoteUnreachable(
                f"The remote {call.remote.name} sends to another address ({response.status_code}): requests are not "
                f"sent there. Add it under its own one with `{PROGRAM} remotes add`."
            )
        request.has_slot = True
        if kind == "text/event-stream":
            async for lines in _whole_lines(response):
                for line in lines.split(b"\n"):
                    request.see_line(line)
                await reply.begin(response)
                await reply.write(lines)
            await reply.end(response)
            return None
        if kind not in ("application/json", "application/problem+json"):
            raise RemoteUnreachable(
                f"The remote {call.remote.name} answers with {kind or 'a body of no type'} instead of JSON: is its "
                "address right? It usually ends with /v1."
            )
        body = await read_all(response, _MAX_REPLY)
        request.see_json(body)
        await reply.send_whole(response, body)
        return None


class _RemoteError(ApiError):
    """A remote's refusal: its own status, and its own body where that has the form of the path."""

    def __init__(self, remote: Remote, response: httpx.Response, body: bytes) -> None:
        status = response.status_code
        is_locked = status in (401, 403)
        answer = ErrorAnswer(status, SERVER, "remote_error")
        message = f"The remote {remote.name} answers {status}: {error_text(body)}"
        if is_locked:
            answer = ErrorAnswer(status, "authentication_error", "remote_key_refused")
            message = (
                f"The remote {remote.name} refuses its key ({status}: {error_text(body)}). Give it another with "
                f"`{PROGRAM} remotes add {remote.name} {remote.url}`."
            )
        super().__init__(answer, message)
        self._own = b"" if is_locked else body  # the client has another key than we
        self._headers = {name.decode(): value.decode("latin-1") for name, value in kept_headers(response.headers)}
        self._headers.pop("content-type", None)

    def encoded(self, path: str = "") -> bytes:
        """Return the remote's own words where clients of this path understand them."""
        try:
            found = json.loads(self._own)
        except (ValueError, RecursionError):
            return super().encoded(path)
        translated = json.loads(super().encoded(path))
        is_alike = isinstance(found, dict) and isinstance(found.get("error"), type(translated["error"]))
        if not is_alike or not found.keys() >= translated.keys():
            return super().encoded(path)
        return json.dumps(found, ensure_ascii=False).encode("utf-8", "replace")

    def headers(self) -> dict[str, str]:
        """Return what the remote said of trying again."""
        return self._headers


class _Reply:
    """What the client gets. It begins once, with the first piece of the remote's answer or a comment, and ends once."""

    def __init__(self, scope: Scope, send: Send, call: Call) -> None:
        self._scope, self._send, self._call = scope, send, call
        self._has_head = False  # the status and headers were sent
        self._n_sent = 0
        self._tail = b"\n\n"
        self._is_over = False
        self.has_begun = False  # a piece of the answer was sent
        self.is_good = False

    async def begin(self, response: httpx.Response) -> None:
        """Send the head of a stream, once."""
        self.has_begun = True
        if not self._has_head:
            await self._head(200, [*HEADERS, *_without_type(response)])

    async def write(self, lines: bytes) -> None:
        """Send some lines of a stream."""
        self._n_sent += 1
        self._tail = (self._tail + lines)[-2:]
        await self._send({"type": "http.response.body", "body": lines, "more_body": True})

    async def end(self, response: httpx.Response) -> None:
        """End a stream that is complete."""
        await self.begin(response)
        self.is_good = True
        await self._close()

    async def send_whole(self, response: httpx.Response, body: bytes) -> None:
        """Send a reply that did not come in pieces; as an event where the client got comments before."""
        self.has_begun = self.is_good = True
        if self._has_head:
            await self.write(b"data: " + b" ".join(body.splitlines()) + b"\n\n")
            await self._close()
            return
        length = (b"content-length", str(len(body)).encode())
        await self._head(
            response.status_code, [(b"content-type", b"application/json"), length, *_without_type(response)]
        )
        self._is_over = True
        await self._send({"type": "http.response.body", "body": body})

    async def refuse(self, error: ApiError) -> None:
        """Send an error as the whole answer, or as the last event of a stream that has begun."""
        if self._is_over:
            return
        if not self._has_head:
            self._is_over = True
            await send_error(self._scope, self._send, error, {"x-slipstream-remote": self._call.remote.name})
            return
        if not self._tail.endswith(b"\n\n"):
            await self.write(b"\n")  # ends the event that was not complete
        await self.write(error.event(self._scope["path"]))
        await self._close()

    async def ping(self, seconds: float) -> None:
        """Send a comment whenever nothing was sent for so long."""
        n_seen = 0
        while True:
            await asyncio.sleep(seconds)
            if self._n_sent == n_seen and self._tail.endswith(b"\n\n") and not self._is_over:
                if not self._has_head:
                    await self._head(200, HEADERS)
                await self._send({"type": "http.response.body", "body": PING, "more_body": True})
            n_seen = self._n_sent

    def for_fallback(self) -> Send:
        """Return what sends the answer of a model of this machine in place of the remote's."""
        has_head, is_error = self._has_head, False

        async def send(message: Message) -> None:
            nonlocal is_error
            if message["type"] == "http.response.start":
                is_error = message["status"] >= 400
                if has_head:
                    return
                named = (b"x-slipstream-fallback", str(self._call.remote.fallback).encode("ascii", "replace"))
                message = {**message, "headers": [*message["headers"], named]}
            elif has_head and is_error and message.get("body"):
                error = ApiError(_BAD_GATEWAY, error_text(message["body"]))
                message = {**message, "body": error.event(self._scope["path"])}
            await self._send(message)

        return send

    async def _head(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self._has_head = True
        named = (b"x-slipstream-remote", self._call.remote.name.encode())
        await self._send({"type": "http.response.start", "status": status, "headers": [*headers, named]})

    async def _close(self) -> None:
        self._is_over = True
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})


async def _read(receive: Receive) -> bytes:
    """Return the body; the layers before this one bound its size and the time it takes."""
    parts = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientGone
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return what gives a body that was read already, and then whatever else comes."""
    is_given = False

    async def again() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _with_length(scope: Scope, body: bytes) -> Scope:
    fields = [
        (name, value) for name, value in scope["headers"] if name not in (b"content-length", b"transfer-encoding")
    ]
    return {**scope, "headers": [*fields, (b"content-length", str(len(body)).encode())]}


def _call(scope: Scope, body: bytes, remotes: dict[str, Remote]) -> Call | None:
    """Return the call of a remote's model, None for all others. Raises ApiError and BadRequest."""
    # Most requests are for this machine, and some are large: those that cannot name a remote are not parsed twice.
    if not any(f'"{name}{slash}'.encode() in body for name in remotes for slash in ("/", "\\/")):
        return None
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        return None  # the route says what is wrong
    named = fields.get("model") if isinstance(fields, dict) else None
    name, slash, model = named.partition("/") if isinstance(named, str) else ("", "", "")
    if not slash or name not in remotes:
        return None
    remote = remotes[name]
    if not model or (remote.models and model not in remote.models):
        raise ModelNotFound(str(named), [f"{name}/{one}" for one in remote.models])
    if scope["path"] in _NOT_FOR_REMOTES:
        raise refuse(
            400,
            f"{name} is a remote, whose models answer OpenAI's, Anthropic's and llama.cpp's routes. "
            f"{scope['path']} is for models of this machine.",
            param="model",
        )
    speed, tier = (fields[key] if isinstance(fields.get(key), str) else None for key in ("speed", "service_tier"))
    try:
        lane = wanted_speed(speed, tier).lane
    except BadRequest:
        lane = Lane.STANDARD  # what the fields mean there is not for us to say
    if INTERNAL in scope:
        fields.pop("speed", None)  # our own batches add it, and not every server takes fields that it does not know
    return Call(remote, model, fields, lane)


async def _beginning(response: httpx.Response) -> bytes:
    """Return what an error says, as far as it can be of use."""
    try:
        return await read_all(response, _MAX_ERROR)
    except ValueError:
        return b""


async def _whole_lines(response: httpx.Response) -> AsyncIterator[bytes]:
    """Yield what comes, up to the last end of a line: half a line would spoil what is sent behind it."""
    held = bytearray()
    async for part in response.aiter_bytes():
        end = part.rfind(b"\n") + 1
        if end:
            yield bytes(held) + part[:end]
            held.clear()
        held += part[end:]
        if len(held) > _MAX_LINE:
            raise ValueError(f"a line of its stream is longer than {_MAX_LINE:,} bytes")
    if held:
        yield bytes(held)


def _without_type(response: httpx.Response) -> list[tuple[bytes, bytes]]:
    return [(name, value) for name, value in kept_headers(response.headers) if name != b"content-type"]
