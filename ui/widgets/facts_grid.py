"""Labels and values, one pair per line."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QWidget

from ui.theme.text_size import scaled
from ui.theme.tokens import Space
from ui.widgets.elided_label import ElidedLabel, in_tip

LABELS = 116
WIDE = 520  # there is room for two facts on a line


class FactsGrid(QWidget):
    """Shows facts, with ``can_halve`` two on a line where it is wide.

    A value that is too long is cut, and whole in its tip.
    """

    def __init__(self, *, can_halve: bool = False) -> None:
        super().__init__()
        self._can_halve, self._n_rows = can_halve, 0
        self._pairs: list[tuple[ElidedLabel, ElidedLabel]] = []
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(Space.M)
        self._grid.setVerticalSpacing(Space.XS + 2)
        self._grid.setColumnStretch(1, 1)

    @property
    def facts(self) -> dict[str, str]:
        """What it shows."""
        return {label.text(): value.text() for label, value in self._pairs if not label.isHidden()}

    def show_facts(self, facts: Sequence[tuple[str, str]]) -> None:
        """Show other facts; lines that are there are used again."""
        while len(self._pairs) < len(facts):
            self._add_line()
        for number, (label, value) in enumerate(self._pairs):
            is_used = number < len(facts)
            label.setVisible(is_used)
            value.setVisible(is_used)
            if is_used:
                label.setText(facts[number][0])
                value.setText(facts[number][1])
                value.setToolTip(in_tip(facts[number][1]))
        self._place()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put them side by side where there is room."""
        super().resizeEvent(event)
        self._place()

    def _place(self) -> None:
        n_shown = sum(not label.isHidden() for label, _ in self._pairs)
        is_halved = self._can_halve and self.width() >= scaled(WIDE)
        labels = self._width_of_labels(self.width() // (4 if is_halved else 2))
        self._grid.setColumnMinimumWidth(0, labels)
        self._grid.setColumnMinimumWidth(2, labels if is_halved else 0)
        n_rows = max(1, -(-n_shown // 2) if is_halved else n_shown)
        if n_rows == self._n_rows:
            return
        self._n_rows = n_rows
        for number, (label, value) in enumerate(self._pairs):
            half, row = divmod(number, n_rows)
            if half < 2:
                self._grid.addWidget(label, row, 2 * half)
                self._grid.addWidget(value, row, 2 * half + 1)
        self._grid.setColumnStretch(3, int(is_halved))

    def _width_of_labels(self, most: int) -> int:
        """Leave room for what is said of something with a long name: its label is cut, and whole in its tip."""
        widest, most = LABELS, max(LABELS, most)
        for label, _ in self._pairs:
            label.ensurePolished()
            wanted = 0 if label.isHidden() else label.fontMetrics().horizontalAdvance(label.text()) + 1
            label.setToolTip(in_tip(label.text()) if wanted > most else "")
            widest = max(widest, wanted)
        return min(widest, most)

    def _add_line(self) -> None:
        label, value = ElidedLabel(mode=Qt.TextElideMode.ElideMiddle), ElidedLabel()
        label.setProperty("tone", "caption")
        value.setMinimumHeight(18)
        at = len(self._pairs)
        self._grid.addWidget(label, at, 0)
        self._grid.addWidget(value, at, 1)
        self._n_rows = 0
        self._pairs.append((label, value))
