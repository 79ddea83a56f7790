"""The side with all chats: search, new, rename, delete."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QKeyEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QListView,
    QMenu,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from ui.chat.history.history_delegate import HistoryDelegate
from ui.chat.history.history_model import CHAT_ID, HistoryModel
from ui.client.chat_records import ChatSummary
from ui.theme.icons import icon, pixmap
from ui.theme.tokens import SIDEBAR, Palette, Space

SEARCH_PAUSE_MS = 120


class HistoryPanel(QFrame):
    """Lists chats; reports what the user wants done with them."""

    opened = Signal(object)
    new_wanted = Signal()
    renamed = Signal(object, str)
    deleted = Signal(object)
    searched = Signal(str)  # "" shows all
    more_wanted = Signal(int)  # the end of the list comes near; how many chats it has

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("sidebar")
        self.setFixedWidth(SIDEBAR)
        self.model = HistoryModel(self)
        self.model.renamed.connect(self.renamed)
        self.new = QPushButton("New chat")
        self.new.setProperty("kind", "new")
        self.new.setToolTip("New chat (Ctrl+N)")
        self.new.clicked.connect(self.new_wanted)
        self.search = QLineEdit()
        self.search.setPlaceholderText("Search chats")
        self.search.setAccessibleName("Search chats")
        self.search.setClearButtonEnabled(True)
        self._search_icon = QAction(self.search)
        self.search.addAction(self._search_icon, QLineEdit.ActionPosition.LeadingPosition)
        self._search_timer = QTimer(self, singleShot=True, interval=SEARCH_PAUSE_MS)
        self._search_timer.timeout.connect(lambda: self.searched.emit(self.search.text().strip()))
        self.search.textChanged.connect(lambda text: self._search_timer.start())
        self.list = _ChatList()
        self.list.setModel(self.model)
        self.delegate = HistoryDelegate(self.list)
        self.list.setItemDelegate(self.delegate)
        self.list.clicked.connect(self._on_chosen)
        self.list.activated.connect(self._on_chosen)
        self.list.delete_wanted.connect(self._delete_current)
        self.list.verticalScrollBar().valueChanged.connect(self._on_scrolled)
        self.list.customContextMenuRequested.connect(self._show_menu)
        self.nothing = QLabel()
        self.nothing.setProperty("tone", "caption")
        self.nothing.setWordWrap(True)
        self.nothing.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self._mark, self._name = QLabel(), QLabel("Slipstream")
        self._name.setProperty("tone", "title")
        self._lay_out()

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.setSpacing(Space.S)
        head.addWidget(self._mark)
        head.addWidget(self._name, 1)
        top = QVBoxLayout()
        top.setContentsMargins(Space.M, Space.M, Space.M, Space.S)
        top.setSpacing(Space.S)
        top.addLayout(head)
        top.addSpacing(Space.XS)
        top.addWidget(self.new)
        top.addWidget(self.search)
        self.foot = QHBoxLayout()
        self.foot.setContentsMargins(Space.M, Space.S, Space.M, Space.S)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(top)
        column.addWidget(self.nothing)
        column.addWidget(self.list, 1)
        column.addLayout(self.foot)

    def show_chats(self, chats: list[ChatSummary], words: str) -> None:
        """Show all chats, or those that a search for ``words`` found."""
        self.delegate.set_has_snippets(any(chat.snippet for chat in chats))
        self.model.show(chats, is_grouped=not words)
        self.list.scheduleDelayedItemsLayout()
        self.nothing.setVisible(not chats)
        self.nothing.setText(f"Nothing found for “{words}”" if words else "Your chats will be listed here.")
        self.nothing.setContentsMargins(Space.L, Space.XL, Space.L, Space.XL)

    def choose(self, chat_id: int | None) -> None:
        """Mark a chat as the one that is shown."""
        row = -1 if chat_id is None else self.model.row_of(chat_id)
        if row < 0:
            self.list.clearSelection()
            self.list.setCurrentIndex(QModelIndex())
        elif self.list.currentIndex().row() != row:
            self.list.setCurrentIndex(self.model.index(row))

    def set_palette(self, palette: Palette) -> None:
        """Draw icons and lines for another palette."""
        self.delegate.set_palette(palette)
        self.new.setIcon(icon("new", palette.text, size=18))
        self._search_icon.setIcon(icon("search", palette.muted, size=16))
        self._mark.setPixmap(pixmap("stream", palette.accent, 24, self.devicePixelRatioF()))
        self.list.viewport().update()

    def _on_scrolled(self, value: int) -> None:
        bar = self.list.verticalScrollBar()
        if value > bar.maximum() - 3 * bar.pageStep():
            self.more_wanted.emit(self.model.n_chats)

    def _on_chosen(self, index: QModelIndex) -> None:
        chat_id = index.data(CHAT_ID)
        if chat_id is not None:
            self.opened.emit(chat_id)

    def _delete_current(self) -> None:
        chat_id = self.list.currentIndex().data(CHAT_ID)
        if chat_id is not None:
            self.deleted.emit(chat_id)

    def _show_menu(self, at: QPoint) -> None:
        index = self.list.indexAt(at)
        if index.data(CHAT_ID) is not None:
            self.list.setCurrentIndex(index)
            self.menu_for(index).popup(self.list.viewport().mapToGlobal(at))

    def menu_for(self, index: QModelIndex) -> QMenu:
        """Return what can be done with a chat."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction("Open", lambda: self._on_chosen(index))
        menu.addAction("Rename\tF2", lambda: self.list.edit(index))
        menu.addAction("Delete\tDel", self._delete_current)
        return menu


class _ChatList(QListView):
    """The list itself, with its keys."""

    delete_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Chats")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setUniformItemSizes(True)
        self.setMouseTracking(True)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setEditTriggers(QAbstractItemView.EditTrigger.EditKeyPressed)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter opens, Delete deletes."""
        if event.key() in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            self.delete_wanted.emit()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.state() != self.State.EditingState:
            self.activated.emit(self.currentIndex())
        else:
            super().keyPressEvent(event)
