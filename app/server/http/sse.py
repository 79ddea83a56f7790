"""Streams: server-sent events and lines of JSON, their responses and their encoding."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Coroutine
from json.encoder import encode_basestring_ascii
from typing import Any, ClassVar, TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.server.http.errors import from_exception

T = TypeVar("T")


class ClientGone(Exception):
    """The client closed the connection; nobody hears the answer."""


async def while_connected(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """Return what ``work`` returns; cancel it as soon as the client disconnects, then raise ClientGone."""
    working = asyncio.ensure_future(work)
    watching = asyncio.ensure_future(_until_gone(receive))
    try:
        await asyncio.wait((working, watching), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientGone
    finally:
        await _end(watching)
        await _end(working)


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _end(task: asyncio.Future[Any]) -> None:
    task.cancel()
    # Its own error was raised by result(), or is of no interest to a client that has gone.
    await asyncio.gather(task, return_exceptions=True)


# The key of a scope by which the pieces of a stream go straight to the connection. The layers around the application
# look only at the head of an answer, but each piece would pass through all of them.
DIRECTLY = "slipstream.directly"
PING_SECONDS = 15.0
PING = b": ping\n\n"
DONE = b"data: [DONE]\n\n"
HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]

encode_text = encode_basestring_ascii


def encode_event(data: dict[str, Any]) -> bytes:
    """Return one event with a JSON object."""
    return b"data: " + json.dumps(data, separators=(",", ":")).encode() + b"\n\n"


def encode_named(event: dict[str, Any]) -> bytes:
    """Return one event with a JSON object, under the name that its ``type`` is."""
    return f"event: {event['type']}\n".encode() + encode_event(event)


class EventStream(Response):
    """Sends what a generator yields.

    Until the first bytes come, an error of the generator is an ordinary HTTP error; later it is an error event,
    after which the stream ends. While nothing comes, a comment each 15 seconds keeps the connection alive.
    """

    headers_sent: ClassVar = HEADERS
    ping = PING

    def __init__(self, events: AsyncGenerator[bytes, None], ping_seconds: float = PING_SECONDS) -> None:
        self.status_code = 200
        self.background = None
        self._events = events
        self._ping_seconds = ping_seconds
        self._has_started = False
        self._n_sent = 0
        self._path = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream until the generator ends or the client goes away."""
        self._path = str(scope["path"])
        self._send_body = scope.get(DIRECTLY, send)
        if scope.get("method") == "HEAD":  # a stream may have no end
            await self._start(send)
            await send({"type": "http.response.body", "body": b""})
            await self._events.aclose()
            return
        pinging = asyncio.ensure_future(self._ping(send))
        try:
            await while_connected(receive, self._send_all(send))
        except ClientGone:
            return
        finally:
            pinging.cancel()
            await self._events.aclose()

    async def _send_all(self, send: Send) -> None:
        try:
            async for chunk in self._events:
                if not self._has_started:
                    await self._start(send)
                self._n_sent += 1
                await self._send_body({"type": "http.response.body", "body": chunk, "more_body": True})
        except Exception as error:
            if not self._has_started:
                raise
            body = from_exception(error).event(self._path)
            await send({"type": "http.response.body", "body": body, "more_body": True})
        if not self._has_started:
            await self._start(send)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _start(self, send: Send) -> None:
        self._has_started = True
        await send({"type": "http.response.start", "status": 200, "headers": self.headers_sent})

    async def _ping(self, send: Send) -> None:
        n_seen = 0
        while True:
            await asyncio.sleep(self._ping_seconds)
            if self._n_sent == n_seen:
                if not self._has_started:
                    await self._start(send)
                await send({"type": "http.response.body", "body": self.ping, "more_body": True})
            n_seen = self._n_sent


class LineStream(EventStream):
    """Sends JSON objects, each in a line of its own (NDJSON). ``ping`` is a line that says nothing new."""

    headers_sent: ClassVar = [(b"content-type", b"application/x-ndjson"), *HEADERS[1:]]

    def __init__(self, lines: AsyncGenerator[bytes, None], ping: bytes, ping_seconds: float = PING_SECONDS) -> None:
        super().__init__(lines, ping_seconds)
        self.ping = ping
