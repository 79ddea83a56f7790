"""The side with all chats: search, new, rename, folders, archive, delete."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import partial
from pathlib import Path

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPersistentModelIndex, QPoint, QRect, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QDragEnterEvent,
    QDragLeaveEvent,
    QDragMoveEvent,
    QDropEvent,
    QFocusEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFileDialog,
    QFrame,
    QHBoxLayout,
    QInputDialog,
    QLabel,
    QListView,
    QMenu,
    QPushButton,
    QVBoxLayout,
)

from ui.chat.exchange.chat_text import file_name
from ui.chat.history.history_delegate import HistoryDelegate
from ui.chat.history.history_model import CHAT, CHAT_ID, DRAGGED, FOLDER, HEADING, HistoryModel
from ui.client.chat_records import ChatSummary
from ui.language import tr
from ui.theme.colours import Dressed, colours
from ui.theme.icons import pixmap, set_icon
from ui.theme.layouts import STRETCH, fill
from ui.theme.text_size import scaled
from ui.theme.tokens import SIDEBAR, Corner, Space
from ui.widgets.elided_label import on_button
from ui.widgets.fields import SearchField
from ui.widgets.icon_button import IconButton, TextButton
from ui.widgets.note_card import CALM, WARNING, NoteCard
from ui.widgets.page_layout import announce, file_dialog, open_menu, plain_label
from ui.widgets.row_list import paint_ring, tell_row

SEARCH_PAUSE_MS = 120
LOOK_MS = 60_000  # a computer that slept through midnight is woken at any time
IMPORTED = tr("Chats of Slipstream, ChatGPT, LM Studio, Open WebUI, GPT4All (*.json *.zip *.chat);;All files (*)")
EXPORTED = {tr("Markdown, to read (*.md)"): "md", tr("JSON, to import again (*.json)"): "json"}
EXPORTED_ALL = {tr("JSON, to import again (*.json)"): "json", tr("Markdown, a file for each chat (*.zip)"): "zip"}
ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)
LEAST, MOST = SIDEBAR * 3 // 4, SIDEBAR * 2  # pixels, between which its edge can be dragged
MOST_LETTERS = 60  # of the name of a folder
NAME_WIDTH = 360  # pixels, of the dialog that asks for a name


class HistoryPanel(Dressed, QFrame):
    """Lists chats; reports what the user wants done with them."""

    opened = Signal(object)
    beside_wanted = Signal(object)  # a chat that is to be opened beside the other
    new_wanted = Signal()
    renamed = Signal(object, str)
    deleted = Signal(object)
    searched = Signal(str)  # "" shows all
    pinned = Signal(object, bool)
    put_away = Signal(object, bool)  # into the archive, or out of it
    moved = Signal(object, str)  # into a folder, "" into none
    folder_renamed = Signal(str, str)  # "" takes its chats out
    archive_wanted = Signal(bool)
    import_wanted = Signal(object)  # the file
    export_wanted = Signal(object, object)  # the file, a chat or None for all
    back_wanted = Signal()  # chats of a damaged file
    exchange_left = Signal()  # nobody waits for the import or export any more
    more_wanted = Signal(int)  # the end of the list comes near; how many chats it has

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("sidebar")
        self.wanted_width = SIDEBAR
        self.setMinimumWidth(LEAST)
        self.setMaximumWidth(MOST)
        self._is_over, self._offers_other = True, False
        self._ask_again: Callable[[], object] = self.import_chats  # the question whose answer did not do
        self.model = HistoryModel(self)
        self.model.renamed.connect(self.renamed)
        self.model.folder_renamed.connect(self.folder_renamed)
        self.new = QPushButton(tr("New chat"))
        self.new.setProperty("kind", "new")
        self.new.setToolTip(tr("New chat (Ctrl+N)"))
        self.new.clicked.connect(self.new_wanted)
        self.search = SearchField(tr("Search chats"))
        self._search_timer = QTimer(self, singleShot=True, interval=SEARCH_PAUSE_MS)
        self._search_timer.timeout.connect(lambda: self.searched.emit(self.search.text().strip()))
        self.search.textChanged.connect(lambda text: self._search_timer.start())
        self.search.installEventFilter(self)
        self._day_timer = QTimer(self, interval=LOOK_MS)
        self._day_timer.timeout.connect(self._look_at_day)
        self._day_timer.start()
        self._opens_first = False  # of what is about to be found
        self._is_old = False  # others were to be shown while a name was being changed
        self.list = _ChatList()
        self.list.setModel(self.model)
        self.delegate = HistoryDelegate(self.list)
        self.list.setItemDelegate(self.delegate)
        self.delegate.closeEditor.connect(lambda editor: QTimer.singleShot(0, self, self._on_named_anew))
        self.list.clicked.connect(self._on_chosen)
        self.list.activated.connect(self._on_chosen)
        self.list.delete_wanted.connect(self._delete_current)
        self.list.beside_wanted.connect(self._open_beside)
        self.list.dropped.connect(self._on_dropped)
        self.list.verticalScrollBar().valueChanged.connect(self._on_scrolled)
        self.list.customContextMenuRequested.connect(self._show_menu)
        self.list.folder_toggled.connect(self._open_folder)
        self.archive = TextButton(tr("Archive"), tr("Show the archive"))
        self.archive.setCheckable(True)
        self.archive.setToolTip(tr("Chats that you have put away"))
        self.archive.toggled.connect(self._on_archive)
        self.nothing = plain_label(tone="caption")
        self.nothing.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.can_bring_back: Callable[[], bool] = lambda: False  # whether a damaged file of chats is kept
        self.more = IconButton("more", tr("Import and export chats"))
        self.more.clicked.connect(lambda: open_menu(self.more_menu(), self.more))
        self.note = NoteCard(CALM)
        self.note.button.clicked.connect(self._on_note)
        self.note.more.clicked.connect(self._open_imported)
        self._imported: int | None = None  # the chat that can be opened
        self._mark, self._name = QLabel(), QLabel("Slipstream")
        self._name.setProperty("tone", "title")
        self._lay_out()

    def _lay_out(self) -> None:
        head = self._head = QHBoxLayout()
        fill(head, self._mark, (self._name, 1), self.more, spacing=Space.S)
        top = fill(QVBoxLayout(), head, spacing=Space.S, margins=(Space.M, Space.M, Space.M, Space.S))
        fill(top, Space.XS, self.new, self.search)
        self.foot = fill(QHBoxLayout(), self.archive, STRETCH, margins=(Space.S, Space.XS, Space.M, Space.XS))
        column = fill(QVBoxLayout(self), top, self.nothing, (self.list, 1), spacing=0, margins=0)
        below = fill(QVBoxLayout(), self.note, margins=(Space.S, 0, Space.S, 0))
        column.addLayout(below)
        column.addLayout(self.foot)

    def sizeHint(self) -> QSize:
        """As wide as it was left."""
        return QSize(self.wanted_width, super().sizeHint().height())

    def show_chats(self, chats: list[ChatSummary], words: str) -> None:
        """Show all chats, or those that a search for ``words`` found; not while a name is being changed."""
        self._is_old = self.list.is_editing
        if self._is_old:
            return  # its field would go away with half of the name
        self.delegate.set_has_snippets(bool(words) and any(chat.snippet or chat.is_archived for chat in chats))
        walked_to, at = (
            self.list.currentIndex().data(CHAT_ID) if self.is_walked else None,
            self.list.currentIndex().row(),
        )
        self.model.show(chats, is_grouped=not words)
        self.list.scheduleDelayedItemsLayout()
        if walked_to is not None and not self.list.currentIndex().isValid():
            self._walk_on(walked_to, at)
        self.nothing.setVisible(not chats)
        empty = tr("The archive is empty.") if self.archive.isChecked() else tr("Your chats will be listed here.")
        self.nothing.setText(tr("Nothing found for “{words}”", words=words) if words else empty)
        self.nothing.setContentsMargins(Space.L, Space.XL, Space.L, Space.XL)
        if self._opens_first and words == self.search.text().strip():
            self._opens_first = False
            if chats:
                self.opened.emit(chats[0].id)

    def _on_named_anew(self) -> None:
        if self._is_old:
            self.searched.emit(self.search.text().strip())

    def _look_at_day(self) -> None:
        """Where another day has begun, chats of today are those of yesterday."""
        if self.model.today != date.today():
            self.searched.emit(self.search.text().strip())

    @property
    def is_walked(self) -> bool:
        """Whether the keyboard goes through the list: then the line where it is stays the current one."""
        return (self.list.hasFocus() or self.list.is_editing) and self.list.currentIndex().isValid()

    def _walk_on(self, chat_id: int, at: int) -> None:
        """Go on with a chat, or with the one that has come into its line."""
        row = self.model.row_of(chat_id)
        rows = [row] if row >= 0 else [*range(at, self.model.rowCount()), *reversed(range(at))]
        lines = (self.model.index(one) for one in rows)
        found = next((line for line in lines if line.data(CHAT_ID) is not None), None)
        if found is not None:
            self.list.setCurrentIndex(found)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """From the search field, Enter opens the first chat that is found, Down goes to the list, Escape clears."""
        if watched is self.search and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            words, key = self.search.text().strip(), event.key()
            if key in ENTER and words:
                self._opens_first = True
                self._search_timer.stop()
                self.searched.emit(words)
            elif key == Qt.Key.Key_Down:
                self.list.setFocus(Qt.FocusReason.TabFocusReason)
                if not self.list.currentIndex().isValid():
                    self.list.setCurrentIndex(self.model.index(0 if words else min(1, self.model.rowCount() - 1)))
            elif key == Qt.Key.Key_Escape and self.search.text():
                self.search.clear()
            else:
                return super().eventFilter(watched, event)
            return True
        return super().eventFilter(watched, event)

    def choose(self, chat_id: int | None) -> None:
        """Mark a chat as the one that is shown."""
        row = -1 if chat_id is None else self.model.row_of(chat_id)
        if row < 0:
            self.list.clearSelection()
            self.list.setCurrentIndex(QModelIndex())
        elif self.list.currentIndex().row() != row:
            self.list.setCurrentIndex(self.model.index(row))

    def dress(self) -> None:
        """Draw the icons, and leave room for the name."""
        set_icon(self.new, "new", colours().text, size=18)
        self._mark.setPixmap(pixmap("stream", colours().accent, 24, self.devicePixelRatioF()))
        self.more.dress()  # its size is needed now
        self._name.ensurePolished()
        self._head.invalidate()
        needed = max(self._head.minimumSize().width(), self.search.width_of_name)
        self.setMinimumWidth(max(LEAST, needed + 2 * Space.M))
        set_icon(self.archive, "archive", colours().muted, size=16)

    def _on_archive(self, is_shown: bool) -> None:
        self.archive.setText(tr("Back to all chats") if is_shown else tr("Archive"))
        self.archive.setAccessibleName(tr("Back to all chats") if is_shown else tr("Show the archive"))
        self.archive_wanted.emit(is_shown)

    def _on_scrolled(self, value: int) -> None:
        bar = self.list.verticalScrollBar()
        if value > bar.maximum() - 3 * bar.pageStep():
            self.more_wanted.emit(self.model.n_chats)

    def _on_chosen(self, index: QModelIndex) -> None:
        chat_id, heading = index.data(CHAT_ID), index.data(HEADING)
        if chat_id is not None:
            self.opened.emit(chat_id)
        elif heading and heading.is_folder:
            self._open_folder(heading.text, not heading.is_open)

    def _open_folder(self, folder: str, is_open: bool) -> None:
        row = self.list.currentIndex().row()
        self.model.open_folder(folder, is_open)
        self.list.setCurrentIndex(self.model.index(row))

    def _delete_current(self) -> None:
        chat_id = self.list.currentIndex().data(CHAT_ID)
        if chat_id is not None:
            self.deleted.emit(chat_id)

    def _open_beside(self) -> None:
        chat_id = self.list.currentIndex().data(CHAT_ID)
        if chat_id is not None:
            self.beside_wanted.emit(chat_id)

    def _on_dropped(self, chat_id: int, folder: str) -> None:
        chat = self.model.index(self.model.row_of(chat_id)).data(CHAT)
        if chat is not None:
            self._move(chat, folder)

    def _move(self, chat: ChatSummary, folder: str) -> None:
        if chat.is_pinned and folder:
            self.pinned.emit(chat.id, False)  # what is pinned is listed above the folders
        if chat.folder != folder:
            self.moved.emit(chat.id, folder)

    def _show_menu(self, at: QPoint) -> None:
        index = self.list.indexAt(at)  # asked for by the keyboard, it is in the line that is current
        if index.data(CHAT_ID) is not None or index.data(FOLDER) is not None:
            before = QPersistentModelIndex(self.list.currentIndex())
            self.list.setCurrentIndex(index)
            menu = self.menu_for(index)
            # When what was chosen there has begun.
            menu.aboutToHide.connect(lambda: QTimer.singleShot(0, self, lambda: self._mark_again(before)))
            menu.popup(self.list.viewport().mapToGlobal(at))

    def _mark_again(self, before: QPersistentModelIndex) -> None:
        """Mark the chat that is open: a menu for another one has marked that."""
        if not self.list.is_editing:
            self.list.clearSelection()
            self.list.setCurrentIndex(before)

    def menu_for(self, index: QModelIndex) -> QMenu:
        """Return what can be done with a chat, or with a folder."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        chat = index.data(CHAT)
        if chat is None:
            folder = str(index.data(FOLDER))
            menu.addAction(tr("Rename folder\tF2"), lambda: self.list.edit(index))
            menu.addAction(tr("Remove folder, keep its chats"), lambda: self.folder_renamed.emit(folder, ""))
            return menu
        menu.addAction(tr("Open"), lambda: self._on_chosen(index))
        menu.addAction(tr("Open beside\tCtrl+Enter"), lambda: self.beside_wanted.emit(chat.id))
        menu.addAction(tr("Rename\tF2"), lambda: self.list.edit(index))
        menu.addAction(
            tr("Unpin") if chat.is_pinned else tr("Pin"), lambda: self.pinned.emit(chat.id, not chat.is_pinned)
        )
        menu.addMenu(self._folders_menu(menu, chat))
        menu.addAction(
            tr("Take out of the archive") if chat.is_archived else tr("Put into the archive"),
            lambda: self.put_away.emit(chat.id, not chat.is_archived),
        )
        export = menu.addAction(tr("Export…"), partial(self.export, chat.title, chat.id))
        export.setEnabled(self._is_over)
        menu.addSeparator()
        menu.addAction(tr("Delete\tDel"), self._delete_current)
        return menu

    def more_menu(self) -> QMenu:
        """Return what can be done with all chats."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(tr("Import chats…"), self.import_chats)
        menu.addAction(tr("Export all chats…"), self.export_all)
        if self.can_bring_back():
            menu.addAction(tr("Bring chats back…"), self.back_wanted.emit)
        for action in menu.actions():
            action.setEnabled(self._is_over)  # one at a time
        return menu

    def show_exchange(
        self, words: str, is_over: bool, offers_other: bool = False, imported: Sequence[int] = ()
    ) -> None:
        """Say how far an import or export is, or what became of it.

        Offers to choose another file where that helps, and to open the first of the chats that were imported.
        """
        self._is_over, self._offers_other = is_over, offers_other
        self._imported = imported[0] if imported else None
        self.note.more.setText(tr("Open the chat") if len(imported) == 1 else tr("Open the first"))
        self.note.more.setVisible(bool(imported))
        other = tr("Choose a file…") if self._ask_again == self.import_chats else tr("Choose another place…")
        self.note.button.setText(other if offers_other else "OK" if is_over else tr("Stop"))
        self.note.button.show()
        self.note.say(words, WARNING if offers_other else CALM)
        if is_over:
            announce(self.note, words)

    def _on_note(self) -> None:
        if not self._is_over:
            self.exchange_left.emit()
            return
        self.list.setFocus()  # hidden with the keyboard in it, it would hand that to any widget
        self.note.hide()
        if self._offers_other:
            self._ask_again()

    def _open_imported(self) -> None:
        self.list.setFocus()
        self.note.hide()
        self.opened.emit(self._imported)

    def export_all(self) -> None:
        """Ask where all chats are written; one import or export is made at a time."""
        if self._is_over:
            self._ask_where(tr("Slipstream chats"), None)

    def export(self, title: str, chat_id: int) -> None:
        """Ask where one chat is written."""
        if self._is_over:
            self._ask_where(title, chat_id)

    def import_chats(self) -> None:
        """Ask for a file with chats."""
        if not self._is_over:
            return
        self._ask_again = self.import_chats
        dialog = file_dialog(self, tr("Import chats"), IMPORTED)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(lambda name: self.import_wanted.emit(Path(name)))
        dialog.open()

    def _ask_where(self, title: str, chat_id: int | None) -> None:
        self._ask_again = partial(self._ask_where, title, chat_id)
        forms = EXPORTED if chat_id is not None else EXPORTED_ALL
        usual = next(iter(forms.values()))
        dialog = file_dialog(self, tr("Export"), ";;".join(forms))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        # The name has its suffix: Qt would add none to one with a dot in it, as "Hello. How are you".
        dialog.selectFile(f"{file_name(title)}.{usual}")

        def take_form(form: str) -> None:
            for name in dialog.selectedFiles():
                dialog.selectFile(f"{_without_form(Path(name).name, forms)}.{forms[form]}")

        def write(name: str) -> None:
            form = forms.get(dialog.selectedNameFilter(), usual)
            self.export_wanted.emit(_in_form(Path(name), form, forms), chat_id)

        dialog.filterSelected.connect(take_form)
        dialog.fileSelected.connect(write)
        dialog.open()

    def _folders_menu(self, parent: QMenu, chat: ChatSummary) -> QMenu:
        menu = QMenu(tr("Move to folder"), parent)
        for folder in self.model.folders:
            action = menu.addAction(on_button(folder), partial(self._move, chat, folder))
            action.setEnabled(folder != chat.folder)
        if self.model.folders:
            menu.addSeparator()
        menu.addAction(tr("New folder…"), partial(self.ask_for_name, tr("New folder"), partial(self._on_named, chat)))
        if chat.folder:
            menu.addAction(tr("Out of its folder"), lambda: self.moved.emit(chat.id, ""))
        return menu

    def ask_for_name(self, title: str, then: Callable[[str], object], now: str = "") -> None:
        """Ask for the name of a chat or folder; none is no answer."""
        dialog = QInputDialog(self.window())
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setWindowTitle(title)
        dialog.setLabelText(tr("Name"))
        dialog.setTextValue(now)
        dialog.setOkButtonText(tr("Rename") if now else tr("Create"))
        dialog.resize(scaled(NAME_WIDTH), dialog.sizeHint().height())  # Qt's own is hardly wider than its buttons

        def named(text: str) -> None:
            if name := " ".join(text.split()):
                then(name)

        dialog.textValueSelected.connect(named)
        dialog.open()

    def _on_named(self, chat: ChatSummary, name: str) -> None:
        self._move(chat, name[:MOST_LETTERS])


def _without_form(name: str, forms: Mapping[str, str]) -> str:
    """Return a file's name without the suffix of a form in which chats are written, where it has one."""
    stem, _, suffix = name.rpartition(".")
    return stem if stem and suffix.lower() in forms.values() else name


