"""Drags over a window, as a desktop tells them."""

from __future__ import annotations

from typing import Any

from PySide6 import __version_info__
from PySide6.QtCore import QPoint, QPointF


def place(at: QPoint) -> Any:
    """Return where something is dragged as the events of this Qt take it: since 6.12 with parts of pixels."""
    return at if __version_info__ < (6, 12) else QPointF(at)
