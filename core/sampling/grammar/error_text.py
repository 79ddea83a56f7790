"""Shortens llguidance's error for a rejected grammar to a clause of one line. Pure."""

from __future__ import annotations

import re

_LONGEST, _LONGEST_QUOTE = 400, 30
# llguidance's messages about its limits; where it lacks a check, one of its assertions fails (panic).
_TOO_LARGE = re.compile(r"too many |too complex|fuel|^panic", re.IGNORECASE)
# The excerpt of the source, with carets below the error.
_EXCERPT = re.compile(r"\n\s*(?:\d+ \| [^\n]*|\^+)(?=\n|$)")
_PLACE = re.compile(r"(?:at )?(\d+)\((\d+)\): ")
_BAD_PATTERN = re.compile(r"regex parse error:\n(?P<pattern>[^\n]*)\n(?P<carets> *\^+)\nerror: (?P<cause>[^\n]*)")


def in_short(said: str, *, has_lines: bool) -> str:
    """Return the reason; with ``has_lines``, its line numbers are those of the grammar as the client sent it."""
    if is_limit(said):
        return "it is too large"
    said = said.partition("\n<")[0]  # the rest is for llguidance's developers
    place = _PLACE.match(said)
    head = f"line {place[1]}, column {place[2]}: " if place is not None and has_lines else ""
    if (bad := _BAD_PATTERN.search(said)) is not None:
        quote = bad["pattern"][bad["carets"].index("^") :]
        return head + _cut(f"{bad['cause']}, at {quote[:_LONGEST_QUOTE]!r}")
    said = " ".join(_EXCERPT.sub("", said[place.end() if place is not None else 0 :]).split()).rstrip(".")
    return head + _cut(said) if said else "no reason is known"


def is_limit(said: str) -> bool:
    """Return whether the message says that a limit of llguidance was reached."""
    return _TOO_LARGE.search(said) is not None


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
