"""The list of chats as a Qt model: what is pinned, folders, and the others by day."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any

from PySide6.QtCore import QAbstractListModel, QMimeData, QModelIndex, QObject, QPersistentModelIndex, Qt, Signal

from ui.client.chat_records import ChatSummary
from ui.language import day, month, tr

Index = QModelIndex | QPersistentModelIndex
DRAGGED = "application/x-slipstream-chat"  # the id of a chat on its way into a folder
HEADING, SNIPPET, CHAT_ID, RUNNING, FOLDER, CHAT = (Qt.ItemDataRole.UserRole + i for i in range(1, 7))


@dataclass(frozen=True, slots=True)
class Heading:
    """A line above the chats of some days, or of a folder, which can be closed."""

    text: str
    is_folder: bool = False
    is_open: bool = True
    n_chats: int = 0


HistoryRow = Heading | ChatSummary


class HistoryModel(QAbstractListModel):
    """Headings and chats, one row each."""

    renamed = Signal(object, str)  # the user gave a chat another title
    folder_renamed = Signal(str, str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[HistoryRow] = []
        self._running: frozenset[int] = frozenset()
        self._chats: Sequence[ChatSummary] = ()
        self.today = date.today()  # by which chats are grouped
        self._is_grouped = True
        self.closed: frozenset[str] = frozenset()  # folders whose chats are not listed

    def show(self, chats: Sequence[ChatSummary], today: date | None = None, is_grouped: bool = True) -> None:
        """Show other chats."""
        self._chats, self.today, self._is_grouped = chats, today or date.today(), is_grouped
        rows: list[HistoryRow] = grouped(chats, self.today, self.closed) if is_grouped else list(chats)
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

    def open_folder(self, folder: str, is_open: bool) -> None:
        """List the chats of a folder, or its name only."""
        self.closed = self.closed - {folder} if is_open else self.closed | {folder}
        self.show(self._chats, self.today, self._is_grouped)

    @property
    def folders(self) -> list[str]:
        """The names of all folders."""
        return sorted({chat.folder for chat in self._chats if chat.folder}, key=str.casefold)

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
            return _of_heading(row, role)
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.EditRole):
            return row.title
        if role == Qt.ItemDataRole.ToolTipRole:
            at = row.updated_ms / 1000
            return f"{row.title}\n{day(at)}, {datetime.fromtimestamp(at):%H:%M}"
        snippet = " · ".join(part for part in (tr("Archived") if row.is_archived else "", row.snippet) if part)
        is_found = not self._is_grouped
        states = (
            tr("pinned") if row.is_pinned else "",
            tr("a reply comes in") if row.id in self._running else "",
            snippet if is_found else "",
        )
        own = {
            Qt.ItemDataRole.AccessibleTextRole: ", ".join(part for part in (row.title, *states) if part),
            SNIPPET: snippet if is_found else "", CHAT_ID: row.id, CHAT: row, RUNNING: row.id in self._running,
            HEADING: False, FOLDER: row.folder,
        }  # fmt: skip
        return own.get(role)

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        """Take another title from the user."""
        row = self._rows[index.row()]
        title = " ".join(str(value).split())
        if role != Qt.ItemDataRole.EditRole or not title:
            return False
        if title == (row.text if isinstance(row, Heading) else row.title):
            return False
        if isinstance(row, Heading):
            self.folder_renamed.emit(row.text, title)
            return True
        self._rows[index.row()] = replace(row, title=title)
        self.dataChanged.emit(index, index)
        self.renamed.emit(row.id, title)
        return True

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Return that headings cannot be chosen."""
        if not index.isValid():
            return Qt.ItemFlag.NoItemFlags
        row = self._rows[index.row()]
        if isinstance(row, Heading) and not row.is_folder:
            return Qt.ItemFlag.NoItemFlags
        usual = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsEditable
        can_move = self._is_grouped and isinstance(row, ChatSummary)
        return usual | Qt.ItemFlag.ItemIsDragEnabled if can_move else usual

    def mimeTypes(self) -> list[str]:
        """Return what a chat is while it is dragged."""
        return [DRAGGED]

    def mimeData(self, indexes: Sequence[QModelIndex]) -> QMimeData:
        """Return the chat that is dragged."""
        data = QMimeData()
        if indexes:
            data.setData(DRAGGED, str(indexes[0].data(CHAT_ID)).encode())
        return data

    def group_at(self, row: int) -> tuple[str, int, int] | None:
        """Return the folder in whose lines ``row`` is, "" for none, and its first and last line; None where nothing
        can be put. Below all lines, at -1, chats are in no folder."""
        starts = [i for i, one in enumerate(self._rows) if isinstance(one, Heading)]
        if not self._is_grouped or not starts:
            return None
        in_none = next((i for i in starts if self._is_of_days(i)), len(self._rows))
        if row < 0 or row >= in_none:
            return "", in_none, len(self._rows) - 1
        first = max((i for i in starts if i <= row), default=0)
        heading = self._rows[first]
        last = min((i for i in starts if i > first), default=len(self._rows)) - 1
        return (heading.text, first, last) if isinstance(heading, Heading) and heading.is_folder else None

    def _is_of_days(self, at: int) -> bool:
        heading, chat = self._rows[at], self._rows[at + 1] if at + 1 < len(self._rows) else None
        return isinstance(heading, Heading) and not heading.is_folder and not getattr(chat, "is_pinned", False)


def _key(row: HistoryRow) -> object:
    return (row.text, row.is_folder) if isinstance(row, Heading) else row.id


def _of_heading(row: Heading, role: int) -> Any:
    state = tr(
        "folder, {words}, {n_chats} {chats}",
        words=tr("open") if row.is_open else tr("closed"),
        n_chats=row.n_chats,
        chats=tr("chat") if row.n_chats == 1 else tr("chats"),
    )
    name = f"{row.text}, {state}" if row.is_folder else row.text
    shown = {
        Qt.ItemDataRole.DisplayRole: row.text, Qt.ItemDataRole.EditRole: row.text,
        Qt.ItemDataRole.AccessibleTextRole: name, HEADING: row, FOLDER: row.text if row.is_folder else None,
    }  # fmt: skip
    return shown.get(role)


def grouped(chats: Sequence[ChatSummary], today: date, closed: Iterable[str] = ()) -> list[HistoryRow]:
    """Return the chats, which are sorted from new to old: the pinned ones, folders, then days, each with a heading."""
    pinned = [chat for chat in chats if chat.is_pinned]
    rows: list[HistoryRow] = [Heading(tr("Pinned")), *pinned] if pinned else []
    folders: dict[str, list[ChatSummary]] = {}
    for chat in chats:
        if chat.folder and not chat.is_pinned:
            folders.setdefault(chat.folder, []).append(chat)
    for name in sorted(folders, key=str.casefold):
        is_open = name not in closed
        rows.append(Heading(name, True, is_open, len(folders[name])))
        rows += folders[name] if is_open else []
    last = ""
    edges = _Edges(today)
    for chat in chats:
        if chat.is_pinned or chat.folder:
            continue
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
        return self._start(first), self._start(after), month(first)

    @staticmethod
    def _start(day: date) -> float:
        return datetime(day.year, day.month, day.day).timestamp() * 1000


_NEAR = ((0, tr("Today")), (1, tr("Yesterday")), (7, tr("Previous 7 days")), (30, tr("Previous 30 days")))
