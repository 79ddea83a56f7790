"""A text field that grows with its lines; Enter sends, Shift+Enter starts a new line."""

from __future__ import annotations

import re
from collections.abc import Callable

from PySide6.QtCore import QEvent, QMimeData, Qt, Signal
from PySide6.QtGui import (
    QFocusEvent,
    QKeyEvent,
    QKeySequence,
    QResizeEvent,
    QTextBlockFormat,
    QTextDocumentFragment,
    QTextFormat,
)
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QSizePolicy

from ui.theme.text_size import scaled
from ui.theme.tokens import TAB_WIDTH
from ui.widgets.page_layout import style_as

# Characters: Qt lays out a line of text as a whole, a second for each million, and longer where it is one word.
LONGEST_LINE = 10_000
_LONG_LINE = re.compile(f"^([^\\n]{{{LONGEST_LINE + 1},}})", re.MULTILINE)
# Set in the format of a block that goes on with the line of the block before it.
_GOES_ON = QTextFormat.Property.UserProperty.value

PAGE_KEYS = (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)
_EDGES = 12  # pixels that the style sheet puts around a field, above and below together


def model_files(source: QMimeData) -> list[str]:
    """Return the model files among what is dragged. Fields leave them to the window."""
    paths = [url.toLocalFile() for url in source.urls() if url.isLocalFile()] if source.hasUrls() else []
    return [path for path in paths if path.lower().endswith(".gguf")]


def rich_text(source: QMimeData) -> str:
    """Return the HTML of what has no plain text beside it: some programs copy nothing else."""
    return source.html() if source.hasHtml() and not source.hasText() else ""


def words_of(rich: str) -> str:
    """Return what is to be read in an HTML text."""
    return QTextDocumentFragment.fromHtml(rich).toPlainText().replace("\ufffc", "")  # which is a picture


