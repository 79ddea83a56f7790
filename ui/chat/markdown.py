"""Markdown as blocks: which part of a growing text can no longer change. No Qt here."""

from __future__ import annotations

from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

MAX_OPEN = 4_000  # characters of an open block that is not code, before it is cut


class Markdown:
    """CommonMark with tables and strikethrough; HTML in it is shown as text."""

    def __init__(self) -> None:
        self._parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
        # Only text styles are shown: an image would be a request to somebody's server.
        self._parser.validateLink = lambda url: True  # type: ignore[method-assign]

    def parse(self, text: str) -> list[Token]:
        """Return the block tokens of ``text``."""
        return self._parser.parse(text)


def last_block(tokens: Sequence[Token]) -> int:
    """Return the index of the token that opens the last top-level block, 0 where there is none."""
    return max((i for i, token in enumerate(tokens) if token.level == 0 and token.nesting >= 0), default=0)


def start_line(token: Token) -> int:
    """Return the line that a block begins on, 0 where it is not known."""
    return token.map[0] if token.map else 0


def offset_of_line(text: str, line: int) -> int:
    """Return where line number ``line`` begins in ``text``."""
    offset = 0
    for _ in range(line):
        offset = text.index("\n", offset) + 1
    return offset


def is_open_fence(text: str, tokens: Sequence[Token]) -> bool:
    """Return whether ``text`` ends inside a fenced code block at the top level."""
    token = tokens[last_block(tokens)] if tokens else None
    if token is None or token.type != "fence":
        return False
    lines = text.rstrip("\n").split("\n")
    last = lines[-1].strip() if len(lines) - 1 > start_line(token) else ""
    return not (len(last) >= len(token.markup) and set(last) == {token.markup[0]})


def stable_code(code: str, markup: str) -> str:
    """Return the part of a growing code block that is code for certain: its last line may become the closing fence."""
    head, newline, last = code.removesuffix("\n").rpartition("\n")
    return head + newline if _may_close(last, markup) else code.removesuffix("\n")


def _may_close(line: str, markup: str) -> bool:
    return not line.strip() or set(line.strip()) == {markup[0]}


def cut_offset(text: str) -> int:
    """Return where a too long open block is best cut: at a line that starts at the margin, else at a space."""
    limit = len(text) - 200
    at = text.rfind("\n", 0, limit)
    while at > 0 and text[at + 1 : at + 2].isspace():
        at = text.rfind("\n", 0, at)
    if at <= 0:
        at = text.rfind(" ", 0, limit)
    return at + 1 if at > 0 else limit
