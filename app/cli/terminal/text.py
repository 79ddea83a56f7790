"""Text for a terminal: sentences, tables, replies of models, sizes. No name can move the cursor."""

from __future__ import annotations

import json
import re
import sys
import unicodedata

from app.environment.standard_streams import is_utf8
from core.values.errors import BadOption
from models.formatting.safe_text import lines, one_line


def say(text: str = "") -> None:
    """Print it on standard output."""
    print(lines(text))


def say_json(value: object) -> None:
    """Print it as JSON on standard output, which keeps each letter whatever the encoding there is."""
    print(json.dumps(value, ensure_ascii=not is_utf8(sys.stdout), default=str), flush=True)


def say_on_stderr(text: str) -> None:
    """Print it on standard error, which does not belong to the answer."""
    print(lines(text), file=sys.stderr)


def ask_secret(what: str) -> str:
    """Ask for a text that is not shown, or read it from standard input where that is no terminal."""
    from getpass import getpass

    return (getpass(f"{what} (it is not shown): ") if sys.stdin.isatty() else sys.stdin.readline(8192)).strip()


def table(rows: list[list[str]]) -> str:
    """Rows in columns, each on one line, the last column as long as it is."""
    if not rows:
        return ""
    rows = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(width(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    written = ["  ".join([*(_padded(cell, w) for cell, w in zip(row, widths, strict=False)), row[-1]]) for row in rows]
    return "\n".join(line.rstrip() for line in written)


def width(text: str) -> int:
    """Columns that a terminal gives to ``text``: two for wide characters, none for those that go onto another."""
    return len(text) if text.isascii() else sum(_columns(character) for character in text)


def _padded(cell: str, columns: int) -> str:
    return cell + " " * (columns - width(cell))


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


# Control characters can move the cursor, rename the window or type for the user; a model's text has no such rights.
_KEPT = (0x09, 0x0A)
_CONTROLS: dict[int, str | None] = {
    **dict.fromkeys({*range(0x20), *range(0x7F, 0xA0)} - set(_KEPT), "\N{REPLACEMENT CHARACTER}"),
    0x0D: None,  # of a line's end, as Windows writes it
}


def printable(text: str) -> str:
    """Return ``text`` without carriage returns, its control characters other than tab and line feed replaced."""
    return text.translate(_CONTROLS)


_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"(\d{1,15})([KMGT]?)(?:I?B)?", re.IGNORECASE)


def parse_size(text: str, what: str) -> int:
    """Return the bytes that ``text`` names; raises BadOption, which calls them ``what``."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise BadOption(f"{text!r} is no size for {what}: write for example 500M, 4G, or 0.")
    return int(found[1]) * _UNITS[found[2].upper()]
