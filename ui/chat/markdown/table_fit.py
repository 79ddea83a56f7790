"""Widths of table columns, so that lines break between words and not inside them where there is room for that."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from PySide6.QtGui import QFontMetricsF, QTextBlock, QTextDocument, QTextFrame, QTextLength, QTextTable, QTextTableCell

from ui.chat.markdown.document_writer import LINE
from ui.theme.text_size import scaled

LEAST = 80  # pixels that a column with longer words has at least: where that is too much, the text scrolls sideways
_PARTS = re.compile(f"[ {LINE}]|[^ {LINE}]+")
# A table that grows is fitted 30 times a second: rows behind these have about the same words.
MOST_CELLS = 300
# Borders that a table takes beside its columns where they are collapsed, as QTextDocumentLayout lays it out.
_OUTER_BORDERS = 4


@dataclass(frozen=True, slots=True)
class ColumnNeed:
    """Pixels that a column takes with its longest cell on one line, and with its longest word alone on one."""

    line: int
    word: int


def column_widths(needs: Sequence[ColumnNeed], room: int, least: int) -> list[int]:
    """Return the pixels of each column in ``room`` pixels that are too few for whole lines.

    Each has its longest word, and of what is left a share by the length of its lines. Where there is no room for all
    words, the short ones stay whole: only columns of longer ones are cut to one width, but not below ``least``.
    """
    spare = room - sum(need.word for need in needs)
    if spare < 0:
        level = max(least, _level([need.word for need in needs], room))
        return [min(need.word, level) for need in needs]
    wanted = sum(need.line - need.word for need in needs)
    share = min(1.0, spare / wanted) if wanted else 0.0
    return [need.word + int((need.line - need.word) * share) for need in needs]


def _level(widths: Sequence[int], room: int) -> int:
    """Return the most that each may have so that together they have no more than ``room``."""
    left, n_left = room, len(widths)
    for width in sorted(widths):
        if width * n_left > left:
            break
        left, n_left = left - width, n_left - 1
    return max(left // n_left, 1)


def fit_tables(document: QTextDocument, begin: int = 0) -> None:
    """Fit the tables that end behind position ``begin`` into the width of their document."""
    for table in _tables(document.rootFrame()):
        if table.lastPosition() >= begin:
            _fit(document, table)


def _tables(frame: QTextFrame) -> Iterator[QTextTable]:
    for child in frame.childFrames():
        if isinstance(child, QTextTable):
            yield child
        else:
            yield from _tables(child)


def _fit(document: QTextDocument, table: QTextTable) -> None:
    form = table.format().toTableFormat()
    if form.columnWidthConstraints():
        form.setColumnWidthConstraints([])
        table.setFormat(form)
    room = _room(document, table)
    if document.documentLayout().frameBoundingRect(table).width() < room:
        return  # its lines are whole
    around = 2 * form.cellPadding() + form.border()
    needs = [_need(table, column, around) for column in range(table.columns())]
    widths = column_widths(needs, int(room) - _OUTER_BORDERS * math.ceil(form.border()), scaled(LEAST))
    form.setColumnWidthConstraints([QTextLength(QTextLength.Type.FixedLength, width) for width in widths])
    table.setFormat(form)


def _room(document: QTextDocument, table: QTextTable) -> float:
    """Return the pixels between the margins of a table in the frames that it is in."""
    form = table.format().toFrameFormat()
    room = document.textWidth() - form.leftMargin() - form.rightMargin()
    parent = table.parentFrame()
    while parent is not None and parent != document.rootFrame():
        form = parent.frameFormat()
        room -= form.leftMargin() + form.rightMargin() + 2 * (form.padding() + form.border())
        parent = parent.parentFrame()
    return room


def _need(table: QTextTable, column: int, around: float) -> ColumnNeed:
    n_rows = min(table.rows(), max(MOST_CELLS // table.columns(), 1))
    needs = [_cell_need(table.cellAt(row, column)) for row in range(n_rows)]
    line, word = (math.ceil(max(widths) + around) for widths in zip(*needs, strict=True))
    return ColumnNeed(line, word)


def _cell_need(cell: QTextTableCell) -> tuple[float, float]:
    """Return the pixels of the longest line that a cell's text has by itself, and of its longest word."""
    block = cell.firstCursorPosition().block()
    longest = line = longest_word = word = 0.0
    for text, metrics in _runs(block):
        for part in _PARTS.findall(text):
            width = metrics.horizontalAdvance(part)
            if part == LINE:
                line = word = 0.0
            elif part == " ":
                line, word = line + width, 0.0
            else:
                line, word = line + width, word + width
            longest, longest_word = max(longest, line), max(longest_word, word)
    return longest, longest_word


def _runs(block: QTextBlock) -> Iterator[tuple[str, QFontMetricsF]]:
    """Yield the texts of one format each."""
    place = block.begin()
    while not place.atEnd():
        fragment = place.fragment()
        yield fragment.text(), QFontMetricsF(fragment.charFormat().font())
        place += 1
