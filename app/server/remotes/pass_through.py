"""Requests that name a remote's model go there as they are, and come back as they come: whatever the protocol is.

This layer stands before the routes, and behind the checks of host, origin, key and size.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, parse_qsl, urlencode

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.server.calls.speed import wanted_speed
from app.server.http.errors import ApiError, from_exception, from_http_exception, refuse
from app.server.http.limits import INTERNAL, send_error
from app.server.http.sse import HEADERS, PING, PING_SECONDS, ClientGone, while_connected
from app.server.remotes.exchange import BAD_GATEWAY, RemoteError, Remotes, ask_remote
from app.server.remotes.figures import RemoteRequest
from app.server.remotes.upstream import Sent, error_text, kept_headers
from core.values.errors import BadRequest
from core.values.messages import FinishReason
from core.values.request import Lane

if TYPE_CHECKING:
    import httpx

PATHS = frozenset(
    {
        "/v1/chat/completions",
        "/v1/chat/completions/control",
        "/v1/chat/completions/input_tokens",
        "/v1/completions",
        "/v1/responses",
        "/v1/responses/input_tokens",
        "/v1/embeddings",
        "/v1/rerank",
        "/v1/messages",
        "/v1/messages/count_tokens",
        "/completion",
        "/infill",
        "/embedding",
        "/embeddings",
        "/rerank",
        "/reranking",
        "/v1/reranking",
        "/v2/rerank",
        "/tokenize",
        "/detokenize",
        "/apply-template",
    }
)
# LM Studio's older routes are OpenAI's, and are asked for there.
_OPENAI_PATHS = {f"/api/v0/{name}": f"/v1/{name}" for name in ("chat/completions", "completions", "embeddings")}
# Here a remote's model could be named too, and would be taken for one of this machine.
_NOT_FOR_REMOTES = frozenset(
    {
        "/slipstream/load",
        "/slipstream/unload",
        "/models/load",
        "/models/unload",
        "/api/v1/models/load",
        "/api/v1/models/unload",
    }
)
_READ = PATHS | _OPENAI_PATHS.keys() | _NOT_FOR_REMOTES
# Routes of llama-server about the model that the query names. Metrics are no JSON, and ours count remotes too.
_ASKED = ("/props", "/slots", "/lora-adapters")
_NAMED_IN_QUERY = (*_ASKED, "/metrics")


class PassThrough:
    """Sends requests on that name a remote's model, as NAME/MODEL; all others go to the routes."""

    def __init__(self, app: ASGIApp, remotes: Remotes, ping_seconds: float = PING_SECONDS) -> None:
        self._app = app
        self._remotes = remotes
        self._ping_seconds = ping_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, to a remote or to the routes."""
        has_name = scope["type"] == "http" and _has_name_in_query(scope)
        is_read = scope["type"] == "http" and scope["method"] == "POST" and scope["path"] in _READ
        remotes = self._remotes.store.all() if is_read or has_name else {}
        if not remotes:
            await self._app(scope, receive, send)
            return
        body = b""
        try:
            if has_name:
                request = await self._asked(scope)
            else:
                body = await _read(receive)
                request = await self._request(scope, body)
        except ClientGone:
            return
        except HTTPException as error:  # of the layers before this one, about the body
            await send_error(scope, send, from_http_exception(error, "POST", scope["path"], ()), error.headers)
            return
        except (ApiError, BadRequest) as error:
            await send_error(scope, send, from_exception(error))
            return
        if request is None:
            await self._app(scope, receive if has_name else _replay(body, receive), send)
            return
        await self._answer(request, scope, receive, send)

    async def _request(self, scope: Scope, body: bytes) -> RemoteRequest | None:
        """Return the request for a remote's model, None for all others. Raises ApiError and BadRequest."""
        # Most requests are for this machine, and some are large: those that cannot name a remote are not parsed twice.
        known = self._remotes.store.all()
        if not any(f'"{name}{slash}'.encode() in body for name in known for slash in ("/", "\\/")):
            return None
        try:
            fields = json.loads(body)
        except (ValueError, RecursionError):
            return None  # the route says what is wrong
        named_by = "instance_id" if scope["path"] == "/api/v1/models/unload" else "model"
        found = await self._remotes.find(fields.get(named_by) if isinstance(fields, dict) else None)
        if found is None:
            return None
        if scope["path"] in _NOT_FOR_REMOTES:
            name, path = found.remote.name, scope["path"]
            message = f"{name} is a remote: its models are loaded there. {path} is for models of this machine."
            raise refuse(400, message, param=named_by)
        speed, tier = (fields[key] if isinstance(fields.get(key), str) else None for key in ("speed", "service_tier"))
        try:
            lane = wanted_speed(speed, tier).lane
        except BadRequest:
            lane = Lane.STANDARD  # what the fields mean there is not for us to say
        if INTERNAL in scope:
            fields.pop("speed", None)  # our own batches add it, and not every server takes fields it does not know
        return RemoteRequest(found, lane, fields)

    async def _asked(self, scope: Scope) -> RemoteRequest | None:
        """Return the request for what a remote says of a model, None for models of this machine. Raises ApiError."""
        fields = parse_qs(scope["query_string"].decode("latin-1"))
        found = await self._remotes.find(fields.get("model", [""])[0])
        if found is None:
            return None
        if scope["path"] not in _ASKED or scope["method"] not in ("GET", "HEAD"):
            what = f"{scope['method']} {scope['path']}"
            raise refuse(400, f"{found.remote.name} is a remote: {what} is for models of this machine.", param="model")
        return RemoteRequest(found)

    async def _answer(self, request: RemoteRequest, scope: Scope, receive: Receive, send: Send) -> None:
        reply = _ReplyToClient(scope, send, request)
        fallback: str | None = None
        try:
            self._remotes.figures.open(request)
        except ApiError as error:
            await reply.refuse(error)
            return
        reason = FinishReason.FAILED
        try:
            fallback = await while_connected(receive, self._ask(request, scope, reply))
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
        if fallback is None:
            return
        body = request.encoded(fallback)
        there = _with_length(_naming(scope, fallback), body)
        await self._app(there, _replay(body, receive), reply.for_fallback(fallback))

    async def _ask(self, request: RemoteRequest, scope: Scope, reply: _ReplyToClient) -> str | None:
        """Let the remote answer, with comments to a stream that waits; as ``ask``."""
        path: str = _OPENAI_PATHS.get(scope["path"]) or scope["path"]
        is_asked = path in _ASKED
        query = _naming(scope, request.to.id).get("query_string", b"")
        sent = Sent(path, scope["headers"], query, "GET" if is_asked else "POST")
        pinging = asyncio.ensure_future(reply.ping(self._ping_seconds)) if request.streams else None
        try:
            return await ask_remote(self._remotes, request, sent, reply)
        except RemoteError as error:
            if not is_asked or error.answer.status not in (404, 405):
                raise
            raise refuse(
                404,
                f"{error.message.rstrip('.')}. {path} is a route of llama-server's: what other servers say of a model "
                f"is at /v1/models/{request.to.name}.",
                param="model",
            ) from None
        finally:
            if pinging is not None:
                pinging.cancel()
                await asyncio.gather(pinging, return_exceptions=True)


