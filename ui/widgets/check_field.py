"""A box to tick, as well to be seen on a coloured ground."""

from __future__ import annotations

from PySide6.QtCore import QPointF
from PySide6.QtGui import QPainter, QPaintEvent, QPalette, QPen, QPolygonF
from PySide6.QtWidgets import QCheckBox, QStyle, QStyleOptionButton


class CheckField(QCheckBox):
    """Draws its own tick, which a style sheet takes away."""

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the tick over the box."""
        super().paintEvent(event)
        if not self.isChecked():
            return
        option = QStyleOptionButton()
        self.initStyleOption(option)
        box = self.style().subElementRect(QStyle.SubElement.SE_CheckBoxIndicator, option, self).toRectF()
        places = ((0.24, 0.52), (0.43, 0.71), (0.77, 0.31))
        points = [QPointF(box.x() + x * box.width(), box.y() + y * box.height()) for x, y in places]
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(self.palette().color(QPalette.ColorRole.Base), 2.0))
        painter.drawPolyline(QPolygonF(points))
        painter.end()
