"""Markdown as blocks: which part of a growing text can no longer change. No Qt here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.token import Token

from ui.chat.markdown.formula_rules import FORMULA_BLOCK, OPEN_FORMULA, add_formulas

MAX_BLOCK = 1_600  # characters of a block that is not code; a longer one is cut, or each new word would cost more
MAX_TABLE = 600  # a table is the dearest to write
_HEADS = 3  # a part of a table is at least so many times as long as its head, which each part has again
_NEVER_CUT = ("fence", "code_block", FORMULA_BLOCK, OPEN_FORMULA)
_SENTENCE_ENDS = (". ", "! ", "? ")
MAX_UNCUT = 4 * MAX_BLOCK  # a list or a quote may be this long where it has no good place to cut


@dataclass(frozen=True, slots=True)
class MarkdownBlock:
    """A block, or a part of one that was too long.

    ``length`` characters of the text make it up. ``is_cut`` says that its block goes on in the next piece, ``head``
    what then has to stand before that: of a table its head.
    """

    tokens: list[Token]
    length: int
    is_cut: bool = False
    head: str = ""

    @property
    def is_fence(self) -> bool:
        """True for a code block between fences."""
        return len(self.tokens) == 1 and self.tokens[0].type == "fence"


class Markdown:
    """CommonMark with tables, strikethrough and formulas; HTML in it is shown as text."""

    def __init__(self) -> None:
        self._parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
        add_formulas(self._parser)

    def parse(self, text: str) -> list[Token]:
        """Return the block tokens of ``text``."""
        return self._parser.parse(text)

    def pieces(self, text: str, head: str = "") -> list[MarkdownBlock]:
        """Cut ``text``, before which ``head`` is to be read, into blocks none of which is too long."""
        return list(self._pieces(text, head))

    def _pieces(self, text: str, head: str) -> Iterator[MarkdownBlock]:
        source = head + text
        blocks = _top_level(self.parse(source))
        starts = _offsets(source, [block[0].map[0] if block[0].map else 0 for block in blocks])
        starts[:1] = [0]
        for number, block in enumerate(blocks):
            begin, end = starts[number], starts[number + 1] if number + 1 < len(blocks) else len(source)
            known = len(head) if number == 0 else 0
            if block[0].type in _NEVER_CUT:
                yield MarkdownBlock(block, end - begin - known)
            else:
                yield from self._parts(source[begin:end], block[0].type, known)

    def _parts(self, block: str, kind: str, known: int) -> Iterator[MarkdownBlock]:
        head = block[: _offsets(block, [2])[0]] if kind == "table_open" else ""
        while (at := cut_offset(block, kind, len(head))) is not None and at > known:
            yield MarkdownBlock(self.parse(block[:at]), at - known, True, head)
            block, known = head + block[at:], len(head)
        yield MarkdownBlock(self.parse(block), len(block) - known)


def n_certain(pieces: list[MarkdownBlock], text: str) -> int:
    """Return how many pieces of a growing text can no longer change.

    The last one can. The one before it can too while the last has no whole line: "4" after a list is a paragraph, "4."
    is the list's next item.
    """
    if len(pieces) < 2:
        return 0
    is_line_open = "\n" not in text[len(text) - pieces[-1].length :]
    return len(pieces) - (2 if is_line_open and not pieces[-2].is_cut else 1)


def _top_level(tokens: list[Token]) -> list[list[Token]]:
    blocks: list[list[Token]] = []
    for token in tokens:
        if token.level == 0 and token.nesting >= 0:
            blocks.append([])
        blocks[-1].append(token)
    return blocks


def _offsets(text: str, lines: list[int]) -> list[int]:
    """Return where the given lines, in rising order, begin in ``text``."""
    offsets, line, offset = [], 0, 0
    for wanted in lines:
        while line < wanted:
            at = text.find("\n", offset)
            offset, line = (len(text), wanted) if at < 0 else (at + 1, line + 1)
        offsets.append(offset)
    return offsets


def cut_offset(block: str, kind: str, head: int = 0) -> int | None:
    """Return where a block is to be cut, None where it is not: best at a line that starts at the margin, a
    paragraph behind a sentence.

    A table is cut between the rows behind its ``head``, the number of characters that each part of it begins with.
    """
    if kind == "table_open":
        return _row_offset(block, head)
    if len(block) <= MAX_BLOCK:
        return None
    at = block.rfind("\n", 0, MAX_BLOCK)
    while at > 0 and block[at + 1 : at + 2].isspace():
        at = block.rfind("\n", 0, at)
    if at > 0 and kind != "paragraph_open":
        return at + 1
    if kind != "paragraph_open" and len(block) <= MAX_UNCUT:
        return None
    sentence = max(block.rfind(end, MAX_BLOCK // 2, MAX_BLOCK) for end in _SENTENCE_ENDS)
    if sentence > 0:
        return sentence + 2
    return max(block.rfind(" ", 0, MAX_BLOCK), block.rfind("\n", 0, MAX_BLOCK)) + 1 or MAX_BLOCK


def _row_offset(table: str, head: int) -> int | None:
    limit = max(MAX_TABLE, _HEADS * head)
    if len(table) <= limit:
        return None
    at = table.rfind("\n", head, limit)
    if at < 0:  # the first row is a long one
        at = table.find("\n", limit)
    return at + 1 if 0 <= at < len(table) - 1 else None


def is_open(fence: MarkdownBlock, text: str) -> bool:
    """Return whether the code block with which ``text`` ends still waits for its closing fence."""
    token = fence.tokens[0]
    lines = text.rstrip("\n").rsplit("\n", 1)
    if len(lines) < 2 or not token.content:
        return True
    last = lines[-1].strip()
    return not (len(last) >= len(token.markup) and set(last) == {token.markup[0]})


def certain_code(token: Token) -> str:
    """Return the part of a growing code block that is code for certain: its last line may become the closing fence."""
    code = token.content.removesuffix("\n")
    head, newline, last = code.rpartition("\n")
    return head + newline if not last.strip() or set(last.strip()) == {token.markup[0]} else code
