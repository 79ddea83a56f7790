"""A piece of text that is as tall as it needs to be, and scrolls sideways where a table is wider than its room."""

from __future__ import annotations

import math
from collections.abc import Callable

from PySide6.QtCore import Qt, QUrl, Signal
from PySide6.QtGui import QColor, QKeyEvent, QTextCursor, QTextOption, QWheelEvent
from PySide6.QtWidgets import QFrame, QSizePolicy, QTextBrowser, QTextEdit, QWidget

from ui.theme.colours import colours
from ui.theme.text_size import scaled
from ui.theme.tokens import TAB_WIDTH
from ui.widgets.growing_edit import PAGE_KEYS
from ui.widgets.page_layout import ScrollColumn

Find = Callable[[str], list[tuple[int, int]]]  # takes a text, returns where pieces of it begin and end


class TextView(QTextBrowser):
    """Read-only text sized to its content. Loads nothing from disk or network; a link is only reported."""

    link_chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._find: Find | None = None
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        # Also where the bar comes or goes alone, as in a window that becomes wider.
        self.horizontalScrollBar().rangeChanged.connect(lambda least, most: self._fit_height())
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.fit_tabs()
        self.setUndoRedoEnabled(False)
        self.setOpenLinks(False)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
            | Qt.TextInteractionFlag.LinksAccessibleByMouse
            | Qt.TextInteractionFlag.LinksAccessibleByKeyboard
        )
        self.viewport().setAutoFillBackground(False)
        self.viewport().setCursor(Qt.CursorShape.IBeamCursor)
        self.document().setDocumentMargin(0)
        self.document().documentLayout().documentSizeChanged.connect(lambda size: self._fit_height())
        self.cursorPositionChanged.connect(self._follow_cursor)
        self.anchorClicked.connect(lambda url: self.link_chosen.emit(url.toString()))

    def loadResource(self, kind: int, name: QUrl | str) -> object:
        """Return nothing: text from a model must not make the program read files or ask servers."""
        return None

    def mark(self, find: Find | None) -> None:
        """Mark the pieces that ``find`` returns for the text; None marks nothing."""
        self._find = find
        self.mark_again()

    def mark_again(self) -> None:
        """Mark the same in a text that was written anew."""
        marks: list[QTextEdit.ExtraSelection] = []
        for begin, end in self._find(self.toPlainText()) if self._find is not None else ():
            mark = QTextEdit.ExtraSelection()
            mark.cursor = QTextCursor(self.document())
            mark.cursor.setPosition(begin)
            mark.cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
            mark.format.setBackground(QColor(colours().selection))
            mark.format.setForeground(QColor(colours().text))  # what is quiet, as a comment in code, would be too faint
            marks.append(mark)
        self.setExtraSelections(marks)

    @property
    def scrolled_by(self) -> int:
        """How many pixels it is scrolled sideways."""
        bar = self.horizontalScrollBar()
        return bar.maximum() - bar.value() if self.isRightToLeft() else bar.value()

    def go_to_first_mark(self) -> int:
        """Scroll sideways to the first marked piece; return how far below the top it is in pixels, 0 without one."""
        if not (marks := self.extraSelections()):
            return 0
        place, width, bar = self.cursorRect(marks[0].cursor), self.viewport().width(), self.horizontalScrollBar()
        if not 0 <= place.x() < width:
            further = place.x() - width // 2
            bar.setValue(bar.value() + (-further if self.isRightToLeft() else further))
        return place.top()

    def fit_tabs(self) -> None:
        """Make tabs as wide as letters are at present."""
        self.setTabStopDistance(scaled(TAB_WIDTH))

    def _follow_cursor(self) -> None:
        """Let what this is in scroll to the cursor of the keyboard, as a text that scrolls by itself does."""
        around = self.parentWidget() if self.hasFocus() else None
        while around is not None and not isinstance(around, ScrollColumn):
            around = around.parentWidget()
        if around is not None:
            line = self.cursorRect()
            at = self.mapTo(around.body, line.center())
            around.ensureVisible(at.x(), at.y(), 0, line.height())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Leave whole pages to the transcript: this is as high as its text."""
        if event.key() in PAGE_KEYS:
            event.ignore()
        else:
            super().keyPressEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave scrolling to the transcript, but for a wide table's: sideways, or with Shift."""
        bar, by = self.horizontalScrollBar(), event.angleDelta()
        # Some systems have turned it already where Shift is held.
        sideways = by.x() or (by.y() if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 0)
        if bar.maximum() and abs(sideways) >= abs(by.x() + by.y() - sideways):
            bar.setValue(bar.value() - sideways)
        else:
            event.ignore()

    def _fit_height(self) -> None:
        bar = self.horizontalScrollBar()
        height = max(1, math.ceil(self.document().size().height()))
        height += bar.sizeHint().height() if bar.maximum() else 0
        if height != self.height():
            self.setFixedHeight(height)
