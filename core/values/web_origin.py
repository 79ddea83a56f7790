"""How a web page is named whose scripts may call the server: by its origin, as https://example.com."""

from __future__ import annotations

import re
from collections.abc import Iterable

from core.values.errors import BadOption
from models.formatting.sentence import Sentence

ALL = "*"
_FILES = "null"  # what a browser sends for a page that is a file
_ORIGIN = re.compile(r"([a-z][a-z0-9+.-]*)://(\[[0-9a-f:.]+\]|[^\s/?#@:\\\[\]]+)(?::([0-9]{1,5}))?")
_USUAL_PORTS = {"http": 80, "https": 443}


def origin_of(text: str) -> str:
    """Return an origin as browsers send it; ``ALL`` is every one. Raises BadOption."""
    plain = text.strip().rstrip("/").lower()
    if plain in (ALL, _FILES):
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
        Sentence(
            "{text} is no address of web pages: write it as https://example.com or http://localhost:3000, without "
            "what follows behind the name.",
            text=repr(text.strip()[:80]),
        )
    )
