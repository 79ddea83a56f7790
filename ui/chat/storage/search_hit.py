"""Where the words of a search are in a text. No Qt here."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from ui.client.chat_records import Message


def places(text: str, words: str) -> list[tuple[int, int]]:
    """Return where the words begin and end, in code units as Qt counts them; none where one of them is missing.

    As the search does: accents and capitals do not matter, and the last word may be the start of one.
    """
    folded = _folded(text)
    parts = [_folded(word) for word in words.split()]
    found: list[tuple[int, int]] = []
    for number, part in enumerate(parts, 1):
        end = r"" if number == len(parts) else r"(?!\w)"
        here = [match.span() for match in re.finditer(rf"(?<!\w){re.escape(part)}{end}", folded)]
        if not here:
            return []
        found += here
    return [(_units(text, begin), _units(text, end)) for begin, end in sorted(found)]


def first_hit(messages: Iterable[Message], words: str) -> int | None:
    """Return the id of the first message that has the words, None where none has."""
    return next((message.id for message in messages if places(message.content, words)), None)


def _folded(text: str) -> str:
    """Return the text without accents and capitals, letter for letter."""
    return "".join(unicodedata.normalize("NFKD", letter)[0].lower()[:1] or letter for letter in text)


def _units(text: str, at: int) -> int:
    return len(text[:at].encode("utf-16-le", "surrogatepass")) // 2
