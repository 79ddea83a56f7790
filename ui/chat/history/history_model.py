"""The list of chats as a Qt model, grouped by day."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt, Signal

from ui.client.chat_records import ChatSummary

Index = QModelIndex | QPersistentModelIndex
HEADING, SNIPPET, CHAT_ID, RUNNING = (Qt.ItemDataRole.UserRole + i for i in range(1, 5))


@dataclass(frozen=True, slots=True)
class Heading:
    """A line above the chats of some days."""

    text: str


HistoryRow = Heading | ChatSummary


class HistoryModel(QAbstractListModel):
    """Headings and chats, one row each."""

    renamed = Signal(object, str)  # the user gave a chat another title

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[HistoryRow] = []
        self._running: frozenset[int] = frozenset()

    def show(self, chats: Sequence[ChatSummary], today: date | None = None, is_grouped: bool = True) -> None:
        """Show other chats."""
        rows: list[HistoryRow] = grouped(chats, today or date.today()) if is_grouped else list(chats)
        if rows == self._rows:
            return
        if len(rows) == len(self._rows) and [_key(row) for row in rows] == [_key(row) for row in self._rows]:
            self._rows = rows
            self.dataChanged.emit(self.index(0), self.index(len(rows) - 1))
            return
        if rows[: len(self._rows)] == self._rows:
            # Older chats at the end: what is in view stays where it is.
            self.beginInsertRows(QModelIndex(), len(self._rows), len(rows) - 1)
            self._rows = rows
            self.endInsertRows()
            return
        self.beginResetModel()
        self._rows = rows
        self.endResetModel()

    def set_running(self, chat_ids: Iterable[int]) -> None:
        """Mark the chats in which a reply comes in."""
        running = frozenset(chat_ids)
        if running != self._running:
            self._running = running
            if self._rows:
                self.dataChanged.emit(self.index(0), self.index(len(self._rows) - 1), [RUNNING])

    @property
    def n_chats(self) -> int:
        """How many chats are shown."""
        return sum(isinstance(row, ChatSummary) for row in self._rows)

    def row_of(self, chat_id: int) -> int:
        """Return the row of a chat, -1 where it is not shown."""
        found = (i for i, row in enumerate(self._rows) if isinstance(row, ChatSummary) and row.id == chat_id)
        return next(found, -1)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's signature
        """Return how many rows there are."""
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return what Qt asks for."""
        if not index.isValid() or index.row() >= len(self._rows):
            return None
        row = self._rows[index.row()]
        if isinstance(row, Heading):
            return {Qt.ItemDataRole.DisplayRole: row.text, HEADING: True}.get(role)
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.EditRole, Qt.ItemDataRole.AccessibleTextRole):
            return row.title
        if role == Qt.ItemDataRole.ToolTipRole:
            return f"{row.title}\n{datetime.fromtimestamp(row.updated_ms / 1000):%d %B %Y, %H:%M}"
        own = {SNIPPET: row.snippet, CHAT_ID: row.id, RUNNING: row.id in self._running, HEADING: False}
        return own.get(role)

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        """Take another title from the user."""
        row = self._rows[index.row()]
        title = " ".join(str(value).split())
        if role != Qt.ItemDataRole.EditRole or isinstance(row, Heading) or not title or title == row.title:
            return False
        self._rows[index.row()] = replace(row, title=title)
        self.dataChanged.emit(index, index)
        self.renamed.emit(row.id, title)
        return True

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Return that headings cannot be chosen."""
        if not index.isValid() or isinstance(self._rows[index.row()], Heading):
            return Qt.ItemFlag.NoItemFlags
        return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsEditable


def _key(row: HistoryRow) -> object:
    return row.text if isinstance(row, Heading) else row.id


def grouped(chats: Iterable[ChatSummary], today: date) -> list[HistoryRow]:
    """Return the chats, which are sorted from new to old, with a heading above each group of days."""
    rows: list[HistoryRow] = []
    last = ""
    edges = _Edges(today)
    for chat in chats:
        name = edges.name_of(chat.updated_ms)
        if name != last:
            rows.append(Heading(name))
            last = name
        rows.append(chat)
    return rows


class _Edges:
    """Where groups of days begin, in milliseconds, so that ten thousand chats need no calendar each."""

    def __init__(self, today: date) -> None:
        self._edges = [(self._start(today - timedelta(days=n)), name) for n, name in _NEAR]
        self._month: tuple[float, float, str] = (0.0, 0.0, "")

    def name_of(self, updated_ms: int) -> str:
        for start, name in self._edges:
            if updated_ms >= start:
                return name
        if not self._month[0] <= updated_ms < self._month[1]:
            self._month = self._month_of(updated_ms)
        return self._month[2]

    def _month_of(self, updated_ms: int) -> tuple[float, float, str]:
        first = date.fromtimestamp(updated_ms / 1000).replace(day=1)
        after = (first + timedelta(days=32)).replace(day=1)
        return self._start(first), self._start(after), f"{first:%B %Y}"

    @staticmethod
    def _start(day: date) -> float:
        return datetime(day.year, day.month, day.day).timestamp() * 1000


_NEAR = ((0, "Today"), (1, "Yesterday"), (7, "Previous 7 days"), (30, "Previous 30 days"))
