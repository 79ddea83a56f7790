"""Writes markdown tokens into a QTextDocument: no HTML in between, so nothing in a reply can become markup."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markdown_it.token import Token
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFont,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextFormat,
    QTextFrame,
    QTextFrameFormat,
    QTextLength,
    QTextList,
    QTextListFormat,
    QTextTableFormat,
)

from ui.chat.markdown.draft_tint import DraftTint
from ui.chat.markdown.formula_rules import is_display as is_display_markup
from ui.chat.markdown.formulas import REPLACEMENT, Formulas, formula_format
from ui.language import tr
from ui.theme.text_style import TextStyle
from ui.theme.tokens import Space, Type

KIND = QTextFormat.Property.UserProperty.value + 1  # on a frame: what it is
LANGUAGE = KIND + 1  # on a code frame
CODE, QUOTE, RULE = "code", "quote", "rule"
INDENT = 26.0
WORD_JOINER = "\u2060"  # where a line may not break; nothing to see, and not in what is copied
LINE = "\u2028"  # a new line in the same block
_TASK = re.compile(r"\[([ xX])\] ")
_BOXES = ("\u2610 ", "\u2611 ")  # open, done
_BREAK = re.compile(r" ?<br\s*/?> ?", re.IGNORECASE)
_HINTS = {"mermaid": tr("mermaid  ·  a diagram as text: copy it into a Mermaid viewer to see it")}
_HEADING_SIZES = {1: 21, 2: 18, 3: 16}


class DocumentWriter:
    """Writes at a cursor. ``is_fresh`` says whether the block there is empty: then it takes the first text.

    ``tint`` tells what of the text was drafted; None where that is not shown. Where ``lacks_formulas`` is set, formulas
    that are not drawn yet stand there as text.
    """

    def __init__(
        self,
        cursor: QTextCursor,
        style: TextStyle,
        formulas: Formulas,
        is_fresh: bool,
        tint: DraftTint | None = None,
    ) -> None:
        self._formulas, self.lacks_formulas = formulas, False
        self.cursor = cursor
        self.tint = tint
        self._style = style
        self._palette = style.palette
        self.is_fresh = is_fresh
        self._lists: list[_List] = []
        self._quotes: list[QTextFrame] = []
        self._base = style.body
        self.open_code: QTextCursor | None = None  # the end of the code of the last code block

    def write(self, tokens: Sequence[Token]) -> None:
        """Write all ``tokens``, which hold whole blocks."""
        self._write_blocks(iter(tokens))

    def finish(self) -> None:
        """Flatten the empty block that Qt leaves behind a table or a frame."""
        if self.is_fresh:
            self._flatten_block()

    def _write_blocks(self, tokens: Iterator[Token]) -> None:
        for token in tokens:
            match token.type:
                case "paragraph_open":
                    self._paragraph(next(tokens), is_tight=token.hidden)
                case "heading_open":
                    self._heading(next(tokens), int(token.tag[1:]))
                case "bullet_list_open" | "ordered_list_open":
                    self._lists.append(_List(token))
                case "bullet_list_close" | "ordered_list_close":
                    self._lists.pop()
                case "list_item_open":
                    self._lists[-1].begin_item()
                case "blockquote_open":
                    self._open_quote()
                case "blockquote_close":
                    self._close_quote()
                case "fence" | "code_block":
                    self._code(token)
                case "formula_block":
                    self._formula_block(token)
                case "open_formula":
                    self._begin_block(self._block(Space.S / 2, float(Space.S)), self._base)
                    self._put(token.content.replace("\n", LINE), self._base)
                case "hr":
                    self._rule()
                case "table_open":
                    self._table(tokens)
                case _:
                    pass

    # Blocks.

    def _block(self, above: float, below: float) -> QTextBlockFormat:
        form = _line(142)
        form.setTopMargin(above)
        form.setBottomMargin(below)
        return form

    def _begin_block(self, form: QTextBlockFormat, chars: QTextCharFormat) -> bool:
        """Begin a block; return whether it is the first of a list's item."""
        depth = len(self._lists)
        is_item = depth > 0 and self._lists[-1].is_item_new
        # A list indents its items itself; only what follows in the same item is indented here.
        form.setIndent(0 if is_item else depth)
        if self.is_fresh:
            self.cursor.setBlockFormat(form)
            self.cursor.setBlockCharFormat(chars)
        else:
            self.cursor.insertBlock(form, chars)
        self.is_fresh = False
        if is_item:
            self._lists[-1].place(self.cursor, depth)
        return is_item

    def _paragraph(self, inline: Token, is_tight: bool) -> None:
        gap = 2.0 if is_tight else float(Space.S)
        begins_item = self._begin_block(self._block(gap / 2, gap), self._base)
        parts = inline.children or []
        if begins_item and parts and (box := _TASK.match(parts[0].content)):
            self._task_box(box)
            parts = [parts[0].copy(content=parts[0].content[box.end() :]), *parts[1:]]
        self._inline(parts, self._base)

    def _task_box(self, box: re.Match[str]) -> None:
        """Write the box of a task in a list, as GitHub's Markdown has it."""
        is_drafted = self.tint is not None and any(drafted for _, drafted in list(self.tint.split(box.group())))
        self.cursor.insertText(_BOXES[box[1] != " "], self._tinted(self._base) if is_drafted else self._base)

    def _heading(self, inline: Token, level: int) -> None:
        chars = QTextCharFormat(self._base)
        size = self._style.pixels(_HEADING_SIZES.get(level, Type.LARGE))
        chars.setProperty(QTextFormat.Property.FontPixelSize, size)
        chars.setFontWeight(QFont.Weight.DemiBold)
        above = 0.0 if self.cursor.position() == 0 else float(Space.L)
        form = self._block(above, Space.S - 2.0)
        form.setLineHeight(125, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
        self._begin_block(form, chars)
        self._inline(inline.children or [], chars)

    def _formula_block(self, token: Token) -> None:
        form = self._block(float(Space.S), float(Space.M))
        form.setLineHeight(100, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
        self._begin_block(form, self._base)
        if self._formula(token, self._base):
            form.setAlignment(Qt.AlignmentFlag.AlignHCenter)
            self.cursor.mergeBlockFormat(form)

    def _formula(self, token: Token, base: QTextCharFormat) -> bool:
        """Write a formula; as text where it is not drawn, or wrong. Return whether it is drawn."""
        latex, is_display, source = token.content, is_display_markup(token.markup), str(token.meta["source"])
        self.lacks_formulas |= not self._formulas.is_known(latex, is_display)
        drawing = self._formulas.drawing(latex, is_display)
        if drawing is None:
            self._put(source.replace("\n", LINE), base)
            return False
        if self.tint is not None:
            base = self._tinted(base) if any(is_drafted for _, is_drafted in list(self.tint.split(source))) else base
        self.cursor.insertText(REPLACEMENT, formula_format(base, latex, is_display, source, drawing))
        return True

    def _rule(self) -> None:
        form = QTextFrameFormat()
        form.setProperty(KIND, RULE)
        form.setHeight(QTextLength(QTextLength.Type.FixedLength, Space.XL))
        self._leave_room()
        self.cursor.insertFrame(form)
        self._flatten_block()
        self._step_out()

    def _open_quote(self) -> None:
        form = QTextFrameFormat()
        form.setProperty(KIND, QUOTE)
        form.setPadding(0)
        form.setLeftMargin(Space.L + len(self._lists) * INDENT)
        form.setTopMargin(Space.S)
        form.setBottomMargin(Space.S)
        self._leave_room()
        self._quotes.append(self.cursor.insertFrame(form))
        self.is_fresh = True
        self._base = QTextCharFormat(self._base)
        self._base.setForeground(QColor(self._palette.muted))

    def _close_quote(self) -> None:
        if self.is_fresh:
            self._flatten_block()
        frame = self._quotes.pop()
        if frame.firstCursorPosition().block().textDirection() == Qt.LayoutDirection.RightToLeft:
            form = frame.frameFormat()
            form.setRightMargin(form.leftMargin())
            form.setLeftMargin(0)
            frame.setFrameFormat(form)
        if not self._quotes:
            self._base = self._style.body
        self._step_out()

    def _code(self, token: Token) -> None:
        """Write a code block as a frame: unlike a table, a frame is not laid out again as a whole when it grows."""
        language = token.info.strip().split()[0] if token.info.strip() else ""
        form = QTextFrameFormat()
        form.setProperty(KIND, CODE)
        form.setProperty(LANGUAGE, language)
        form.setPadding(Space.M)
        form.setTopMargin(Space.S)
        form.setBottomMargin(Space.M)
        self._leave_room()
        self.cursor.insertFrame(form)
        self._write_label(language)
        self._write_lines(token.content.removesuffix("\n"))
        self.open_code = QTextCursor(self.cursor)
        self._step_out()

    def _write_label(self, language: str) -> None:
        chars = QTextCharFormat()
        chars.setFontFamilies([self._style.family])
        chars.setProperty(QTextFormat.Property.FontPixelSize, self._style.pixels(Type.CAPTION))
        chars.setForeground(QColor(self._palette.code_muted))
        form = _code_line(100)
        form.setBottomMargin(Space.S)
        self.cursor.setBlockFormat(form)
        self.cursor.insertText(_HINTS.get(language.lower(), language) or "code", chars)

    def _write_lines(self, code: str) -> None:
        self.cursor.insertBlock(_code_line(135), self._style.code)
        self.write_code(code)

    def write_code(self, code: str) -> None:
        """Add code to the block at the cursor."""
        self._put(code, self._style.code)

    def _table(self, tokens: Iterator[Token]) -> None:
        rows = list(_table_rows(tokens))
        n_columns = max((len(row.cells) for row in rows), default=0)
        if not n_columns:
            return
        form = QTextTableFormat()
        form.setBorder(1)
        form.setBorderCollapse(True)
        form.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
        form.setBorderBrush(QBrush(QColor(self._palette.border_strong)))
        form.setCellPadding(7)
        form.setCellSpacing(0)
        form.setLeftMargin(len(self._lists) * INDENT)
        form.setTopMargin(Space.S)
        form.setBottomMargin(Space.M)
        self._leave_room()
        table = self.cursor.insertTable(len(rows), n_columns, form)
        for row in rows:
            self._table_row(row, n_columns)
        self.cursor.setPosition(table.lastPosition() + 1)
        self.is_fresh = True

    def _table_row(self, row: _TableRow, n_columns: int) -> None:
        chars = QTextCharFormat(self._base)
        chars.setProperty(QTextFormat.Property.FontPixelSize, self._style.pixels(Type.BODY))
        if row.is_head:
            chars.setFontWeight(QFont.Weight.DemiBold)
        for column in range(n_columns):
            inline, align = row.cells[column] if column < len(row.cells) else ([], Qt.AlignmentFlag.AlignLeft)
            form = _line(130)
            form.setAlignment(align)
            self.cursor.setBlockFormat(form)
            self._inline(inline, chars, keeps_units=True)
            # Each cell is one block. To go on to the next is cheap; to ask the table for a cell after a change is not.
            self.cursor.movePosition(QTextCursor.MoveOperation.NextBlock)

    def _leave_room(self) -> None:
        """Make the block before a frame as small as can be where it is empty: a frame always has one before it."""
        if self.is_fresh:
            self._flatten_block()

    def _step_out(self) -> None:
        frame = self.cursor.currentFrame()
        self.cursor.setPosition(frame.lastPosition() + 1)
        self.is_fresh = True

    def _flatten_block(self) -> None:
        form = QTextBlockFormat()
        form.setLineHeight(1, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
        chars = QTextCharFormat()
        chars.setProperty(QTextFormat.Property.FontPixelSize, 1)
        self.cursor.setBlockFormat(form)
        self.cursor.setBlockCharFormat(chars)

    # Text inside a block.

    def _inline(self, tokens: Sequence[Token], base: QTextCharFormat, keeps_units: bool = False) -> None:
        """Write text at the cursor; ``keeps_units`` leaves "tok/s" on one line, which breaks behind the slash else."""
        styles = [base]
        for token in tokens:
            match token.type:
                case "text":
                    self._put(token.content, styles[-1], keeps_units, has_breaks=True)
                case "softbreak":
                    self.cursor.insertText(" ", styles[-1])
                case "hardbreak":
                    self.cursor.insertText(LINE, styles[-1])
                case "formula":
                    self._formula(token, styles[-1])
                case "code_inline":
                    self._put(token.content, self._inline_code(styles[-1]), keeps_units)
                case "image":
                    self.cursor.insertText(token.content or "image", self._link(styles[-1], token, "src"))
                case "strong_open" | "em_open" | "s_open" | "link_open":
                    styles.append(self._styled(styles[-1], token))
                case "strong_close" | "em_close" | "s_close" | "link_close":
                    styles.pop()
                case _:
                    self.cursor.insertText(token.content, styles[-1])

    def _put(self, text: str, form: QTextCharFormat, keeps_units: bool = False, *, has_breaks: bool = False) -> None:
        """Insert text, tinted where it was drafted. With ``has_breaks`` "<br>" is a new line, as models write it."""
        for part, is_drafted in [(text, False)] if self.tint is None else self.tint.split(text):
            shown = _BREAK.sub(LINE, part) if has_breaks else part
            shown = shown.replace("/", f"/{WORD_JOINER}") if keeps_units else shown
            self.cursor.insertText(shown, self._tinted(form) if is_drafted else form)

    def _tinted(self, form: QTextCharFormat) -> QTextCharFormat:
        tinted = QTextCharFormat(form)
        tinted.setBackground(QColor(self._palette.accent_soft))
        return tinted

    def _styled(self, outer: QTextCharFormat, token: Token) -> QTextCharFormat:
        if token.type == "link_open":
            return self._link(outer, token, "href")
        form = QTextCharFormat(outer)
        if token.type == "strong_open":
            form.setFontWeight(QFont.Weight.DemiBold)
        elif token.type == "em_open":
            form.setFontItalic(True)
        else:
            form.setFontStrikeOut(True)
        return form

    def _inline_code(self, outer: QTextCharFormat) -> QTextCharFormat:
        form = QTextCharFormat(outer)
        form.setFontFamilies([self._style.mono_family])
        around = int(outer.property(_PIXELS) or self._style.pixels(Type.LARGE))
        form.setProperty(QTextFormat.Property.FontPixelSize, around - 2)
        form.setBackground(QColor(self._palette.bubble))
        return form

    def _link(self, outer: QTextCharFormat, token: Token, attribute: str) -> QTextCharFormat:
        form = QTextCharFormat(outer)
        form.setAnchor(True)
        form.setAnchorHref(QUrl(str(token.attrGet(attribute) or "")).toString())
        form.setForeground(QColor(self._palette.accent))
        form.setFontUnderline(True)
        return form


_PIXELS = QTextFormat.Property.FontPixelSize


class _List:
    """One level of a list while it is written."""

    def __init__(self, token: Token) -> None:
        self._is_ordered = token.type == "ordered_list_open"
        self._start = int(token.attrGet("start") or 1) if self._is_ordered else 1
        self._list: QTextList | None = None
        self.is_item_new = False

    def begin_item(self) -> None:
        self.is_item_new = True

    def place(self, cursor: QTextCursor, depth: int) -> None:
        """Make the cursor's block the next item."""
        self.is_item_new = False
        if self._list is not None:
            self._list.add(cursor.block())
            return
        form = QTextListFormat()
        form.setIndent(depth)
        form.setStyle(self._style(depth))
        form.setStart(self._start)
        self._list = cursor.createList(form)

    def _style(self, depth: int) -> QTextListFormat.Style:
        if self._is_ordered:
            return QTextListFormat.Style.ListDecimal
        return QTextListFormat.Style.ListDisc if depth % 2 else QTextListFormat.Style.ListCircle


@dataclass(slots=True)
class _TableRow:
    """A table row: cells as inline tokens and alignment."""

    cells: list[tuple[list[Token], Qt.AlignmentFlag]]
    is_head: bool


def _table_rows(tokens: Iterator[Token]) -> Iterator[_TableRow]:
    row = _TableRow([], False)
    for token in tokens:
        match token.type:
            case "table_close":
                return
            case "tr_open":
                row = _TableRow([], False)
            case "tr_close":
                yield row
            case "th_open" | "td_open":
                row.is_head = token.type == "th_open"
                row.cells.append((next(tokens).children or [], _alignment(str(token.attrGet("style") or ""))))
            case _:
                pass


def _alignment(style: str) -> Qt.AlignmentFlag:
    if "right" in style:
        return Qt.AlignmentFlag.AlignRight
    return Qt.AlignmentFlag.AlignHCenter if "center" in style else Qt.AlignmentFlag.AlignLeft


def _line(percent: int) -> QTextBlockFormat:
    form = QTextBlockFormat()
    form.setLineHeight(percent, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
    return form


def _code_line(percent: int) -> QTextBlockFormat:
    """Return the format of a line of code, which begins at the left also where it begins with Hebrew."""
    form = _line(percent)
    form.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
    return form
