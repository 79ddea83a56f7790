"""The speed of the last minute as a small line."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from PySide6.QtCore import QPointF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from models.formatting.figures import speed
from ui.language import tr
from ui.theme.colours import colours
from ui.theme.text_size import scaled

WIDTH, HEIGHT = 84, 18
SECONDS = 60.0


class Sparkline(QWidget):
    """Draws rates of the last minute, the newest at its right edge, as high as the fastest of them.

    Time runs from left to right in every plot, also where text does not.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._marks: deque[tuple[float, float]] = deque()
        self.setAccessibleName(tr("Speed of the last minute"))
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    @property
    def rates(self) -> list[float]:
        """The rates that it draws, oldest first."""
        return [rate for _, rate in self._marks]

    def add(self, rate: float) -> None:
        """Add the rate of now in tokens per second; forget what is older than a minute."""
        now, had = self._clock(), any(self.rates)
        self._marks.append((now, rate))
        # The last one before the minute begins is where the line comes from.
        while len(self._marks) > 1 and self._marks[1][0] < now - SECONDS:
            self._marks.popleft()
        if had or rate > 0:
            fastest = max(self.rates)
            words = (
                tr("Fastest of the last minute: {fastest}", fastest=speed(fastest))
                if fastest > 0
                else tr("Nothing in the last minute")
            )
            self.setToolTip(words)
            self.setAccessibleDescription(words)
            self.update()

    def sizeHint(self) -> QSize:
        """The same in every state, so that nothing moves."""
        return QSize(scaled(WIDTH), scaled(HEIGHT))

    def minimumSizeHint(self) -> QSize:
        """The same: a narrower line would leave out part of the minute."""
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the line above a faint base."""
        painter = QPainter(self)
        base, width = self.height() - 1.0, float(self.width())
        painter.setPen(QPen(QColor(colours().pressed), 1))
        painter.drawLine(QPointF(0, base), QPointF(width, base))
        fastest = max(self.rates, default=0.0)
        if fastest <= 0:
            return
        now = self._marks[-1][0]
        points = [
            QPointF(width * (1 - (now - at) / SECONDS), base - (base - 1.5) * rate / fastest)
            for at, rate in self._marks
        ]
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setClipRect(self.rect())
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(colours().accent_soft))
        painter.drawPolygon(QPolygonF([QPointF(points[0].x(), base), *points, QPointF(points[-1].x(), base)]))
        painter.setPen(QPen(QColor(colours().accent), 1))
        painter.drawPolyline(QPolygonF(points))
