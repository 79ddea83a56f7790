"""A widget of one pixel that notes when it is painted. Apart, since benches import Qt only when they run."""

from __future__ import annotations

import time

from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QWidget


class FrameProbe(QWidget):
    """Sits in a corner of ``window``."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self.painted: list[float] = []
        self.setFixedSize(1, 1)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        self.painted.append(time.perf_counter())
