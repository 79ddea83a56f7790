"""LaTeX in markdown: ``$…$``, ``$$…$$``, ``\\(…\\)`` and ``\\[…\\]`` as tokens of their own. No Qt here.

A formula that is not closed yet is text. So are dollars in prose, as in "costs $5 and $6".
"""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

FORMULA, FORMULA_BLOCK, OPEN_FORMULA = "formula", "formula_block", "open_formula"
_CLOSINGS = {"$$": "$$", "\\[": "\\]", "\\(": "\\)", "$": "$"}  # the longer ones first
_BLOCKS = ("$$", "\\[")
# An amount of money and words behind it: no formula, although a dollar follows.
_PROSE = re.compile(r"\d[^\\]*\s[A-Za-z]{2,}")


def add_formulas(parser: MarkdownIt) -> None:
    """Let a parser know formulas."""
    parser.inline.ruler.before("escape", FORMULA, _inline)
    parser.block.ruler.before("fence", FORMULA, _block, {"alt": ["paragraph", "reference", "blockquote", "list"]})


def is_display(markup: str) -> bool:
    """Return whether a formula with this opening has a line of its own."""
    return markup in _BLOCKS


def _inline(state: StateInline, silent: bool) -> bool:
    opening = next((mark for mark in _CLOSINGS if state.src.startswith(mark, state.pos)), None)
    if opening is None:
        return False
    begin = state.pos + len(opening)
    end = _closing(state.src, begin, _CLOSINGS[opening])
    if end < 0:
        return False
    latex = state.src[begin:end]
    if not latex.strip() or (opening == "$" and not _is_formula(state.src, begin, end)):
        return False
    after = end + len(_CLOSINGS[opening])
    if not silent:
        token = state.push(FORMULA, "math", 0)
        token.content, token.markup = latex.strip(), opening
        token.meta = {"source": state.src[state.pos : after]}
    state.pos = after
    return True


def _closing(source: str, at: int, closing: str) -> int:
    """Return where a formula ends, -1 where it does not; an escaped dollar is part of it."""
    while (end := source.find(closing, at)) >= 0:
        if closing[0] == "\\" or not source[:end].endswith("\\"):
            return end
        at = end + 1
    return -1


def _is_formula(source: str, begin: int, end: int) -> bool:
    """Return whether what stands between two single dollars is one, as pandoc does."""
    latex, after = source[begin:end], source[end + 1 : end + 2]
    return not (latex[0].isspace() or latex[-1].isspace() or after.isdigit() or _PROSE.match(latex))


def _block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    if state.is_code_block(start):
        return False
    first = state.src[state.bMarks[start] + state.tShift[start] : state.eMarks[start]]
    opening = next((mark for mark in _BLOCKS if first.startswith(mark)), None)
    if opening is None:
        return False
    lines, line = [first[len(opening) :]], start
    while _CLOSINGS[opening] not in lines[-1]:
        line += 1
        if line >= end or state.isEmpty(line) or state.sCount[line] < state.blkIndent:
            return line >= end and _open(state, start, line, silent)
        lines.append(state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]])
    lines[-1], _, rest = lines[-1].partition(_CLOSINGS[opening])
    latex = "\n".join(lines).strip()
    if rest.strip() or not latex:
        return False
    if not silent:
        token = state.push(FORMULA_BLOCK, "math", 0)
        token.content, token.markup, token.block = latex, opening, True
        token.map = [start, line + 1]
        token.meta = {"source": _source(state, start, line + 1)}
        state.line = line + 1
    return True


def _open(state: StateBlock, start: int, line: int, silent: bool) -> bool:
    """Keep a formula that still grows as it is: its lines are no lists and no headings."""
    if not silent:
        token = state.push(OPEN_FORMULA, "", 0)
        token.content, token.block, token.map = _source(state, start, line), True, [start, line]
        state.line = line
    return True


def _source(state: StateBlock, start: int, end: int) -> str:
    return state.getLines(start, end, state.blkIndent, False).rstrip("\n")
