"""Lines of the last minutes, painted anew ten times a second: the axes are a picture that is kept."""

from __future__ import annotations

import math
import time
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
_BETWEEN = 40  # pixels between two figures at least
_MARK = 4  # pixels that stand out of an axis at a figure
_FILL = 0.16  # how much of the colour is below the line
_DESCRIBED_SECONDS = 1.0  # who hears the figures has no use for ten a second


class LinePlot(Dressed, QWidget):
    """One line over the last minutes, with a mark for the highest value that is possible where that is known."""

    def __init__(self, name: str, unit: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._unit = unit
        self._seconds: Sequence[float] = ()
        self._values: Sequence[float] = ()
        self._peak: float | None = None
        self._top = 1.0
        self._axes: QPixmap | None = None
        self._area = QRect()  # where the line is, beside the axes
        self._described_at = -math.inf
        self.setAccessibleName(name)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)  # so what it stands on is not painted each time
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_line(self, seconds: Sequence[float], values: Sequence[float], peak: float | None = None) -> None:
        """Show other points; ``peak`` is the highest value that was measured to be possible."""
        self._describe(values)
        top = max([*values, peak or 0.0, 1.0]) * _HEADROOM
        is_along_axis = not any(values) and not any(self._values)
        self._seconds, self._values = seconds, values
        if (top, peak) != (self._top, self._peak):
            self._top, self._peak, self._axes = top, peak, None
            self.update()
        elif not is_along_axis:  # else it stays where it is
            self.update(self._area)

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
        if not self._values:
            return
        base, right = self._area.bottom() + 1.0, self._area.right() + 1.0
        across, up = self._area.width() / SECONDS, self._area.height() / self._top
        line = [
            QPointF(right + at * across, base - value * up)
            for at, value in zip((*self._seconds, 0.0), (*self._values, self._values[-1]), strict=True)
        ]
        painter.setClipRect(self._area)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(mixed(colours().canvas, colours().accent, _FILL)))
        painter.drawPolygon(QPolygonF([QPointF(line[0].x(), base), *line, QPointF(line[-1].x(), base)]))
        # Only the line is smoothed: it hides the edge below it. A line wider than a pixel takes forty times as long.
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(colours().accent), 1))
        painter.drawPolyline(QPolygonF(line))

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
            at = round(bottom - value * area.height() / self._top)
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
    least = top / max(1.0, height / _BETWEEN)
    size = 10.0 ** math.floor(math.log10(least))
    step = next(size * times for times in (1, 2, 5, 10) if size * times >= least)
    digits = max(0, -math.floor(math.log10(step)))
    return [(at * step, in_marks(f"{at * step:,.{digits}f}")) for at in range(math.floor(top / step) + 1)]
