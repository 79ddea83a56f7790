"""Lines of the last minutes. Imports pyqtgraph, which takes a third of a second: import this when it is to be seen."""

from __future__ import annotations

from collections.abc import Sequence

import pyqtgraph  # type: ignore[import-untyped]
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont
from PySide6.QtWidgets import QWidget

from models.formatting.figures import in_marks
from ui.language import tr
from ui.speed.history import SECONDS
from ui.theme.text_size import scaled
from ui.theme.tokens import LIGHT, Palette, Type

HEIGHT = 150  # pixels
_TICKS = ((-SECONDS, tr("−3 min")), (-SECONDS * 2 / 3, "−2"), (-SECONDS / 3, "−1"), (0.0, tr("now")))
_BEFORE, _BEHIND = 0.08, 0.07  # of the width, for half of the words below each end
_ABOVE = 8  # pixels, for half a figure at the upper end
_FILL = 40  # of 255: how much of the colour is below the line


class _Figures(pyqtgraph.AxisItem):  # type: ignore[misc]
    """The axis of the figures, written as in the language."""

    def tickStrings(self, values: Sequence[float], scale: float, spacing: float) -> list[str]:
        return [in_marks(words) for words in super().tickStrings(values, scale, spacing)]


class LinePlot(pyqtgraph.PlotWidget):  # type: ignore[misc]
    """One line over the last minutes, with a mark for the highest value that is possible where that is known.

    Lines are one pixel wide and not smoothed: a wider one costs a hundred times as much to paint.
    """

    def __init__(self, name: str, unit: str, parent: QWidget | None = None) -> None:
        super().__init__(parent, axisItems={"left": _Figures("left")}, enableMenu=False)
        self._palette, self._name, self._unit = LIGHT, name, unit
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setMouseEnabled(x=False, y=False)
        self.hideButtons()
        self.plotItem.setContentsMargins(0, _ABOVE, 0, 0)
        self.setXRange(-SECONDS * (1 + _BEFORE), SECONDS * _BEHIND, padding=0)
        self.getAxis("bottom").setTicks([_TICKS])
        for side in ("left", "bottom"):
            self.getAxis(side).setStyle(hideOverlappingLabels=False)  # the first would be left out, or cut
        self._peak: float | None = None
        self._curve = self.plot([], [])
        self._mark = pyqtgraph.InfiniteLine(angle=0, movable=False)
        self._mark.hide()
        self.addItem(self._mark, ignoreBounds=True)
        self.set_palette(LIGHT)

    def show_line(self, seconds: Sequence[float], values: Sequence[float], peak: float | None = None) -> None:
        """Show other points; ``peak`` is the highest value that was measured to be possible."""
        self._curve.setData(seconds, values)
        top = max([*values, peak or 0.0, 1.0])
        self.setYRange(0, top * 1.08, padding=0)
        if peak is not None:
            self._mark.setValue(peak)
        self._mark.setVisible(peak is not None)
        now = values[-1] if values else 0.0
        self.setAccessibleDescription(
            tr("{now:.1f} {unit} now, {value:.1f} at most", now=now, unit=self._unit, value=max([*values, 0.0]))
        )

    def set_palette(self, palette: Palette) -> None:
        """Draw in another palette, or in another size."""
        self._palette = palette
        self.setBackground(palette.canvas)
        accent = QColor(palette.accent)
        self._curve.setPen(pyqtgraph.mkPen(accent, width=1))
        below = QColor(accent)
        below.setAlpha(_FILL)
        self._curve.setFillLevel(0)
        self._curve.setBrush(below)
        self._mark.setPen(pyqtgraph.mkPen(palette.muted, width=1, style=Qt.PenStyle.DashLine))
        font = QFont(self.font())
        font.setPixelSize(scaled(Type.CAPTION))
        for side in ("left", "bottom"):
            axis = self.getAxis(side)
            axis.setPen(palette.border)
            axis.setTextPen(palette.muted)
            axis.setTickFont(font)
        self.setFixedHeight(scaled(HEIGHT))
