"""A lean streaming client: many completions at once against one server, counted and timed."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

from app.server.http.http_server import loop_factory

_EVENT = b"data: {"


@dataclass(frozen=True)
class StreamedReply:
    """One streamed completion: seconds to its first text and to its end, tokens by the server's count, its text."""

    ttft: float
    total: float
    n_tokens: int
    text: str = ""
    n_cached: int = 0


@dataclass(frozen=True)
class LoadRun:
    """Replies that ran at once, and the seconds they took together."""

    replies: tuple[StreamedReply, ...]
    seconds: float

    @property
    def n_tokens(self) -> int:
        """Tokens of all replies."""
        return sum(reply.n_tokens for reply in self.replies)

    @property
    def rate(self) -> float:
        """Tokens per second of all replies together."""
        return self.n_tokens / self.seconds


def run_load(url: str, bodies: list[dict[str, object]], api_key: str | None = None) -> LoadRun:
    """Send every body to ``/v1/completions`` at once, streamed, and wait for all replies.

    The client only keeps what comes until the last reply has ended: it runs on the server's cores.
    """
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(_run_all(url, bodies, api_key))


async def _run_all(url: str, bodies: list[dict[str, object]], api_key: str | None) -> LoadRun:
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    loop = asyncio.get_running_loop()
    clients = [(await loop.create_connection(_Client, parts.hostname, parts.port))[1] for _ in bodies]
    began = time.perf_counter()
    for client, body in zip(clients, bodies, strict=True):
        client.ask(body, parts.netloc, api_key)
    await asyncio.gather(*(client.over for client in clients))
    seconds = time.perf_counter() - began
    return LoadRun(tuple(client.reply() for client in clients), seconds)


class _Client(asyncio.Protocol):
    """One connection with one request. ``over`` is done when the server has closed it."""

    def __init__(self) -> None:
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._parts: list[bytes] = []
        self._began = self._first = self._ended = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def ask(self, body: dict[str, object], host: str, api_key: str | None) -> None:
        """Send the request."""
        content = json.dumps({**body, "stream": True}).encode()
        key = f"Authorization: Bearer {api_key}\r\n" if api_key else ""
        head = (
            f"POST /v1/completions HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n{key}"
            f"Content-Length: {len(content)}\r\nConnection: close\r\n\r\n"
        )
        self._began = time.perf_counter()
        self._transport.write(head.encode() + content)

    def data_received(self, data: bytes) -> None:
        if not self._first and _EVENT in data:
            self._first = time.perf_counter()
        self._parts.append(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = time.perf_counter()
        if exc is None:
            self.over.set_result(None)
        else:
            self.over.set_exception(exc)

    def reply(self) -> StreamedReply:
        """Return what came; raises RuntimeError where it is no stream."""
        head, _, body = b"".join(self._parts).partition(b"\r\n\r\n")
        if b" 200 " not in head.partition(b"\r\n")[0]:
            raise RuntimeError(f"the server answered {head!r}: {body[:500]!r}")
        # Each event is in one piece of the body, so no length of a piece is inside of one.
        chunks = [json.loads(line[6:]) for line in body.split(b"\n") if line.startswith(_EVENT)]
        text = "".join(chunk["choices"][0].get("text", "") for chunk in chunks if chunk["choices"])
        ttft, total = self._first - self._began, self._ended - self._began
        last = next((chunk for chunk in reversed(chunks) if "timings" in chunk), None)
        if last is None:
            return StreamedReply(ttft, total, 0, text)
        return StreamedReply(ttft, total, _count(last), text, last["timings"].get("cached_tokens", 0))


def _count(chunk: dict[str, Any]) -> int:
    """Return the number of generated tokens from the last chunk. llama.cpp counts the end token too."""
    timings = chunk["timings"]
    if "decode_tokens" in timings:
        return int(timings["decode_tokens"])
    return int(timings["predicted_n"]) - int(chunk["choices"][0]["finish_reason"] == "stop")
