"""Addresses that users write.

Of a worker, as rpc://HOST:PORT, of a web page whose scripts may call the server, and a name of the server itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from ipaddress import ip_address
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
            "A worker is named as rpc://HOST:PORT, as it says when it starts, not {device}.", device=repr(device)
        )
    return host, port


ALL_ORIGINS = "*"
LOCAL_ORIGINS = "localhost"  # all pages of this machine, as llama-server calls them
_FILES = ("null", "file://")  # what browsers, and programs with one inside, send for a page that is a file
_ORIGIN = re.compile(r"([a-z][a-z0-9+.-]*)://(\[[0-9a-f:.]+\]|[^\s/?#@:*\\\[\]]+)(?::([0-9]{1,5}))?")
_HOST = re.compile(r"[\w.-]+")
_USUAL_PORTS = {"http": 80, "https": 443}


def origin_of(text: str) -> str:
    """Return an origin as browsers send it; ``ALL_ORIGINS`` and ``LOCAL_ORIGINS`` are many. Raises BadOption."""
    plain = text.strip().lower()
    if plain in _FILES:
        return plain
    plain = plain.rstrip("/")
    if plain in (ALL_ORIGINS, LOCAL_ORIGINS):
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


def host_of(text: str) -> str:
    """Return the name of a host as clients send it, of a name, an address or a URL with one. Raises BadOption."""
    plain = text.strip().lower()
    with suppress(ValueError):
        return str(ip_address(plain))
    try:
        host = urlsplit(plain if "://" in plain else f"//{plain}").hostname or ""
        host = host if host.isascii() else host.encode("idna").decode()
    except ValueError:
        host = ""
    host = host.rstrip(".")
    if ":" not in host and not _HOST.fullmatch(host):
        raise BadOption(
            "{text} is no name of one host: write it as my-machine.example. With an API key any name is let in.",
            text=repr(text.strip()[:80]),
        )
    return host
