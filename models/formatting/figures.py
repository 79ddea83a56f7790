"""Sizes, counts, times and speeds as people read them, in sentences, tables and the window."""

from __future__ import annotations

# How a number as Python writes it becomes one of another language. There "%" stands apart.
_COMMA = str.maketrans({",": ".", ".": ",", "%": "\N{NO-BREAK SPACE}%"})
_marks: dict[int, str] | None = None


def use_comma(is_wanted: bool) -> None:
    """Write numbers in this process as 1.234,5 and 70 %, or as 1,234.5 and 70%."""
    global _marks
    _marks = _COMMA if is_wanted else None


def in_marks(number: str) -> str:
    """Return a number that Python has formatted, with the marks that ``use_comma`` has chosen."""
    return number.translate(_marks) if _marks is not None else number


def size(n_bytes: float) -> str:
    """Return bytes as "4.9 GB", "12 MB", "1.5 MB", "3 KB" or "640 B"; never rounded down to nothing."""
    n = float(n_bytes)
    for unit in ("B", "KB", "MB"):
        if n < 999.5:
            return in_marks(f"{n:.1f} MB") if unit == "MB" and n < 9.95 else f"{n:.0f} {unit}"
        n /= 1000
    return in_marks(f"{n:,.1f} GB")


def parameters(number: int) -> str:
    """Return a number of parameters as models are named by it: "8.2B", "120B", "494M" or "5.0K"; empty for none."""
    if not number:
        return ""
    n = float(number)
    for unit in ("", "K", "M"):
        if n < 999.5:
            return in_marks(f"{n:.1f}{unit}" if unit and n < 99.95 else f"{n:.0f}{unit}")
        n /= 1000
    return in_marks(f"{n:.1f}B" if n < 99.95 else f"{n:,.0f}B")


def count(number: float) -> str:
    """Return a count with a mark between thousands."""
    return in_marks(f"{number:,.0f}")


def how_many(number: int, what: str) -> str:
    """Return a number of things that have a plural with "s", as "1 model" or "2,000 models"."""
    return f"{count(number)} {what}{'' if number == 1 else 's'}"


def percent(share: float) -> str:
    """Return a share, 1 for all, as "70%"."""
    return in_marks(f"{share:.0%}")


def duration(seconds: float) -> str:
    """Return seconds as "48 s", "3 min 05 s" or "2 h 10 min"."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def milliseconds(value: float) -> str:
    """Return a time, in milliseconds below one second."""
    return f"{value:.0f} ms" if value < 1_000 else in_marks(f"{value / 1_000:,.1f} s")


def rate(per_second: float) -> str:
    """Return tokens per second without their unit, with a digit after the point below 10."""
    return in_marks(f"{per_second:,.1f}" if per_second < 10 else f"{per_second:,.0f}")


def speed(per_second: float) -> str:
    """Return tokens per second as "4.3 tok/s"."""
    return f"{rate(per_second)} tok/s"


def expected_speed(per_second: float) -> str:
    """Return predicted tokens per second as "≈ 4.3 tok/s". A third digit would claim more than is known."""
    return f"≈ {speed(float(f'{per_second:.2g}'))}"


def rounded(value: float | None, digits: int) -> float | None:
    """Return a number as JSON has it; None is not known."""
    return None if value is None else round(value, digits)
