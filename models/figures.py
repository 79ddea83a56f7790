"""Sizes, counts, times and speeds as people read them, in sentences, tables and the window."""

from __future__ import annotations


def size(n_bytes: float) -> str:
    """Return bytes as "4.9 GB", "12 MB", "1.5 MB", "3 KB" or "640 B"; never rounded down to nothing."""
    n = float(n_bytes)
    for unit in ("B", "KB", "MB"):
        if n < 999.5:
            return f"{n:.1f} MB" if unit == "MB" and n < 9.95 else f"{n:.0f} {unit}"
        n /= 1000
    return f"{n:,.1f} GB"


def count(n: int) -> str:
    """Return a number of parameters as "8.2B" or "494.0M"; empty for none."""
    for n_of_unit, unit in ((1e9, "B"), (1e6, "M")):
        if n >= n_of_unit:
            return f"{n / n_of_unit:.1f}{unit}"
    return str(n) if n else ""


def duration(seconds: float) -> str:
    """Return seconds as "48 s", "3 min 05 s" or "2 h 10 min"."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def rate(per_second: float) -> str:
    """Return tokens per second, with a digit after the point below 10."""
    return f"{per_second:,.1f}" if per_second < 10 else f"{per_second:,.0f}"
