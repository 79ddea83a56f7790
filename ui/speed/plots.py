"""Lines of the last minutes that follow figures ten times a second, and paint only what changed of them."""

from __future__ import annotations

import math
import time
from bisect import bisect_left
from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRect, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPaintEvent, QPen, QPixmap, QPolygonF, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from models.formatting.figures import in_marks
from ui.language import tr
from ui.speed.history import SECONDS
from ui.theme.colours import Dressed, colours
from ui.theme.text_size import scaled
from ui.theme.tokens import Type, mixed

HEIGHT = 150  # pixels
_MARKS = ((-SECONDS, tr("−3 min")), (-SECONDS * 2 / 3, "−2"), (-SECONDS / 3, "−1"), (0.0, tr("now")))
_HEADROOM = 1.08  # of the highest value
_LEAST_TOP = 1.0  # what is less is nearly nothing, and looks so
_BETWEEN = 40  # pixels between two figures at least
_MARK = 4  # pixels that stand out of an axis at a figure
_FILL = 0.16  # how much of the colour is below the line
_DESCRIBED_SECONDS = 1.0  # who hears the figures has no use for ten a second


class LinePlot(Dressed, QWidget):
    """One line over the last minutes, with a mark for the highest value that is possible where that is known.

    The axes are a picture that is kept. The line moves by whole pixels, and between two moves only its end is painted.
    """

    def __init__(self, name: str, unit: str) -> None:
        super().__init__()
        self._unit = unit
        self._times: Sequence[float] = ()
        self._values: Sequence[float] = ()
        self._n_pixels, self._now = 0, 0.0  # the time at the right edge, in pixels and in seconds
        self._peak: float | None = None
        self._top = 0.0  # while there is nothing to show
        self._axes: QPixmap | None = None
        self._area = QRect()  # where the line is, beside the axes
        self._described_at = -math.inf
        self.setAccessibleName(name)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)  # so what it stands on is not painted each time
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_line(self, now: float, times: Sequence[float], values: Sequence[float], peak: float | None = None) -> None:
        """Show other points; times are seconds on one clock. ``peak`` is the highest value measured to be possible."""
        self._describe(values)
        pixel = SECONDS / max(1, self._area.width()) / self.devicePixelRatio()
        # It moves when a point comes: where it moved with the clock, all of it was painted twice as often.
        n_pixels, most = math.floor((times[-1] if times else now) / pixel), max([*values, peak or 0.0])
        top = max(most, _LEAST_TOP) * _HEADROOM if most else 0.0
        before, self._times, self._values = (self._n_pixels, self._times, self._values), times, values
        self._n_pixels, self._now = n_pixels, n_pixels * pixel
        if (top, peak) != (self._top, self._peak):
            self._top, self._peak, self._axes = top, peak, None
            self.update()
        elif any(values) or any(before[2]):  # else it stays along the axis
            self._update_line(*before)

    def _update_line(self, n_pixels: int, times: Sequence[float], values: Sequence[float]) -> None:
        """Ask for what has changed since it showed these: the last point may have risen, and others may have come."""
        kept = max(0, len(values) - 1)
        has_moved = n_pixels != self._n_pixels or times[:kept] != self._times[:kept]
        if has_moved or values[:kept] != self._values[:kept]:
            self.update(self._area)
        elif values != self._values:
            left = math.floor(self._x(self._times[max(0, kept - 1)])) - 1
            self.update(self._area.adjusted(left - self._area.left(), 0, 0, 0))

    def _x(self, at: float) -> float:
        return self._area.right() + 1.0 + (at - self._now) * self._area.width() / SECONDS

    def _describe(self, values: Sequence[float]) -> None:
        now = time.monotonic()
        if now - self._described_at >= _DESCRIBED_SECONDS:
            self._described_at = now
            latest, most = values[-1] if values else 0.0, max([*values, 0.0])
            self.setAccessibleDescription(
                tr("{now:.1f} {unit} now, {value:.1f} at most", now=latest, unit=self._unit, value=most)
            )

    def dress(self) -> None:
        """Draw the axes anew."""
        self._axes = None

    def sizeHint(self) -> QSize:
        """As high as the text of the marks needs."""
        return QSize(scaled(2 * HEIGHT), scaled(HEIGHT))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Draw the axes anew."""
        super().resizeEvent(event)
        self._axes = None

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the line on the kept picture of the axes."""
        if self._axes is None or self._axes.devicePixelRatio() != self.devicePixelRatio():
            self._axes = self._painted_axes()
        painter = QPainter(self)
        painter.drawPixmap(0, 0, self._axes)
        if not self._values or self._area.isEmpty():
            return
        base, right, now = self._area.bottom() + 1.0, self._x(self._now), self._now
        across, up = self._area.width() / SECONDS, self._area.height() / (self._top or 1.0)
        # From the point before what is to be painted.
        first = max(0, bisect_left(self._times, now + (event.rect().left() - 1 - right) / across) - 1)
        times = (*self._times[first:], max(now, self._times[-1]))
        values = (*self._values[first:], self._values[-1])
        line = [
            QPointF(right + (at - now) * across, base - value * up) for at, value in zip(times, values, strict=True)
        ]
        painter.setClipRect(self._area)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(mixed(colours().canvas, colours().accent, _FILL)))
        points = QPolygonF(line)
        below = QPolygonF(points)
        below.append([QPointF(line[-1].x(), base), QPointF(line[0].x(), base)])
        painter.drawPolygon(below)
        # Only the line is smoothed: it hides the edge below it. A line wider than a pixel takes forty times as long.
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(colours().accent), 1))
        painter.drawPolyline(points)

    def _painted_axes(self) -> QPixmap:
        font = QFont(self.font())
        font.setPixelSize(scaled(Type.CAPTION))
        metrics, marked = QFontMetrics(font), figures(self._top, self.height())
        room = metrics.height()
        beside = max(metrics.horizontalAdvance(figure) for _, figure in marked) + _MARK + 3
        first, last = (metrics.horizontalAdvance(words) // 2 + 1 for words in (_MARKS[0][1], _MARKS[-1][1]))
        self._area = area = self.rect().adjusted(max(beside, first), room // 2, -last, -room - 2 * _MARK)
        ratio = self.devicePixelRatio()
        picture = QPixmap(self.size() * ratio)
        picture.setDevicePixelRatio(ratio)
        picture.fill(QColor(colours().canvas))
        painter = QPainter(picture)
        painter.setFont(font)
        lines, words = QPen(QColor(colours().border), 1), QPen(QColor(colours().muted))
        bottom, left = area.bottom() + 1, area.left() - 1
        painter.setPen(lines)
        painter.drawLine(left, area.top(), left, bottom)
        painter.drawLine(left, bottom, area.right(), bottom)
        for value, figure in marked:
            at = round(bottom - value * area.height() / (self._top or 1.0))
            painter.setPen(lines)
            painter.drawLine(left - _MARK, at, left, at)
            painter.setPen(words)
            box = QRect(0, at - room // 2, left - _MARK - 2, room)
            painter.drawText(box, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, figure)
        for seconds, name in _MARKS:
            at = round(area.right() + seconds * area.width() / SECONDS)
            painter.setPen(lines)
            painter.drawLine(at, bottom, at, bottom + _MARK)
            painter.setPen(words)
            width = metrics.horizontalAdvance(name) + 2
            painter.drawText(
                QRect(at - width // 2, bottom + 2 * _MARK, width, room), Qt.AlignmentFlag.AlignCenter, name
            )
        if self._peak is not None:
            painter.setPen(QPen(QColor(colours().muted), 1, Qt.PenStyle.DashLine))
            at = round(bottom - self._peak * area.height() / self._top)
            painter.drawLine(area.left(), at, area.right(), at)
        painter.end()
        return picture


def figures(top: float, height: int) -> list[tuple[float, str]]:
    """Return round values from 0 to ``top`` as an axis of ``height`` pixels has room for, each with its text."""
    if not top:
        return [(0.0, "0")]
    least = top / max(1.0, height / _BETWEEN)
    size = 10.0 ** math.floor(math.log10(least))
    step = next(size * times for times in (1, 2, 5, 10) if size * times >= least)
    digits = max(0, -math.floor(math.log10(step)))
    return [(at * step, in_marks(f"{at * step:,.{digits}f}")) for at in range(math.floor(top / step) + 1)]