def _in_form(path: Path, form: str, forms: Mapping[str, str]) -> Path:
    """Return where a file goes that was named without such a suffix: beside what is there, which nobody gave up."""
    if path.suffix.lower().lstrip(".") in forms.values():
        return path
    marks = itertools.chain([""], (f" ({number})" for number in itertools.count(1)))
    places = (path.with_name(f"{path.name}{mark}.{form}") for mark in marks)
    return next(place for place in places if not place.exists())


class _ChatList(QListView):
    """The list itself, with its keys, and chats that are dragged into folders and out of them."""

    delete_wanted = Signal()
    dropped = Signal(object, str)  # a chat, the folder into which it is put, "" for none
    beside_wanted = Signal()
    folder_toggled = Signal(str, bool)

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName(tr("Chats"))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setUniformItemSizes(True)
        self.setMouseTracking(True)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setEditTriggers(QAbstractItemView.EditTrigger.EditKeyPressed)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.setDragEnabled(True)
        self.setAcceptDrops(True)
        self.setDropIndicatorShown(False)
        self._target: tuple[str, int, int] | None = None  # the folder below the chat that is dragged, and its lines

    @property
    def is_editing(self) -> bool:
        """Whether a name is being changed."""
        return self.state() == self.State.EditingState

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose a line. The right button asks for a menu, which marks its line for as long as it is open."""
        if event.button() != Qt.MouseButton.RightButton:
            super().mousePressEvent(event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Take chats of this list."""
        if event.source() is self and event.mimeData().hasFormat(DRAGGED):
            event.acceptProposedAction()

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        """Mark the folder into which the chat would go."""
        super().dragMoveEvent(event)  # scrolls at the edges
        model, row = self.model(), self.indexAt(event.position().toPoint()).row()
        self._aim(model.group_at(row) if isinstance(model, HistoryModel) else None)
        event.setAccepted(self._target is not None)

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        """Mark nothing any more."""
        super().dragLeaveEvent(event)
        self._aim(None)

    def dropEvent(self, event: QDropEvent) -> None:
        """Put the chat into the folder."""
        target = self._target
        self._aim(None)
        if target is not None:
            self.dropped.emit(int(bytes(event.mimeData().data(DRAGGED).data())), target[0])
            event.acceptProposedAction()
        self.stopAutoScroll()
        self.setState(self.State.NoState)

    def _aim(self, target: tuple[str, int, int] | None) -> None:
        if target != self._target:
            self._target = target
            self.viewport().update()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Say which chat is the current one."""
        super().focusInEvent(event)
        tell_row(self)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw a line around the folder into which a chat would go, and around all where no line has the keyboard."""
        super().paintEvent(event)
        current = self.currentIndex()
        if self.hasFocus() and current.data(CHAT_ID) is None and current.data(FOLDER) is None:
            painter = QPainter(self.viewport())
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            paint_ring(painter, self.viewport().rect())
            painter.end()
        if self._target is None:
            return
        _, first, last = self._target
        model, whole = self.model(), self.viewport().rect()
        if first <= last:
            area = self.visualRect(model.index(first, 0)) | self.visualRect(model.index(last, 0))
        else:  # all chats are in folders: the room below them is for none
            top = self.visualRect(model.index(model.rowCount() - 1, 0)).bottom() + Space.S
            area = QRect(0, top, whole.width(), whole.height() - top)
        painter = QPainter(self.viewport())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(colours().focus), 2))
        painter.drawRoundedRect(area.adjusted(Space.XS, 1, -Space.XS, -1), Corner.S, Corner.S)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter opens, with Ctrl beside; Delete deletes; the arrows to the sides open and close a folder."""
        heading = self.currentIndex().data(HEADING)
        if heading and heading.is_folder and event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            towards_end = Qt.Key.Key_Left if self.isRightToLeft() else Qt.Key.Key_Right
            self.folder_toggled.emit(heading.text, event.key() == towards_end)
        elif event.key() in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            self.delete_wanted.emit()
        elif event.key() in ENTER and event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.beside_wanted.emit()
        elif event.key() in ENTER and not self.is_editing:
            self.activated.emit(self.currentIndex())
        else:
            super().keyPressEvent(event)
