"""The small pager between versions of a message."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from ui.theme.tokens import Palette
from ui.widgets.icon_button import IconButton


class Versions(QWidget):
    """Shows "2 / 3" between two arrows; hidden where there is only one version."""

    chosen = Signal(object)  # message id: too large for the int of a signal

    def __init__(self, ids: list[int], shown: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._ids, self._at = ids, ids.index(shown)
        self.back = IconButton("left", "Earlier version", size=16)
        self.forth = IconButton("right", "Later version", size=16)
        self.label = QLabel(f"{self._at + 1} / {len(ids)}")
        self.label.setProperty("tone", "caption")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        for widget in (self.back, self.label, self.forth):
            row.addWidget(widget)
        self.back.setEnabled(self._at > 0)
        self.forth.setEnabled(self._at < len(ids) - 1)
        self.back.clicked.connect(lambda: self.chosen.emit(self._ids[self._at - 1]))
        self.forth.clicked.connect(lambda: self.chosen.emit(self._ids[self._at + 1]))
        self.setVisible(len(ids) > 1)

    def set_palette(self, palette: Palette) -> None:
        """Draw the arrows for another palette."""
        self.back.set_palette(palette)
        self.forth.set_palette(palette)
