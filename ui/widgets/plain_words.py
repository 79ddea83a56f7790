"""Words from outside for widgets that would take some of their characters for marks of their own."""

from __future__ import annotations

import html

from models.formatting.safe_text import lines, one_line


def on_button(text: str) -> str:
    """Return words for a button or a menu, where a single & would name a key."""
    return one_line(text).replace("&", "&&")


def in_tip(text: str) -> str:
    """Return words for a tooltip, where < would begin a mark of rich text."""
    plain = lines(text)
    if "<" not in plain and "&" not in plain:
        return plain
    return f"<qt>{html.escape(plain).replace(chr(10), '<br>')}</qt>"
