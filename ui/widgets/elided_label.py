"""A label that ends in an ellipsis where there is no room for all of it."""

from __future__ import annotations

import html

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QStyle, QStyleOption, QWidget

from models.formatting.safe_text import lines, one_line


class ElidedLabel(QLabel):
    """Plain text on one line, as wide as it is allowed to be; ``mode`` says where it is cut."""

    def __init__(
        self,
        text: str = "",
        parent: QWidget | None = None,
        mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight,
    ) -> None:
        super().__init__(one_line(text), parent)
        self._mode = mode
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)

    def setText(self, text: str) -> None:
        """Show other words."""
        super().setText(one_line(text))

    def minimumSizeHint(self) -> QSize:
        """Ask for no width at all."""
        return QSize(0, super().minimumSizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw what fits."""
        option = QStyleOption()
        option.initFrom(self)
        painter = QPainter(self)
        self.style().drawPrimitive(QStyle.PrimitiveElement.PE_Widget, option, painter, self)
        painter.setPen(option.palette.windowText().color())
        place = self.contentsRect()
        shown = self.fontMetrics().elidedText(self.text(), self._mode, place.width())
        painter.drawText(place, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, shown)


def on_button(text: str) -> str:
    """Return words for a button or a menu, where a single & would name a key."""
    return one_line(text).replace("&", "&&")


def in_tip(text: str) -> str:
    """Return words for a tooltip, where < would begin a mark of rich text."""
    plain = lines(text)
    if "<" not in plain and "&" not in plain:
        return plain
    return f"<qt>{html.escape(plain).replace(chr(10), '<br>')}</qt>"
