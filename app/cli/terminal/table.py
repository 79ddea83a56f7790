"""Tables in a terminal."""

from __future__ import annotations

import unicodedata

from models.formatting.safe_text import one_line


def table(rows: list[list[str]]) -> str:
    """Rows in columns, each on one line, the last column as long as it is."""
    if not rows:
        return ""
    rows = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(width(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    lines = ["  ".join([*(_padded(cell, w) for cell, w in zip(row, widths, strict=False)), row[-1]]) for row in rows]
    return "\n".join(line.rstrip() for line in lines)


def width(text: str) -> int:
    """Columns that a terminal gives to ``text``: two for wide characters, none for those that go onto another."""
    return len(text) if text.isascii() else sum(_columns(character) for character in text)


def _padded(cell: str, columns: int) -> str:
    return cell + " " * (columns - width(cell))


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