class GrowingEdit(QPlainTextEdit):
    """Grows from one line to ``max_lines``, then scrolls.

    A line of many pages, as a pasted file can be, is shown in pieces, each of which is laid out when it is seen. The
    text stays the one that was put in.
    """

    lines_changed = Signal(int)  # how many it has now, as they are wrapped

    def __init__(self, send: Callable[[str], object], max_lines: int = 9) -> None:
        super().__init__()
        self._send, self._max_lines, self._n_lines = send, max_lines, 1
        self._is_fitting = False
        # Takes files and images that are pasted or dropped; False leaves them to the field.
        self.take: Callable[[QMimeData], bool] = lambda source: False
        self._is_in_pieces = False
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.document().setDocumentMargin(2)
        self.setTabStopDistance(scaled(TAB_WIDTH))
        self.document().documentLayout().documentSizeChanged.connect(lambda size: self._fit())
        self.textChanged.connect(self._align)
        self._align()
        self._fit()
        self.document().clearUndoRedoStacks()  # its format is nothing that a user did

    def set_max_lines(self, max_lines: int) -> None:
        """Grow to another number of lines at most."""
        self._max_lines = max(1, max_lines)
        self._fit()

    def event(self, event: QEvent) -> bool:
        """Leave undoing to the window where nothing was typed: Qt would take the key all the same."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.ShortcutOverride:
            is_undo = event.matches(QKeySequence.StandardKey.Undo)
            if is_undo and not self.document().isUndoAvailable():
                event.ignore()
                return False
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter sends; with Shift it starts a new line."""
        is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        has_shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        if event.key() in PAGE_KEYS and not self.verticalScrollBar().maximum():
            event.ignore()  # they scroll what is around
        elif is_enter and not has_shift:
            self._send(self.toPlainText())
        elif is_enter:
            # Qt would put a line separator here, which models do not know.
            self._insert("\n")
        else:
            super().keyPressEvent(event)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        """Take images too: what they become is said elsewhere."""
        can_insert = source.hasHtml() or super().canInsertFromMimeData(source)
        return source.hasImage() or (not model_files(source) and can_insert)

    def insertFromMimeData(self, source: QMimeData) -> None:
        """Paste text only, unless somebody takes the files."""
        if not self.take(source):
            self._insert(words_of(rich_text(source)) or source.text())

    def createMimeDataFromSelection(self) -> QMimeData:
        """Copy text as it was put in."""
        if not self._is_in_pieces:
            return super().createMimeDataFromSelection()
        cursor, data = self.textCursor(), QMimeData()
        data.setText(self._joined(cursor.selectionStart(), cursor.selectionEnd()))
        return data

    def setPlainText(self, text: str) -> None:
        """Show another text."""
        super().setPlainText("")
        self._is_in_pieces = False
        self._insert(text)
        self.document().clearUndoRedoStacks()  # undone, it would be lost
        self.moveCursor(self.textCursor().MoveOperation.Start)

    def toPlainText(self) -> str:
        """Return the text as it was put in."""
        if not self._is_in_pieces:
            return super().toPlainText()
        return self._joined(0, self.document().characterCount() - 1)

    def _insert(self, text: str) -> None:
        """Put ``text`` at the cursor, in place of what is selected."""
        cursor, line, goes_on = self.textCursor(), QTextBlockFormat(), QTextBlockFormat()
        goes_on.setProperty(_GOES_ON, True)
        cursor.beginEditBlock()
        cursor.removeSelectedText()
        self._is_in_pieces = self._is_in_pieces and not self.document().isEmpty()
        for n, part in enumerate(_LONG_LINE.split(text.replace("\r\n", "\n").replace("\r", "\n"))):
            if n % 2:
                self._is_in_pieces = True
                for start in range(0, len(part), LONGEST_LINE):
                    if start:
                        cursor.insertBlock(goes_on)
                    cursor.insertText(part[start : start + LONGEST_LINE])
            else:
                # The first end of a line is put in by hand: blocks have the format of the one that they follow.
                rest_of_line, end, lines = part.partition("\n")
                cursor.insertText(rest_of_line)
                if end:
                    cursor.insertBlock(line)
                    cursor.insertText(lines)
        cursor.endEditBlock()
        self.setTextCursor(cursor)
        self.ensureCursorVisible()

    def _joined(self, start: int, end: int) -> str:
        """Return what stands between two positions of the document, pieces of a line in one."""
        parts: list[str] = []
        block = self.document().findBlock(start)
        while block.isValid() and block.position() <= end:
            if parts and not block.blockFormat().boolProperty(_GOES_ON):
                parts.append("\n")
            parts.append(block.text()[max(start - block.position(), 0) : end - block.position()])
            block = block.next()
        # As Qt gives plain text: its own line separators and hard spaces are for the eye.
        return "".join(parts).replace("\u2028", "\n").replace("\xa0", " ")

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Show on the card around it that it has the keyboard."""
        super().focusInEvent(event)
        self._show_focus(True)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Show that it has lost it."""
        super().focusOutEvent(event)
        self._show_focus(False)

    def _show_focus(self, has_focus: bool) -> None:
        if (card := self.parentWidget()) is not None:
            style_as(card, "focused", has_focus)

    def changeEvent(self, event: QEvent) -> None:
        """Lines are as high as the font is."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self.setTabStopDistance(scaled(TAB_WIDTH))
            self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lines wrap elsewhere now."""
        super().resizeEvent(event)
        self._fit()

    def _align(self) -> None:
        """Align the text to the side where its script begins: a plain field is aligned to the left otherwise."""
        written = self.document().firstBlock().textDirection()
        is_from_right = Qt.LayoutDirection.RightToLeft == (
            self.layoutDirection() if self.document().isEmpty() else written
        )
        side = Qt.AlignmentFlag.AlignRight if is_from_right else Qt.AlignmentFlag.AlignLeft
        option = self.document().defaultTextOption()
        if option.alignment() != side:
            option.setAlignment(side)
            self.document().setDefaultTextOption(option)

    def _fit(self) -> None:
        if self._is_fitting:
            return
        n_lines = max(1, int(self.document().size().height()))
        shown = min(n_lines, self._max_lines)
        height = shown * self.fontMetrics().lineSpacing() + 2 * int(self.document().documentMargin()) + 2
        height += _EDGES if self.property("kind") == "field" else 0
        policy = Qt.ScrollBarPolicy.ScrollBarAsNeeded if n_lines > shown else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        if policy != self.verticalScrollBarPolicy():
            # Lines wrap elsewhere beside a scroll bar: if that took it away again, this would go on for ever.
            self._is_fitting = True
            self.setVerticalScrollBarPolicy(policy)
            self._is_fitting = False
        if height != self.height():
            self.setFixedHeight(height)
        if n_lines != self._n_lines:
            self._n_lines = n_lines
            self.lines_changed.emit(n_lines)
