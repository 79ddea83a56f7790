"""A text field that grows with its lines; Enter sends, Shift+Enter starts a new line."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QMimeData, Qt
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QSizePolicy, QWidget

from ui.chat.line_breaks import wrap_mode
from ui.text_size import scaled
from ui.theme import TAB_WIDTH


class GrowingEdit(QPlainTextEdit):
    """Grows from one line to ``max_lines``, then scrolls."""

    def __init__(self, send: Callable[[str], object], max_lines: int = 9, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._send, self._max_lines = send, max_lines
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._wrap("")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.document().setDocumentMargin(2)
        self.setTabStopDistance(scaled(TAB_WIDTH))
        self.document().documentLayout().documentSizeChanged.connect(lambda size: self._fit())
        self.textChanged.connect(self._on_text)
        self._fit()

    def set_max_lines(self, max_lines: int) -> None:
        """Grow to another number of lines at most."""
        self._max_lines = max(1, max_lines)
        self._fit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter sends; with Shift it starts a new line."""
        is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        has_shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        if is_enter and not has_shift:
            self._send(self.toPlainText())
        elif is_enter:
            # Qt would put a line separator here, which models do not know.
            self.insertPlainText("\n")
        else:
            super().keyPressEvent(event)

    def insertFromMimeData(self, source: QMimeData) -> None:
        """Paste text only."""
        text = source.text()
        self._wrap(self.toPlainText() + text)
        self.insertPlainText(text)

    def setPlainText(self, text: str) -> None:
        """Show another text."""
        self._wrap(text)
        super().setPlainText(text)

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

    def _on_text(self) -> None:
        self._wrap(self.toPlainText())
        self._align()

    def _wrap(self, text: str) -> None:
        """Break lines as ``text`` allows: told before it is there, or it is laid out once in the slow way."""
        mode = wrap_mode(text)
        if mode != self.wordWrapMode():
            self.setWordWrapMode(mode)

    def _align(self) -> None:
        """Begin at the side where the script does: a field of plain text has one alignment, at the left by itself."""
        is_from_right = self.document().firstBlock().textDirection() == Qt.LayoutDirection.RightToLeft
        side = Qt.AlignmentFlag.AlignRight if is_from_right else Qt.AlignmentFlag.AlignLeft
        option = self.document().defaultTextOption()
        if option.alignment() != side:
            option.setAlignment(side)
            self.document().setDefaultTextOption(option)

    def _fit(self) -> None:
        n_lines = max(1, int(self.document().size().height()))
        shown = min(n_lines, self._max_lines)
        height = shown * self.fontMetrics().lineSpacing() + 2 * int(self.document().documentMargin()) + 2
        policy = Qt.ScrollBarPolicy.ScrollBarAsNeeded if n_lines > shown else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        if policy != self.verticalScrollBarPolicy():
            self.setVerticalScrollBarPolicy(policy)
        if height != self.height():
            self.setFixedHeight(height)
