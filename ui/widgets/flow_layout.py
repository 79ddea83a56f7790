"""Layouts that put widgets in a row, and go on below where there is no more room."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QBoxLayout, QLayout, QLayoutItem, QStyle, QWidget

BUTTONS_SHARE = 0.55  # of the width: what takes more stands below the words


class FlowLayout(QLayout):
    """Widgets in the order in which they were added, each as large as it wants to be, in the middle of its row."""

    def __init__(self, parent: QWidget | None = None, spacing: int = 0) -> None:
        super().__init__(parent)
        self._items: list[QLayoutItem] = []
        self.setSpacing(spacing)
        self.setContentsMargins(0, 0, 0, 0)

    def addItem(self, item: QLayoutItem) -> None:
        """Add one at the end."""
        self._items.append(item)

    def count(self) -> int:
        """Return how many there are."""
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        """Return one, None where there is none."""
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        """Take one out."""
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        """Ask for no more room than is needed."""
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        """Be as tall as the rows are."""
        return True

    def heightForWidth(self, width: int) -> int:
        """Return the height of all rows."""
        return self._place(QRect(0, 0, width, 0), is_trial=True)

    def setGeometry(self, rect: QRect) -> None:
        """Place the widgets."""
        super().setGeometry(rect)
        self._place(rect, is_trial=False)

    def sizeHint(self) -> QSize:
        """Return the least size: the width is given from outside."""
        return self.minimumSize()

    def minimumSize(self) -> QSize:
        """Return the size of the largest one."""
        size = QSize()
        for item in self._items:
            size = size.expandedTo(item.minimumSize())
        return size

    def _place(self, rect: QRect, is_trial: bool) -> int:
        parent = self.parentWidget()
        direction = parent.layoutDirection() if parent is not None else Qt.LayoutDirection.LeftToRight
        x, y, row = rect.x(), rect.y(), list[tuple[QLayoutItem, QRect]]()
        rows = [row]
        for item in self._items:
            if item.isEmpty():
                continue
            size = item.sizeHint().boundedTo(QSize(rect.width(), item.sizeHint().height()))
            if row and x + size.width() > rect.right() + 1:
                x, y, row = rect.x(), y + _height(row) + self.spacing(), []
                rows.append(row)
            row.append((item, QRect(QPoint(x, y), size)))
            x += size.width() + self.spacing()
        for row in [] if is_trial else rows:
            for item, place in row:
                place.translate(0, (_height(row) - place.height()) // 2)
                item.setGeometry(QStyle.visualRect(direction, rect, place))
        return y + _height(rows[-1]) - rect.y()


def _height(row: Sequence[tuple[QLayoutItem, QRect]]) -> int:
    return max((place.height() for _, place in row), default=0)


class FoldingRow(QBoxLayout):
    """Words with a button beside them, or below them where it would leave them little room."""

    def __init__(self, words: QWidget, button: QWidget, spacing: int) -> None:
        super().__init__(QBoxLayout.Direction.LeftToRight)
        self._button = button
        self.setSpacing(spacing)
        self.addWidget(words, 1)
        self.addWidget(button, 0, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)

    def minimumSize(self) -> QSize:
        """Ask for no more width than one of them needs."""
        items = (item for at in range(self.count()) if (item := self.itemAt(at)) is not None)
        return QSize(max(item.minimumSize().width() for item in items), super().minimumSize().height())

    def heightForWidth(self, width: int) -> int:
        """Return the height of both, as they stand in so much room."""
        self._turn(width)
        return super().heightForWidth(width)

    def setGeometry(self, rect: QRect) -> None:
        """Place them."""
        self._turn(rect.width())
        super().setGeometry(rect)

    def _turn(self, width: int) -> None:
        is_beside = self._button.sizeHint().width() <= width * BUTTONS_SHARE
        ways = QBoxLayout.Direction
        self.setDirection(ways.LeftToRight if is_beside else ways.TopToBottom)
