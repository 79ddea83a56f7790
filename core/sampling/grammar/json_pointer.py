"""References within a JSON document, as in a schema's ``$ref``: ``#/$defs/a`` (RFC 6901). Pure."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

# No list here has an index with more digits.
_MOST_DIGITS = 9


def keys(pointer: str) -> list[str]:
    """Return the keys that lead from the root to the part that ``pointer`` names."""
    return [unescaped(step) for step in unquote(pointer).split("/")[1:]]


def child(part: Any, key: str) -> Any:
    """Return the entry of a list or an object at ``key``. Raises LookupError if there is none."""
    if isinstance(part, dict):
        return part[key]
    if isinstance(part, list) and key.isdecimal() and len(key) <= _MOST_DIGITS:
        return part[int(key)]
    raise KeyError(key)


def escaped(key: str) -> str:
    """Return a key as written in pointers."""
    return key.replace("~", "~0").replace("/", "~1")


def unescaped(step: str) -> str:
    """Return the key that a step of a pointer stands for."""
    return step.replace("~1", "/").replace("~0", "~")
