"""Rows and columns of widgets, said in one piece."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from PySide6.QtWidgets import QBoxLayout, QLayout, QWidget

_Layout = TypeVar("_Layout", bound=QBoxLayout)
Part = QWidget | QLayout | str | tuple[Any, ...]

STRETCH: Final = "stretch"
"""Empty room, among the parts of a layout."""


def fill(
    layout: _Layout, *parts: Part, spacing: int | None = None, margins: int | tuple[int, int, int, int] | None = None
) -> _Layout:
    """Put ``parts`` into a layout, in order, and return it.

    A part is a widget, a layout or STRETCH, in a tuple with its share of the room and its alignment where these are not
    the usual ones. ``margins`` are left, top, right and bottom, or the same on all sides; they and ``spacing`` are in
    pixels, and stay as they are where they are None.
    """
    if margins is not None:
        layout.setContentsMargins(*(margins if isinstance(margins, tuple) else (margins,) * 4))
    if spacing is not None:
        layout.setSpacing(spacing)
    for part in parts:
        content, *room = part if isinstance(part, tuple) else (part,)
        if isinstance(content, QWidget):
            layout.addWidget(content, *room)
        elif isinstance(content, QLayout):
            layout.addLayout(content, *room)
        else:
            layout.addStretch(*room)
    return layout
