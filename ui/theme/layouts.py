"""Rows and columns of widgets, said in one piece, and what is mirrored where one reads from right to left."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QBoxLayout, QLayout, QWidget

_Layout = TypeVar("_Layout", bound=QBoxLayout)
Part = QWidget | QLayout | int | str | tuple[Any, ...]

STRETCH: Final = "stretch"
"""Empty room, among the parts of a layout."""


def fill(
    layout: _Layout, *parts: Part, spacing: int | None = None, margins: int | tuple[int, int, int, int] | None = None
) -> _Layout:
    """Put ``parts`` into a layout, in order, and return it.

    A part is a widget, a layout, pixels of room or STRETCH, in a tuple with its share of the room and its alignment
    where these are not the usual ones. ``margins`` are left, top, right and bottom where one reads from left to right,
    or the same on all sides; they and ``spacing`` are in pixels, and stay as they are where they are None.
    """
    if margins is not None:
        start, top, end, bottom = margins if isinstance(margins, tuple) else (margins,) * 4
        left, right = (end, start) if QGuiApplication.isRightToLeft() else (start, end)  # Qt mirrors no margins
        layout.setContentsMargins(left, top, right, bottom)
    if spacing is not None:
        layout.setSpacing(spacing)
    for part in parts:
        content, *room = part if isinstance(part, tuple) else (part,)
        if isinstance(content, QWidget):
            layout.addWidget(content, *room)
        elif isinstance(content, QLayout):
            layout.addLayout(content, *room)
        elif isinstance(content, int):
            layout.addSpacing(content)
        else:
            layout.addStretch(*room)
    return layout


def visual_rect(direction: Qt.LayoutDirection, whole: QRectF, part: QRectF) -> QRectF:
    """Return where a part is painted that is given from left to right, as QStyle.visualRect does for whole pixels."""
    if direction is Qt.LayoutDirection.LeftToRight:
        return part
    return part.translated(whole.left() + whole.right() - part.left() - part.right(), 0)


def against_reading() -> Qt.LayoutDirection:
    """Return the direction of a button whose icon, or of a box whose tick, stands behind its words."""
    directions = Qt.LayoutDirection
    return directions.LeftToRight if QGuiApplication.isRightToLeft() else directions.RightToLeft
