"""A label that ends in an ellipsis where there is no room for all of it."""

from __future__ import annotations

import html
import unicodedata

from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QStyle, QStyleOption

from models.formatting.safe_text import lines, one_line
from ui.language import DOT


class ElidedLabel(QLabel):
    """Plain text on one line, as wide as it is allowed to be; ``mode`` says where it is cut.

    At its end whole facts go first: half of one says nothing.
    """

    def __init__(self, text: str = "", mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight) -> None:
        super().__init__(one_line(text))
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
        draw_line(painter, place, fitting(self.text(), self.fontMetrics(), place.width(), self._mode))


def fitting(text: str, metrics: QFontMetrics, width: int, mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight) -> str:
    """Return the facts that fit whole into so many pixels, the last ones left out; of the first at least a part."""
    while (
        (cut := metrics.elidedText(text, mode, width)) != text and DOT in text and mode is Qt.TextElideMode.ElideRight
    ):
        text = text.rpartition(DOT)[0]
    return cut


def direction_of(text: str, window: Qt.LayoutDirection = Qt.LayoutDirection.LeftToRight) -> Qt.LayoutDirection:
    """Return how a text is read: as most of its words are, of as many of both kinds as the first one is.

    In a window from right to left one word that is read from there is enough. Qt goes by the first word alone, which
    says nothing of a piece that was cut from the middle of a text.
    """
    if text.isascii():  # most are, and rows are painted often
        return Qt.LayoutDirection.LeftToRight
    firsts = [letter for word in text.split() if (letter := next(filter(str.isalpha, word), ""))]
    kinds = [unicodedata.bidirectional(letter) in ("R", "AL") for letter in firsts]
    most = 2 * sum(kinds) + (kinds[:1] == [True]) > len(kinds)
    is_from_right = any(kinds) if window is Qt.LayoutDirection.RightToLeft else most
    return Qt.LayoutDirection.RightToLeft if is_from_right else Qt.LayoutDirection.LeftToRight


def draw_line(
    painter: QPainter, place: QRect | QRectF, text: str, side: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignLeft
) -> None:
    """Draw a line in the middle of ``place``, read in its own direction, not in that of the window.

    ``side`` is where it stands in a window that is read from left to right; in others it is mirrored.
    """
    alignment = QStyle.visualAlignment(painter.layoutDirection(), side) | Qt.AlignmentFlag.AlignAbsolute
    painter.save()
    painter.setLayoutDirection(direction_of(text, painter.layoutDirection()))
    painter.drawText(place, alignment | Qt.AlignmentFlag.AlignVCenter, text)
    painter.restore()


def on_button(text: str) -> str:
    """Return words for a button or a menu, where a single & would name a key."""
    return one_line(text).replace("&", "&&")


def in_tip(text: str) -> str:
    """Return words for a tooltip, where < would begin a mark of rich text."""
    plain = lines(text)
    if "<" not in plain and "&" not in plain:
        return plain
    return f"<qt>{html.escape(plain).replace(chr(10), '<br>')}</qt>"
