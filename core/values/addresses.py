"""Addresses that users write: of a worker, as rpc://HOST:PORT, and of a web page whose scripts may call the server."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from core.values.errors import BadOption

WORKER_SCHEME = "rpc://"
DEFAULT_WORKER_PORT = 8643  # the server has 8642
# What ggml says when it aborts because a connection to a worker is gone (RPC_STATUS_ASSERT in ggml-rpc.cpp).
LOST_WORKER = "Remote RPC server crashed"


def is_worker(device: str) -> bool:
    """Whether a device's name stands for the devices of a worker."""
    return device.startswith(WORKER_SCHEME)


def worker_address(device: str) -> tuple[str, int]:
    """Return host and port of a worker; raises BadOption."""
    try:
        parts = urlsplit(device)
        host, port = parts.hostname, parts.port or DEFAULT_WORKER_PORT
    except ValueError:
        host = None
    if not is_worker(device) or not host or parts.path or parts.query or parts.username:
        raise BadOption(
            "A worker is named as rpc://HOST:PORT, as ./slipstream worker prints it, not {device}.", device=repr(device)
        )
    return host, port


ALL_ORIGINS = "*"
LOCAL_ORIGINS = "localhost"  # all pages of this machine, as llama-server calls them
_FILES = "null"  # what a browser sends for a page that is a file
_ORIGIN = re.compile(r"([a-z][a-z0-9+.-]*)://(\[[0-9a-f:.]+\]|[^\s/?#@:\\\[\]]+)(?::([0-9]{1,5}))?")
_USUAL_PORTS = {"http": 80, "https": 443}


def origin_of(text: str) -> str:
    """Return an origin as browsers send it; ``ALL_ORIGINS`` and ``LOCAL_ORIGINS`` are many. Raises BadOption."""
    plain = text.strip().rstrip("/").lower()
    if plain in (ALL_ORIGINS, LOCAL_ORIGINS, _FILES):
        return plain
    found = _ORIGIN.fullmatch(plain)
    if found is None:
        raise _no_origin(text)
    scheme, host, port = found[1], found[2], int(found[3] or _USUAL_PORTS.get(found[1], 1))
    if not 1 <= port <= 65_535:
        raise _no_origin(text)
    try:
        host = host if host.isascii() else host.encode("idna").decode()
    except UnicodeError:
        raise _no_origin(text) from None
    return f"{scheme}://{host}" + (f":{port}" if found[3] and port != _USUAL_PORTS.get(scheme) else "")


def origins_of(texts: Iterable[str]) -> tuple[str, ...]:
    """Return each origin once, in order. Raises BadOption."""
    return tuple(dict.fromkeys(map(origin_of, texts)))


def _no_origin(text: str) -> BadOption:
    return BadOption(
        "{text} is no address of web pages: write it as https://example.com or http://localhost:3000, without "
        "what follows behind the name.",
        text=repr(text.strip()[:80]),
    )
