"""Sizes and counts as people read them."""

from __future__ import annotations

import unicodedata


def count(n: int) -> str:
    """A number of parameters: "8.2B", "494M"; empty for none."""
    for size, unit in ((1e9, "B"), (1e6, "M")):
        if n >= size:
            return f"{n / size:.1f}{unit}"
    return str(n) if n else ""


def size(n_bytes: int) -> str:
    """Bytes: "4.9 GB", "12 MB", "3 KB"."""
    n = float(n_bytes)
    for unit in ("B", "KB", "MB"):
        if n < 999.5:
            return f"{n:.0f} {unit}"
        n /= 1000
    return f"{n:,.1f} GB"


def duration(seconds: float) -> str:
    """Seconds: "48 s", "3 min 05 s", "2 h 10 min"."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def table(rows: list[list[str]]) -> str:
    """Rows in columns, the last as long as it is."""
    if not rows:
        return ""
    widths = [max(width(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    lines = ["  ".join([*(_padded(cell, w) for cell, w in zip(row, widths, strict=False)), row[-1]]) for row in rows]
    return "\n".join(line.rstrip() for line in lines)


def width(text: str) -> int:
    """Columns that a terminal gives to ``text``: two for wide characters, none for those that go onto another."""
    return sum(_columns(character) for character in text)


def _padded(cell: str, columns: int) -> str:
    return cell + " " * (columns - width(cell))


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
