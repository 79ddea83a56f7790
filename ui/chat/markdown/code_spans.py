"""Which parts of a program's text get which colour, after Pygments. No Qt here; safe on any thread."""

from __future__ import annotations

from typing import NamedTuple

MAX_CODE = 200_000  # characters; longer code stays plain


class ColourSpan(NamedTuple):
    """``length`` UTF-16 units from ``start``, in the palette's colour ``colour``."""

    start: int
    length: int
    colour: str


def code_spans(code: str, language: str) -> list[ColourSpan]:
    """Return the coloured spans of ``code``; empty where the language is not known or there is too much."""
    if not language or len(code) > MAX_CODE:
        return []
    # Pygments takes a while to import: only the thread that colours pays for it.
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return []
    spans: list[ColourSpan] = []
    start = 0
    for kind, text in lexer.get_tokens(code):
        length = len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2
        colour = next((colour for prefix, colour in _COLOURS if str(kind).startswith(prefix)), None)
        if colour and not text.isspace():
            spans.append(ColourSpan(start, length, colour))
        start += length
    return spans


# First match wins: the more special ones stand first.
_COLOURS = (
    ("Token.Comment", "code_muted"),
    ("Token.Keyword.Type", "code_type"),
    ("Token.Keyword", "code_keyword"),
    ("Token.Operator.Word", "code_keyword"),
    ("Token.Literal.String.Escape", "code_number"),
    ("Token.Literal.String", "code_string"),
    ("Token.Literal.Number", "code_number"),
    ("Token.Name.Function", "code_name"),
    ("Token.Name.Class", "code_type"),
    ("Token.Name.Builtin", "code_type"),
    ("Token.Name.Exception", "code_type"),
    ("Token.Name.Decorator", "code_name"),
    ("Token.Name.Tag", "code_keyword"),
    ("Token.Name.Attribute", "code_name"),
    ("Token.Generic.Deleted", "code_number"),
    ("Token.Generic.Inserted", "code_string"),
    ("Token.Generic.Heading", "code_name"),
)
