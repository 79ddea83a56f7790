"""What a file of another program says of one chat. No Qt."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from ui.client.chat_records import Role


class UnknownFile(Exception):
    """Says in a sentence why no chats can be read from a file."""


@dataclass(slots=True)
class Said:
    """A message with the keys of its file: ``parent`` is the one before it, "" at the beginning."""

    key: str
    parent: str
    role: Role
    text: str
    at_ms: int = 0
    model: str | None = None
    thoughts: str = ""


@dataclass(slots=True)
class FoundChat:
    """``source`` is the same each time the same chat is exported; ``left_out`` counts what cannot be kept, by name."""

    source: str
    title: str
    at_ms: int
    said: list[Said] = field(default_factory=list)
    shown: str = ""  # the key of the last message of the branch that is shown
    system_prompt: str = ""
    is_pinned: bool = False
    is_archived: bool = False
    folder: str = ""
    left_out: Counter[str] = field(default_factory=Counter)
    whole: dict[str, Any] | None = None  # of our own file: all of it


def epoch_milliseconds(time: object) -> int:
    """Return a time in seconds, milli-, micro- or nanoseconds since 1970, as programs write it, in milliseconds."""
    if not isinstance(time, int | float) or isinstance(time, bool) or not 0 < time < 1e20:
        return 0
    while time > 1e11:
        time /= 1000
    return round(time * 1000)


def as_text(value: object) -> str:
    """Return a text, "" for what is none."""
    return value if isinstance(value, str) else ""
