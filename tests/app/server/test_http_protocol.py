"""What is said on a connection before there is a request."""

from __future__ import annotations

import asyncio
import json
from copy import copy

import uvicorn
from uvicorn.server import ServerState

from app.server.http.http_server import MAX_HEAD, HttpProtocol


class Wire(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.is_closed = False

    def write(self, data: bytes) -> None:  # type: ignore[override]
        self.written += data

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


async def no_application(scope, receive, send) -> None:
    await asyncio.Event().wait()


def said_to(*parts: bytes, to=no_application) -> Wire:
    """Return the wire after a client has sent these parts; ``to`` has each of its turns in between."""

    async def run() -> Wire:
        config = uvicorn.Config(to, http=HttpProtocol, log_config=None)
        config.load()
        protocol, wire = HttpProtocol(config, ServerState(), {}), Wire()
        protocol.connection_made(wire)
        for part in parts:
            if not wire.is_closed:
                protocol.data_received(part)
                await asyncio.sleep(0)
        for _ in range(10):
            await asyncio.sleep(0)
        said = copy(wire)
        for task in protocol.tasks:
            task.cancel()
        return said

    return asyncio.run(run())


def test_an_offer_to_speak_another_protocol_is_left_out_and_the_body_is_read() -> None:
    seen: list[tuple[str, bytes]] = []

    async def application(scope, receive, send) -> None:
        body, has_more = b"", True
        while has_more:
            message = await receive()
            body, has_more = body + message["body"], message["more_body"]
        seen.append((scope["path"], body))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})

    offer = b"Host: a\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAEAAEAA\r\nUpgrade: h2c\r\n"
    whole = b"POST /whole HTTP/1.1\r\n" + offer + b'Content-Length: 7\r\n\r\n{"a":1}'
    chunked = b"POST /chunked HTTP/1.1\r\n" + offer + b'Transfer-Encoding: chunked\r\n\r\n7\r\n{"a":1}\r\n0\r\n\r\n'
    after = b"GET /after HTTP/1.1\r\nHost: a\r\n\r\n"
    for size in (1, 50, 10_000):
        parts = [sent[i : i + size] for sent in (whole, chunked, after) for i in range(0, len(sent), size)]
        said_to(*parts, to=application)
    assert seen == [("/whole", b'{"a":1}'), ("/chunked", b'{"a":1}'), ("/after", b"")] * 3


BEGIN = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\nX: "


def test_a_head_without_an_end_is_refused_and_long_ones_with_an_end_are_read() -> None:
    wire = said_to(BEGIN % 1, *[b"a" * 100_000] * (MAX_HEAD // 100_000 + 1))
    head, _, body = wire.written.partition(b"\r\n\r\n")
    assert wire.is_closed
    assert head.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
    assert json.loads(body)["error"]["code"] == "headers_too_large"
    head = BEGIN % (2 * MAX_HEAD) + b"a" * 50_000 + b"\r\n\r\n"
    wire = said_to(*[head[i : i + 10_000] for i in range(0, len(head), 10_000)], *[b"b" * 200_000] * 10)
    assert (wire.written, wire.is_closed) == (b"", False)
    head = b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * (MAX_HEAD // 2)
    wire = said_to(head, b"a\r\n\r\n", head, b"a\r\n\r\n", head, b"a\r\n\r\n")
    assert (wire.written, wire.is_closed) == (b"", False)
