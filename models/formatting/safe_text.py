"""Makes names from files and from the Hub safe to show: no hidden characters, reversed text or line breaks."""

from __future__ import annotations

import re
import unicodedata

# Zero-width joiners: some scripts need them, and they are harmless.
_JOINERS = "\u200c\u200d"
_CONTROLS = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_STAND_IN = "\N{REPLACEMENT CHARACTER}"
# In Python's names of files, what stands for bytes that are not UTF-8.
_NOT_TEXT = re.compile("[\ud800-\udfff]")


def in_utf8(name: str) -> str:
    """Return the name of a file as text that UTF-8 can write: each byte that was not is %XX."""
    return name if name.isascii() else _NOT_TEXT.sub(lambda found: f"%{ord(found[0]) & 0xFF:02X}", name)


def one_line(text: str) -> str:
    """Return the text on one line: control characters are replaced, line breaks and tabs become spaces."""
    if text.isprintable():
        return text
    return "".join(map(_shown, text))


def shortened(text: str, most: int) -> str:
    """Return the text with at most ``most`` characters, the last three of which say that there is more."""
    return text if len(text) <= most else text[: most - 3] + "..."


def lines(text: str) -> str:
    """Return the text with control characters replaced, except line feeds."""
    return "\n".join(map(one_line, text.split("\n")))


def _shown(character: str) -> str:
    if character in "\n\t\r":
        return " "
    is_control = character not in _JOINERS and unicodedata.category(character) in _CONTROLS
    return _STAND_IN if is_control else character
