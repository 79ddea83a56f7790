"""One gauge: a figure with a line below it."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFocusEvent, QFont, QFontMetrics, QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from ui.gauges.faces import NOTHING, GaugeFace
from ui.theme.colours import colours
from ui.theme.layouts import visual_rect
from ui.theme.text_size import scaled
from ui.theme.tokens import Type
from ui.widgets.elided_label import direction_of

_LINE = 3
_GAP = 3
_BETWEEN_SEGMENTS = 3
_LEAST_FILL = 3.0
_Reason = Qt.FocusReason
_BY_KEY = (_Reason.TabFocusReason, _Reason.BacktabFocusReason, _Reason.ShortcutFocusReason)
_FOR_A_WHILE = (_Reason.ActiveWindowFocusReason, _Reason.PopupFocusReason)


class Gauge(QWidget):
    """Draws a face; ``widest`` is the face that it keeps room for, so that nothing moves while figures change."""

    clicked = Signal()

    def __init__(self, name: str, widest: GaugeFace) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._widest, self._is_idle = widest, True
        # By size, and strong or not. A gauge that is hidden is measured too, and nobody tells it of another size.
        self._fonts: dict[tuple[int, bool], tuple[QFont, QFontMetrics]] = {}
        self.has_ring = False  # the keyboard came here by its own keys
        self.face = GaugeFace(NOTHING, widest.unit, lead=widest.lead)

    def show_face(self, face: GaugeFace, is_idle: bool) -> None:
        """Show another face, greyed while the engine is idle: then it is of the last reply."""
        if (face, is_idle) == (self.face, self._is_idle):
            return
        self.face, self._is_idle = face, is_idle
        self.setToolTip(face.hint)
        self.setAccessibleDescription(face.words)
        self.update()

    def set_clickable(self) -> None:
        """Take clicks and the keyboard from now on."""
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Show the keyboard where it came by a key: what is clicked may go away and leave it here."""
        if event.reason() in _BY_KEY:
            self.has_ring = True
        super().focusInEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Keep the ring where the keyboard comes back from another window, or from a menu."""
        if event.reason() not in _FOR_A_WHILE:
            self.has_ring = False
        super().focusOutEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A click on a gauge that can be clicked."""
        if self.focusPolicy() & Qt.FocusPolicy.TabFocus and self.rect().contains(event.position().toPoint()):
            self.clicked.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter and Space do what a click does."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self.clicked.emit()
        else:
            super().keyPressEvent(event)

    def sizeHint(self) -> QSize:
        """Room for the widest face."""
        (_, strong), (_, quiet) = self._font(True), self._font(False)
        face = self._widest
        width = strong.horizontalAdvance(face.value) + quiet.horizontalAdvance(f"{face.lead}  {face.unit}")
        return QSize(width + 2, strong.height() + _GAP + _LINE)

    def minimumSizeHint(self) -> QSize:
        """The same: a figure that is cut off would be read as another number."""
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the figure and its line."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_words(painter)
        self._paint_line(painter)
        painter.end()

    def _paint_words(self, painter: QPainter) -> None:
        (_, metrics), (_, quiet) = self._font(True), self._font(False)
        value_colour = colours().muted if self._is_idle else colours().text
        face, muted = self.face, colours().muted
        words = [(face.lead, False, muted), (face.value, True, value_colour), (face.unit, False, muted)]
        parts = [(*word, self._font(word[1])[1].horizontalAdvance(word[0])) for word in words if word[0]]
        gap = quiet.horizontalAdvance(" ")
        # All of it is one phrase: read in its own direction, at the side where lines of the window begin.
        way = direction_of(face.words, self.layoutDirection())
        painter.setLayoutDirection(way)
        whole = QRectF(0, 0, sum(width for *_, width in parts) + gap * (len(parts) - 1), self.height())
        if self.layoutDirection() is Qt.LayoutDirection.RightToLeft:
            whole.moveRight(self.width())
        x = whole.left()
        for text, is_strong, colour, width in parts:
            painter.setFont(self._font(is_strong)[0])
            painter.setPen(QColor(colour))
            place = visual_rect(way, whole, QRectF(x, 0, width, self.height()))
            painter.drawText(QPointF(place.left(), metrics.ascent()), text)
            x += width + gap

    def _paint_line(self, painter: QPainter) -> None:
        top, width = float(self.height() - _LINE), float(self.width())
        painter.setPen(Qt.PenStyle.NoPen)
        track = QColor(colours().pressed)
        fill = QColor(colours().muted if self._is_idle else colours().accent)
        face = self.face
        if face.n_segments:
            each = (width - _BETWEEN_SEGMENTS * (face.n_segments - 1)) / face.n_segments
            for index in range(face.n_segments):
                colour = fill if index in face.lit else track
                self._bar(painter, colour, index * (each + _BETWEEN_SEGMENTS), top, each)
            return
        self._bar(painter, track, 0.0, top, width)
        if face.share:
            self._bar(painter, fill, 0.0, top, max(_LEAST_FILL, width * min(face.share, 1.0)))

    def _bar(self, painter: QPainter, colour: QColor, left: float, top: float, width: float) -> None:
        painter.setBrush(colour)
        bar = visual_rect(self.layoutDirection(), QRectF(self.rect()), QRectF(left, top, width, _LINE))
        painter.drawRoundedRect(bar, _LINE / 2, _LINE / 2)

    def changeEvent(self, event: QEvent) -> None:
        """Text may look different."""
        super().changeEvent(event)
        self._fonts.clear()

    def _font(self, is_strong: bool) -> tuple[QFont, QFontMetrics]:
        pixels = scaled(Type.LABEL if is_strong else Type.CAPTION)
        if (pixels, is_strong) not in self._fonts:
            font = QFont(self.font())
            font.setPixelSize(pixels)
            font.setWeight(QFont.Weight.DemiBold if is_strong else QFont.Weight.Normal)
            # Digits of one width, so that figures do not dance.
            font.setFeature(QFont.Tag("tnum"), 1)
            self._fonts[pixels, is_strong] = font, QFontMetrics(font)
        return self._fonts[pixels, is_strong]
