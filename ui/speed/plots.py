"""Lines of the last minutes. Import this on another thread: what draws them takes a third of a second to import."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import pyqtgraph
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont
from PySide6.QtWidgets import QGraphicsItem, QSizePolicy

from models.formatting.figures import in_marks
from ui.language import tr
from ui.speed.history import SECONDS
from ui.theme.colours import Dressed, colours
from ui.theme.text_size import scaled
from ui.theme.tokens import Type, mixed

_MARKS = ((-SECONDS, tr("−3 min")), (-SECONDS * 2 / 3, "−2"), (-SECONDS / 3, "−1"), (0.0, tr("now")))
_HEADROOM = 1.08  # of the highest value
_LEAST_TOP = 1.0  # what is less is nearly nothing, and looks so
_TICK = 4  # pixels that stand out of an axis at a figure
_AROUND = 8, 14  # pixels above the axes and right of them, for figures at their ends
_BESIDE = 24  # pixels for half of the words at the ends of time
_DENSITY = 0.6  # of figures on an axis
_FILL = 0.16  # how much of the colour is below the line
_DESCRIBED_SECONDS = 1.0  # who hears the figures has no use for more


class LinePlot(Dressed, pyqtgraph.GraphicsView):  # type: ignore[misc]  # pyqtgraph has no types
    """One line over the last minutes, with a mark for the highest value that is possible where that is known.

    Time runs from left to right in every plot, also where text does not. There is nothing to click or to turn, so it
    is none of pyqtgraph's plots: each of these has a hundred hidden widgets for its menus.
    """

    def __init__(self, name: str, unit: str) -> None:
        super().__init__()
        self._unit = unit
        self._shown: tuple[object, ...] = ()
        self._scale: tuple[float, float | None] | None = None
        self._described_at = -math.inf
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)  # the wheel scrolls the page
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Ignored)
        self.centralWidget.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        self._axes = Axis("left"), Axis("bottom")
        self.box = pyqtgraph.ViewBox(enableMenu=False)
        self.box.disableAutoRange()
        self.box.setXRange(-SECONDS, 0.0, padding=0)
        self.centralLayout.setSpacing(0)
        for part, row, column in ((self.box, 0, 1), (self._axes[0], 0, 0), (self._axes[1], 1, 1)):
            self.centralLayout.addItem(part, row, column)
        for axis in self._axes:
            axis.linkToView(self.box)
        self._axes[1].setTicks([_MARKS])
        # What is below the line is filled in pieces: smoothed, they would show their edges.
        self._below = pyqtgraph.PlotCurveItem(pen=None, fillLevel=0.0, skipFiniteCheck=True)
        self._line = pyqtgraph.PlotCurveItem(antialias=True, skipFiniteCheck=True)
        self._peak = pyqtgraph.InfiniteLine(angle=0)
        for part in (self._below, self._line, self._peak):
            self.box.addItem(part)
        self._scale_to(0.0, None)
        self._draw_in_colours()

    def show_line(self, now: float, times: Sequence[float], values: Sequence[float], peak: float | None = None) -> None:
        """Show other points; times are seconds on one clock. ``peak`` is the highest value measured to be possible."""
        self._describe(values)
        most = max([*values, peak or 0.0])
        self._scale_to(max(most, _LEAST_TOP) * _HEADROOM if most else 0.0, peak)
        last = times[-1] if times else now
        shown = [at - last for at in times], list(values)
        # While nothing runs the line stays along the axis.
        if shown != self._shown and (any(values) or self._line.isVisible()):
            self._shown = shown
            for part in (self._below, self._line):
                part.setData(*shown)
        for part in (self._below, self._line):
            part.setVisible(any(values))

    def _scale_to(self, top: float, peak: float | None) -> None:
        if self._scale == (top, peak):
            return
        self._scale = top, peak
        self.box.setYRange(0.0, top or 1.0, padding=0)
        self._axes[0].setTicks(None if top else [[(0.0, "0")]])
        self._peak.setVisible(peak is not None)
        self._peak.setValue(peak or 0.0)

    def _describe(self, values: Sequence[float]) -> None:
        now = time.monotonic()
        if now - self._described_at >= _DESCRIBED_SECONDS:
            self._described_at = now
            latest, most = values[-1] if values else 0.0, max([*values, 0.0])
            self.setAccessibleDescription(
                tr("{now:.1f} {unit} now, {value:.1f} at most", now=latest, unit=self._unit, value=most)
            )

    def dress(self) -> None:
        """Draw in the colours and the size of text in use."""
        if self._scale is not None:
            self._draw_in_colours()

    def _draw_in_colours(self) -> None:
        used = colours()
        self.setBackground(used.canvas)
        self.centralLayout.setContentsMargins(0, *map(scaled, _AROUND), 0)
        for axis in self._axes:
            axis.dress(self.font())
        # A line wider than a pixel takes forty times as long.
        self._line.setPen(used.accent, width=1)
        self._below.setBrush(mixed(used.canvas, used.accent, _FILL))
        self._peak.setPen(used.muted, width=1, style=Qt.PenStyle.DashLine)


class Axis(pyqtgraph.AxisItem):  # type: ignore[misc]  # pyqtgraph has no types
    """An axis with few figures, written as everywhere in the window."""

    def __init__(self, side: str) -> None:
        super().__init__(side, maxTickLength=_TICK)
        self.setStyle(maxTickLevel=0, tickTextOffset=_TICK, autoReduceTextSpace=False)
        self.enableAutoSIPrefix(False)
        self.setTickDensity(_DENSITY)
        self.setCacheMode(QGraphicsItem.CacheMode.DeviceCoordinateCache)  # the line beside it is painted often

    def tickStrings(self, values: Sequence[float], scale: float, spacing: float) -> list[str]:
        """Write the figures."""
        digits = max(0, math.ceil(-math.log10(spacing)))
        return [in_marks(f"{value:,.{digits}f}") for value in values]

    def dress(self, font: QFont) -> None:
        """Draw in the colours and the size of text in use."""
        font.setPixelSize(scaled(Type.CAPTION))
        self.setStyle(tickFont=font, hideOverlappingLabels=scaled(_BESIDE))
        self.setPen(QColor(colours().border))
        self.setTextPen(QColor(colours().muted))
