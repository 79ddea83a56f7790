"""References within a JSON document, as a schema's ``$ref`` has them: ``#/$defs/a`` (RFC 6901). Pure."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

# No list here has more entries than such a number says.
_MOST_DIGITS = 9


def keys(pointer: str) -> list[str]:
    """Return the keys that lead from the root to the part that ``pointer`` names."""
    return [unescaped(step) for step in unquote(pointer).split("/")[1:]]


def child(part: Any, key: str) -> Any:
    """Return what a list or an object has at ``key``. Raises LookupError where there is no such thing."""
    if isinstance(part, dict):
        return part[key]
    if isinstance(part, list) and key.isdecimal() and len(key) <= _MOST_DIGITS:
        return part[int(key)]
    raise KeyError(key)


def escaped(key: str) -> str:
    """Return a key as pointers write it."""
    return key.replace("~", "~0").replace("/", "~1")


def unescaped(step: str) -> str:
    """Return the key that a step of a pointer stands for."""
    return step.replace("~1", "/").replace("~0", "~")