class _ReplyToClient:
    """What the client gets. It begins once, with the first piece of the remote's answer or a comment, and ends once."""

    def __init__(self, scope: Scope, send: Send, request: RemoteRequest) -> None:
        self._scope, self._send, self._remote = scope, send, request.to.remote.name
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
            await send_error(self._scope, self._send, error, {"x-slipstream-remote": self._remote})
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

    def for_fallback(self, model: str) -> Send:
        """Return what sends the answer of a model of this machine in place of the remote's."""
        has_head, is_error = self._has_head, False

        async def send(message: Message) -> None:
            nonlocal is_error
            if message["type"] == "http.response.start":
                is_error = message["status"] >= 400
                if has_head:
                    return
                named = (b"x-slipstream-fallback", model.encode("ascii", "replace"))
                message = {**message, "headers": [*message["headers"], named]}
            elif has_head and is_error and message.get("body"):
                error = ApiError(BAD_GATEWAY, error_text(message["body"]))
                message = {**message, "body": error.event(self._scope["path"])}
            await self._send(message)

        return send

    async def _head(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self._has_head = True
        named = (b"x-slipstream-remote", self._remote.encode())
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


def _has_name_in_query(scope: Scope) -> bool:
    return scope["path"] in _NAMED_IN_QUERY and b"model=" in scope.get("query_string", b"")


def _naming(scope: Scope, model: str) -> Scope:
    """Return the scope with another name of the model, where its query has one."""
    if not _has_name_in_query(scope):
        return scope
    fields = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    named = urlencode([(name, model if name == "model" else value) for name, value in fields])
    return {**scope, "query_string": named.encode("ascii")}


def _without_type(response: httpx.Response) -> list[tuple[bytes, bytes]]:
    return [(name, value) for name, value in kept_headers(response.headers) if name != b"content-type"]
