"""Model text as it may be shown on a terminal."""

from __future__ import annotations

# Control characters can move the cursor, rename the window or type for the user; a model's text has no such rights.
_KEPT = (0x09, 0x0A)
_CONTROLS = dict.fromkeys({*range(0x20), *range(0x7F, 0xA0)} - set(_KEPT), "\N{REPLACEMENT CHARACTER}")


def printable(text: str) -> str:
    """Return ``text`` with control characters other than tab and line feed replaced."""
    return text.translate(_CONTROLS)
