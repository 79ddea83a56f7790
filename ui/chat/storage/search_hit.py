"""Where the words of a search are in a text. No Qt here."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from ui.client.chat_records import Message

# Letters of scripts that put no spaces between words: Thai, Lao, Burmese, Khmer, Japanese, Chinese.
SPACELESS = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"


def hit_spans(text: str, words: str) -> list[tuple[int, int]]:
    """Return where the words begin and end, in code units as Qt counts them; none where one of them is missing.

    As the search does: accents and capitals do not matter, and the last word may be the start of one.
    """
    text_folded = folded(text)
    parts = words.split()
    found: list[tuple[int, int]] = []
    for number, part in enumerate(parts, 1):
        sought = re.escape(folded(part))
        if has_edges(part):
            end = r"" if number == len(parts) else r"(?!\w)"
            sought = rf"(?<!\w){sought}{end}"
        here = [match.span() for match in re.finditer(sought, text_folded)]
        if not here:
            return []
        found += here
    return [(_units(text, begin), _units(text, end)) for begin, end in sorted(found)]


def first_hit(messages: Iterable[Message], words: str) -> int | None:
    """Return the id of the first message that has the words, None where none has."""
    return next((message.id for message in messages if hit_spans(message.content, words)), None)


def has_edges(word: str) -> bool:
    """Return whether a word stands between spaces or marks in a text, as in most scripts.

    Words of other scripts, and emoji, are found inside longer runs of letters too.
    """
    return any(map(str.isalnum, word)) and not re.search(f"[{SPACELESS}]", word)


def folded(text: str) -> str:
    """Return the text without accents and capitals, letter for letter."""
    if text.isascii():
        return text.lower()
    return "".join(unicodedata.normalize("NFKD", letter)[0].lower()[:1] or letter for letter in text)


def _units(text: str, at: int) -> int:
    return len(text[:at].encode("utf-16-le", "surrogatepass")) // 2
