"""A lean streaming client: many completions at once against one server, counted and timed."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit


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
    """Send every body to ``/v1/completions`` at once, streamed, and wait for all replies."""
    return asyncio.run(_run_all(url, bodies, api_key))


async def _run_all(url: str, bodies: list[dict[str, object]], api_key: str | None) -> LoadRun:
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    streams = [await asyncio.open_connection(parts.hostname, parts.port, limit=1 << 20) for _ in bodies]
    began = time.perf_counter()
    replies = await asyncio.gather(
        *(_one(*stream, body, parts.netloc, api_key) for stream, body in zip(streams, bodies, strict=True))
    )
    return LoadRun(tuple(replies), time.perf_counter() - began)


async def _one(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    body: dict[str, object],
    host: str,
    api_key: str | None,
) -> StreamedReply:
    content = json.dumps({**body, "stream": True}).encode()
    key = f"Authorization: Bearer {api_key}\r\n" if api_key else ""
    head = (
        f"POST /v1/completions HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n{key}"
        f"Content-Length: {len(content)}\r\nConnection: close\r\n\r\n"
    )
    began = time.perf_counter()
    writer.write(head.encode() + content)
    first = 0.0
    lines: list[bytes] = []
    status = await reader.readline()
    if b" 200 " not in status:
        raise RuntimeError(f"the server answered {status!r}: {(await reader.read())[:500]!r}")
    while line := await reader.readline():
        if not line.startswith(b"data: {"):
            continue
        first = first or time.perf_counter() - began
        lines.append(line)
    total = time.perf_counter() - began
    writer.close()
    # Parse after the end: the server is measured, not the client.
    chunks = [json.loads(line[6:]) for line in lines]
    text = "".join(chunk["choices"][0].get("text", "") for chunk in chunks if chunk["choices"])
    last = next((chunk for chunk in reversed(chunks) if "timings" in chunk), None)
    if last is None:
        return StreamedReply(first, total, 0, text)
    return StreamedReply(first, total, _count(last), text, last["timings"].get("cached_tokens", 0))


def _count(chunk: dict[str, Any]) -> int:
    """Return the number of generated tokens from the last chunk. llama.cpp counts the end token too."""
    timings = chunk["timings"]
    if "decode_tokens" in timings:
        return int(timings["decode_tokens"])
    return int(timings["predicted_n"]) - int(chunk["choices"][0]["finish_reason"] == "stop")
