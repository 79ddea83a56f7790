"""Fields for numbers that look like text fields and leave the wheel to the page."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QAbstractSpinBox, QDoubleSpinBox, QSlider, QSpinBox, QWidget

_MARGIN = 8


class DecimalField(QDoubleSpinBox):
    """A number with digits after the point."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        _dress(self, name)

    def event(self, event: QEvent) -> bool:
        """Keep the text in view."""
        done = super().event(event)
        _place_text(self)
        return done

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scroll the page, do not turn the number."""
        event.ignore()


class WholeField(QSpinBox):
    """A whole number."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        _dress(self, name)

    def event(self, event: QEvent) -> bool:
        """Keep the text in view."""
        done = super().event(event)
        _place_text(self)
        return done

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scroll the page, do not turn the number."""
        event.ignore()


class NoWheelSlider(QSlider):
    """A horizontal slider that leaves the wheel to the page."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self.setAccessibleName(name)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scroll the page, do not move the handle."""
        event.ignore()


def _dress(field: QAbstractSpinBox, name: str) -> None:
    field.setAccessibleName(name)
    field.setButtonSymbols(QAbstractSpinBox.ButtonSymbols.NoButtons)
    field.setAlignment(Qt.AlignmentFlag.AlignRight)
    field.setKeyboardTracking(False)


def _place_text(field: QAbstractSpinBox) -> None:
    # Without its buttons a field with a style sheet leaves its text one pixel of width.
    place = field.rect().adjusted(_MARGIN, 2, -_MARGIN, -2)
    if field.lineEdit().geometry() != place:
        field.lineEdit().setGeometry(place)
