"""A reply as formatted text, also while it grows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from markdown_it.token import Token
from PySide6.QtCore import QEvent, QMimeData, QPoint, QRectF, QSignalBlocker, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QGuiApplication, QPainter, QPaintEvent, QPen, QResizeEvent, QTextCursor, QTextFrame

from ui.chat.markdown.document_writer import CODE, INDENT, KIND, LANGUAGE, QUOTE, RULE, WORD_JOINER, DocumentWriter
from ui.chat.markdown.draft_tint import DraftTint
from ui.chat.markdown.formulas import REPLACEMENT, FormulaPainter, with_sources
from ui.chat.markdown.markdown import MarkdownBlock, certain_code, is_open, n_certain
from ui.chat.markdown.table_fit import fit_tables
from ui.chat.markdown.text_tools import TextTools
from ui.chat.markdown.text_view import TextView
from ui.language import tr
from ui.theme.text_style import TextStyle
from ui.theme.tokens import Corner, Space
from ui.widgets.icon_button import TextButton

FLUSH_MS = 33
COPY_TOP = 8  # puts the copy button on the line of the label


class MarkdownView(TextView):
    """Shows markdown. While a text grows, only its last block is written again, at most 30 times a second."""

    grown = Signal()

    def __init__(self, tools: TextTools, style: TextStyle | None = None) -> None:
        super().__init__()
        self._markdown, self._colours, self._formulas = tools.markdown, tools.colours, tools.formulas
        self._style = style or tools.style
        self._lacks_formulas = False
        self._painter = FormulaPainter(tools.formulas, self.document())
        tools.formulas.drawn.connect(self._on_formulas_drawn)
        self._text = ""
        self._closed = 0  # characters that are written for good
        self._tail_at = 0  # where the document's open part begins
        self._is_tail_fresh = True  # whether it begins in an empty block
        self._shown_tail = ""
        self._code: _OpenCode | None = None
        self._head = ""  # put before the open part when it is parsed, as the head of a cut table
        self.copy_buttons: list[TextButton] = []
        self._drafted: list[tuple[int, int]] = []  # spans of the text, in order
        self._flush_timer = QTimer(self, singleShot=True, interval=FLUSH_MS)
        self._flush_timer.timeout.connect(self.flush)
        self._place_timer = QTimer(self, singleShot=True, interval=0)
        self._place_timer.timeout.connect(self._place_buttons)
        self.document().setIndentWidth(INDENT)
        self.document().documentLayout().documentSizeChanged.connect(lambda size: self._place_timer.start())
        self.horizontalScrollBar().valueChanged.connect(lambda value: self._place_buttons())

    @property
    def text(self) -> str:
        """The markdown, also what is not shown yet."""
        return self._text

    @property
    def certain_end(self) -> int:
        """Where in the document the part ends that is there for good."""
        return self._tail_at

    def spoken(self, begin: int, end: int) -> str:
        """Return a piece of the document as it is read out: of code blocks only their language and their length."""
        parts: list[str] = []
        block = self.document().findBlock(begin)
        while block.isValid() and block.position() < end:
            cursor = QTextCursor(block)
            cursor.setPosition(max(begin, block.position()))
            frame = cursor.currentFrame()
            if _kind(frame) == CODE:
                code = _code_cursor(frame)
                n_lines = code.selection().toPlainText().count("\n") + 1
                words = (
                    tr("{language}, 1 line of code", language=block.text())
                    if n_lines == 1
                    else tr("{language}, {n} lines of code", language=block.text(), n=n_lines)
                )
                parts.append(words)
                cursor.setPosition(frame.lastPosition())
                block = cursor.block()
            else:
                cursor.setPosition(min(end, block.position() + block.length() - 1), QTextCursor.MoveMode.KeepAnchor)
                text = with_sources(cursor.selection().toPlainText().replace(WORD_JOINER, ""), cursor)
                parts.append(text.strip())
            block = block.next()
        return "\n".join(part for part in parts if part)

    def set_text(self, text: str, drafted: Sequence[tuple[int, int]] = ()) -> None:
        """Show a whole text, of which spans were drafted."""
        self._flush_timer.stop()
        self._drafted[:] = drafted
        self._reset(text)
        self.flush()
        self.finish()

    def set_style(self, style: TextStyle) -> None:
        """Show the same text in other colours, or in another size."""
        if style == self._style:
            return
        self._style = style
        self.fit_tabs()
        self._write_again()

    def mark_drafted(self, spans: Sequence[tuple[int, int]]) -> None:
        """Say which characters of the text were drafted, before they are added."""
        known = self._drafted[-1][1] if self._drafted else 0
        self._drafted += [span for span in spans if span[0] >= known]

    def append(self, text: str) -> None:
        """Add to the end; shown soon."""
        self._text += text
        if not self._flush_timer.isActive():
            self._flush_timer.start()

    def finish(self) -> None:
        """Show everything: nothing is added any more."""
        self._flush_timer.stop()
        self.flush(is_last=True)
        self._colour_code(self._tail_at)

    def flush(self, is_last: bool = False) -> None:
        """Write what was added since the last time."""
        tail = self._text[self._closed :]
        if tail == self._shown_tail and not is_last:
            return
        begin = self._tail_at
        with self._scroll_kept():
            with QSignalBlocker(self):  # what is written is no move of the keyboard's cursor, which would be followed
                keep_cursor = self._cursor_keeper()
                cursor = QTextCursor(self.document())
                cursor.beginEditBlock()
                self._write(self._markdown.pieces(tail, self._head), tail, is_last)
                cursor.endEditBlock()
                keep_cursor()
            fit_tables(self.document(), begin)
        if self._find is not None:
            self.mark_again()  # a mark at the end of a text that grows would grow with it
        self._shown_tail = self._text[self._closed :]
        self.grown.emit()

    @contextmanager
    def _scroll_kept(self) -> Iterator[None]:
        """Stay where it is scrolled to sideways: a table that is fitted is narrower for a moment."""
        bar = self.horizontalScrollBar()
        scrolled = bar.value()
        yield
        bar.setValue(scrolled)

    def _cursor_keeper(self) -> Callable[[], None]:
        """Return what puts the cursor back where it is now, with what is selected: the open part is written anew.

        One at the end stays at the end.
        """
        before = self.textCursor()
        is_at_end = before.atEnd() and not before.hasSelection()
        anchor, position, words = before.anchor(), before.position(), before.selectedText()

        def keep() -> None:
            cursor = self.textCursor()
            if max(anchor, position) < self.document().characterCount():
                cursor.setPosition(anchor)
                cursor.setPosition(position, QTextCursor.MoveMode.KeepAnchor)
            if cursor.selectedText() == words and not is_at_end:
                self.setTextCursor(cursor)

        return keep

    def _write_again(self) -> None:
        with self._scroll_kept():
            self._reset(self._text)
            self.flush()
        self._colour_code(0)

    def _on_formulas_drawn(self) -> None:
        if self._lacks_formulas:
            self._write_again()

    def _reset(self, text: str) -> None:
        self._text, self._closed, self._tail_at, self._shown_tail = text, 0, 0, ""
        self._code, self._head, self._is_tail_fresh = None, "", True
        self._lacks_formulas = False
        self.clear()

    # Writing.

    def _write(self, pieces: list[MarkdownBlock], tail: str, is_last: bool) -> None:
        """Write the open part again; of its pieces all but the last are there for good."""
        if self._code is not None and pieces and pieces[0].is_fence:
            self._code.keep_up(self._text)
            is_certain = is_last or len(pieces) > 1 or not is_open(pieces[0], tail)
            if self._code.grow(pieces[0].tokens[0], is_certain):
                if len(pieces) == 1:
                    return
                self._keep_tail(pieces.pop(0))
        self._remove_tail()
        n_closed = n_certain(pieces, tail)
        for piece in pieces[:n_closed]:
            self._close(piece)
        self._write_open(pieces[n_closed:], tail, is_last)

    def _close(self, piece: MarkdownBlock) -> None:
        begin = self._tail_at
        writer = self._writer()
        writer.write(piece.tokens)
        self._lacks_formulas |= writer.lacks_formulas
        self._tail_at, self._is_tail_fresh = writer.cursor.position(), writer.is_fresh
        self._closed += piece.length
        self._head = piece.head
        self._colour_code(begin)

    def _keep_tail(self, piece: MarkdownBlock) -> None:
        """Close the code block that is there already."""
        begin = self._tail_at
        self._tail_at, self._is_tail_fresh = self._writer().cursor.position(), True
        self._closed += piece.length
        self._head = piece.head
        self._colour_code(begin)

    def _write_open(self, pieces: list[MarkdownBlock], tail: str, is_last: bool) -> None:
        writer = self._writer()
        for piece in pieces:
            if piece is pieces[-1] and piece.is_fence and not is_last and is_open(piece, tail):
                piece.tokens[0].content = certain_code(piece.tokens[0])
            writer.write(piece.tokens)
        writer.finish()
        self._lacks_formulas |= writer.lacks_formulas
        if len(pieces) == 1 and piece.is_fence and writer.open_code is not None:
            self._code = _OpenCode(writer, piece.tokens[0])

    def _writer(self) -> DocumentWriter:
        cursor = QTextCursor(self.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        is_tinted = self._style.tints_drafts and self._drafted
        tint = DraftTint(self._text, self._closed, self._drafted) if is_tinted else None
        return DocumentWriter(cursor, self._style, self._formulas, self._is_tail_fresh, tint)

    def _remove_tail(self) -> None:
        cursor = QTextCursor(self.document())
        cursor.setPosition(self._tail_at)
        cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()
        self._code = None

    # Code blocks: colours and copy buttons.

    def _code_frames(self) -> list[QTextFrame]:
        return [f for f in self.document().rootFrame().childFrames() if _kind(f) == CODE]

    def _colour_code(self, begin: int) -> None:
        for frame in self._code_frames():
            if frame.firstPosition() >= begin:
                self._colours.colour(self, _code_cursor(frame), str(frame.format().property(LANGUAGE) or ""))

    def _place_buttons(self) -> None:
        frames = self._code_frames()
        while len(self.copy_buttons) > len(frames):
            self.copy_buttons.pop().deleteLater()
        while len(self.copy_buttons) < len(frames):
            self.copy_buttons.append(self._new_copy_button(len(self.copy_buttons)))
        for button, frame in zip(self.copy_buttons, frames, strict=True):
            card = self._card(frame)
            button.adjustSize()  # the size of text may have changed
            right = int(card.right()) - self.scrolled_by
            button.move(QPoint(right - button.width() - Space.XS, int(card.top()) + COPY_TOP))
            button.show()

    def _new_copy_button(self, number: int) -> TextButton:
        button = TextButton(tr("Copy"), tr("Copy this code"), self.viewport())
        button.adjustSize()
        button.clicked.connect(lambda: self._copy_code(number))
        return button

    def _copy_code(self, number: int) -> None:
        frames = self._code_frames()
        if number < len(frames):
            QGuiApplication.clipboard().setText(_code_cursor(frames[number]).selection().toPlainText())
            self.copy_buttons[number].say(tr("Copied"))

    def createMimeDataFromSelection(self) -> QMimeData:
        """Return what is selected as it was written."""
        # The clipboard outlives Python at exit, so that an object made here would end in a crash: Qt's own is filled.
        copied = super().createMimeDataFromSelection()
        selection = self.textCursor().selection()
        for name in copied.formats():
            copied.data(name)  # it is made when it is first asked for, and would take the place of what is set now
        for name in copied.formats():
            copied.removeFormat(name)
        text = selection.toPlainText().replace(WORD_JOINER, "")
        copied.setText(with_sources(text, self.textCursor()))
        if REPLACEMENT not in text:
            copied.setHtml(selection.toHtml().replace(WORD_JOINER, ""))
        return copied

    # Painting what a document cannot: cards, bars and lines.

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the copy buttons in their corners, and the words of tables whole."""
        with self._scroll_kept():
            super().resizeEvent(event)
            if event.size().width() != event.oldSize().width():
                fit_tables(self.document())
        self._place_timer.start()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint what lies behind the text, then the text."""
        painter = QPainter(self.viewport())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.translate(-self.scrolled_by, 0)
        exposed = QRectF(event.rect().translated(self.scrolled_by, 0))
        for frame in self.document().rootFrame().childFrames():
            self._paint_frame(painter, frame, exposed)
        painter.end()
        super().paintEvent(event)

    def _paint_frame(self, painter: QPainter, frame: QTextFrame, exposed: QRectF) -> None:
        box = self._card(frame)
        if not box.adjusted(-20, -20, 20, 20).intersects(exposed):
            return
        palette = self._style.palette
        match _kind(frame):
            case str(kind) if kind == CODE:
                painter.setPen(QPen(QColor(palette.border), 1))
                painter.setBrush(QColor(palette.code))
                painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), Corner.M, Corner.M)
            case str(kind) if kind == QUOTE:
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(QColor(palette.border_strong))
                right = frame.frameFormat().rightMargin()  # of one that is read from right to left
                side = box.right() - right + Space.M - 1 if right else box.left() - Space.M - 2
                painter.drawRoundedRect(QRectF(side, box.top(), 3, box.height()), 1.5, 1.5)
            case str(kind) if kind == RULE:
                painter.fillRect(QRectF(0, round(box.center().y()), self.viewport().width(), 1), QColor(palette.border))
            case _:
                pass
        for child in frame.childFrames():
            self._paint_frame(painter, child, exposed)

    def _card(self, frame: QTextFrame) -> QRectF:
        """Return where a frame is, without its margins."""
        form = frame.format().toFrameFormat()
        box = self.document().documentLayout().frameBoundingRect(frame)
        height = box.height() - form.topMargin() - form.bottomMargin()
        return QRectF(box.left() + form.leftMargin(), box.top() + form.topMargin(), box.width(), height)

    def changeEvent(self, event: QEvent) -> None:
        """Fonts come from the style, not from the widget."""
        if event.type() != QEvent.Type.FontChange:
            super().changeEvent(event)


class _OpenCode:
    """The code block at the end of a growing text: it grows without being written again."""

    def __init__(self, writer: DocumentWriter, token: Token) -> None:
        self._writer = writer
        if writer.open_code is not None:
            writer.cursor = QTextCursor(writer.open_code)
        self._written = token.content.removesuffix("\n")
        self._info = token.info

    def keep_up(self, text: str) -> None:
        """Follow the markdown as it grows."""
        if self._writer.tint is not None:
            self._writer.tint.source = text

    def grow(self, token: Token, is_certain: bool) -> bool:
        """Add what is new; False where the code no longer begins with what was written."""
        code = token.content.removesuffix("\n") if is_certain else certain_code(token)
        if token.info != self._info or not code.startswith(self._written):
            return False
        self._writer.write_code(code[len(self._written) :])
        self._written = code
        return True


def _kind(frame: QTextFrame) -> object:
    return frame.format().property(KIND)


def _code_cursor(frame: QTextFrame) -> QTextCursor:
    """Select the code of a code frame, without its label."""
    cursor = frame.firstCursorPosition()
    cursor.movePosition(QTextCursor.MoveOperation.NextBlock)
    cursor.setPosition(frame.lastPosition(), QTextCursor.MoveMode.KeepAnchor)
    return cursor
