"""A field to choose one of a few, which leaves the wheel to the page."""

from __future__ import annotations

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPalette, QPen, QPolygonF, QWheelEvent
from PySide6.QtWidgets import QComboBox, QWidget

_ARROW = 4.0
_FROM_RIGHT = 15


class ChoiceField(QComboBox):
    """Looks like the text fields, with an arrow at its end."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scroll the page, do not choose."""
        event.ignore()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the arrow, which a style sheet takes away."""
        super().paintEvent(event)
        x, y = self.width() - _FROM_RIGHT, self.height() / 2
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(self.palette().color(QPalette.ColorRole.PlaceholderText), 1.6))
        points = (QPointF(x - _ARROW, y - _ARROW / 2), QPointF(x, y + _ARROW / 2), QPointF(x + _ARROW, y - _ARROW / 2))
        painter.drawPolyline(QPolygonF(points))
        painter.end()
