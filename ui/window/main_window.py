"""The window: it places the parts and connects them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QPoint, QSettings, QSize, Qt
from PySide6.QtGui import QAction, QActionGroup, QCloseEvent, QKeySequence, QResizeEvent, QShortcut
from PySide6.QtWidgets import (
    QAbstractItemView,
    QAbstractSpinBox,
    QHBoxLayout,
    QLayout,
    QLineEdit,
    QMainWindow,
    QMenu,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from models.library import requests as ask
from models.library.values import SettingText
from ui.chat.chat_page import ChatPage
from ui.chat.chat_sessions import ChatSessions
from ui.chat.history.history_panel import HistoryPanel
from ui.chat.markdown.code_colours import CodeColours
from ui.chat.markdown.markdown import Markdown
from ui.chat.markdown.text_tools import TextTools
from ui.chat.storage.chat_archive import ChatArchive
from ui.chat.storage.ids import Ids
from ui.chat.tuning_panel import TuningPanel
from ui.client.api import Api, ServerState
from ui.client.library_link import LibraryLink
from ui.client.server_watch import ServerWatch
from ui.gauges.speed_bar import SpeedBar
from ui.library.find_view import downloads_at_work
from ui.library.library_page import LibraryPage
from ui.platform.gui_thread import GuiThread
from ui.theme.appearance import Appearance, ThemeChoice
from ui.theme.text_size import PERCENTS, USUAL, read_percent, step
from ui.theme.tokens import NARROW, Palette
from ui.widgets.icon_button import IconButton
from ui.widgets.toast import Toast
from ui.window.rail import NavigationRail

# Their parts are theirs alone.
_WHOLE = (QAbstractItemView, QAbstractSpinBox, QLineEdit)


def move_focus(window: QWidget, forward: bool) -> bool:
    """Give the keyboard to the next widget of ``window``, or the one before; False where there is none."""
    order = list(in_reading_order(window))
    if not order:
        return False
    now, step = window.focusWidget(), 1 if forward else -1
    at = order.index(now) + step if now in order else (0 if forward else -1)
    widget = order[at % len(order)]
    widget.setFocus(Qt.FocusReason.TabFocusReason if forward else Qt.FocusReason.BacktabFocusReason)
    _scroll_to(widget)
    return True


def in_reading_order(widget: QWidget) -> Iterator[QWidget]:
    """Yield ``widget`` and what is in it, where Tab can go now."""
    if widget.isHidden() or not widget.isEnabled():
        return
    if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.focusProxy() is None:
        yield widget
    if isinstance(widget, _WHOLE):
        return
    for child in _children(widget):
        yield from in_reading_order(child)


def _children(widget: QWidget) -> list[QWidget]:
    """Return the parts of a widget: those of its layout in its order, then the others by where they are."""
    layout = widget.layout()
    placed = list(_placed(layout)) if layout is not None else []
    others = [
        child
        for child in widget.children()
        if isinstance(child, QWidget) and not child.isWindow() and child not in placed
    ]
    return placed + sorted(others, key=lambda child: (child.y(), child.x()))


def _placed(layout: QLayout) -> Iterator[QWidget]:
    for at in range(layout.count()):
        match layout.itemAt(at):
            case None:
                continue
            case item if (widget := item.widget()) is not None:
                yield widget
            case item if (inner := item.layout()) is not None:
                yield from _placed(inner)


def _scroll_to(widget: QWidget) -> None:
    parent = widget.parentWidget()
    while parent is not None:
        if isinstance(parent, QScrollArea):
            parent.ensureWidgetVisible(widget)
        parent = parent.parentWidget()


_T = TypeVar("_T")


class MainWindow(QMainWindow):
    """A rail at the edge; chats, the open one and its settings, or the library; the gauges below all of them."""

    def __init__(
        self, api: Api, appearance: Appearance, chats_file: Path, settings_file: Path, library: Api | None = None
    ) -> None:
        super().__init__()
        self.setWindowTitle("Slipstream")
        self.setMinimumSize(QSize(480, 360))
        self._api, self._appearance = api, appearance
        self._settings = QSettings(str(settings_file), QSettings.Format.IniFormat)
        self._gui = GuiThread(self)
        self._ids = Ids()
        self.archive = ChatArchive(chats_file, self._gui.post, self._on_storage_problem, self._ids.saw)
        self.tools = TextTools(Markdown(), CodeColours(appearance.palette, self), appearance.text_style)
        self.watch = ServerWatch(api, self)
        self.desk = ChatSessions(api, self.archive, self._ids, self)
        self.history = HistoryPanel()
        self.page = ChatPage(self.desk, self.watch, self.tools)
        self.tuning = TuningPanel()
        self.rail = NavigationRail()
        self.speed_bar = SpeedBar()
        self.link = LibraryLink(library or api, self)
        self.library: LibraryPage | None = None  # made when it is first wanted
        self._chat, self._pages = QWidget(), QStackedWidget()
        self.theme_button = IconButton("theme", "Light or dark, and the size of text")
        self.toast = Toast(self.page.stack)  # above what is being written, however tall that is
        self._wants_sidebar, self._is_narrow = True, False
        self._lay_out()
        self._connect_signals()
        self._add_shortcuts()
        self._restore()
        self._dress(appearance.palette)
        self.desk.list_soon()
        self.page.composer.setFocus()

    def _lay_out(self) -> None:
        row = QHBoxLayout(self._chat)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.history)
        row.addWidget(self.page, 1)
        row.addWidget(self.tuning)
        self._pages.addWidget(self._chat)
        beside = QHBoxLayout()
        beside.setSpacing(0)
        beside.addWidget(self.rail)
        beside.addWidget(self._pages, 1)
        middle = QWidget()
        whole = QVBoxLayout(middle)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(0)
        whole.addLayout(beside, 1)
        whole.addWidget(self.speed_bar)
        self.setCentralWidget(middle)
        self.tuning.hide()
        self.rail.foot.addWidget(self.theme_button, 0, Qt.AlignmentFlag.AlignHCenter)
        self.rail.show_page("chat")

    def _connect_signals(self) -> None:
        self.history.opened.connect(self.desk.open)
        self.history.new_wanted.connect(self._on_new_chat)
        self.history.renamed.connect(self.desk.rename)
        self.history.deleted.connect(self.desk.delete)
        self.history.searched.connect(self.desk.search)
        self.history.more_wanted.connect(self.desk.list_more)
        self.desk.listed.connect(self._on_listed)
        self.desk.running_changed.connect(self.history.model.set_running)
        self.desk.running_changed.connect(lambda running: self.watch.set_live(bool(running)))
        self.desk.current_changed.connect(self._on_current)
        self.desk.deleted.connect(self._on_deleted)
        self.page.sidebar_wanted.connect(self.toggle_sidebar)
        self.page.panel_wanted.connect(self.toggle_panel)
        self.page.context_wanted.connect(self._on_context_wanted)
        self.page.settings_shown.connect(self.tuning.show_settings)
        self.tuning.changed.connect(self.page.change_settings)
        self.tuning.close_wanted.connect(self.toggle_panel)
        self.page.composer.sent.connect(lambda text: self.tuning.take_typed())
        self.theme_button.clicked.connect(self._show_looks)
        self._appearance.changed.connect(self._dress)
        self.watch.looked.connect(self.speed_bar.show_state)
        self.rail.chosen.connect(self.show_page)
        self.link.downloads_changed.connect(
            lambda downloads: self.rail.set_busy("library", downloads_at_work(downloads) > 0)
        )

    def _add_shortcuts(self) -> None:
        keys: dict[str, Callable[[], object]] = {
            "Ctrl+N": self._on_new_chat,
            "Ctrl+F": self._focus_search,
            "Ctrl+K": self._focus_search,
            "Ctrl+B": self.toggle_sidebar,
            "Ctrl+,": self.toggle_panel,
            "Ctrl+Q": self.close,
            "Ctrl+Shift+C": lambda: self.show_page("chat"),
            "Ctrl+Shift+L": lambda: self.show_page("library"),
            "Ctrl++": lambda: self.step_text(1),
            "Ctrl+=": lambda: self.step_text(1),
            "Ctrl+-": lambda: self.step_text(-1),
            "Ctrl+0": lambda: self.resize_text(USUAL),
        }
        for key, act in keys.items():
            QShortcut(QKeySequence(key), self, act)
        stop = QShortcut(QKeySequence("Esc"), self.page, self.desk.stop)
        stop.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        # Only while there is something to stop: otherwise Escape belongs to whatever has the keyboard.
        stop.setEnabled(False)
        self.desk.current_running_changed.connect(stop.setEnabled)
        self.desk.current_changed.connect(lambda conversation: stop.setEnabled(conversation.is_running))

    def focusNextPrevChild(self, forward: bool) -> bool:
        """Let Tab go through the window as it is read: views of messages are made last first, and later."""
        return move_focus(self, forward)

    # The pages.

    def show_page(self, page: str) -> None:
        """Show the chat or the library."""
        if page == "library":
            library = self._made_library()
            self._pages.setCurrentWidget(library)
            library.focus_view()
        else:
            self._pages.setCurrentWidget(self._chat)
            self.page.composer.setFocus()
        self.rail.show_page(page)

    def prepare_library(self) -> None:
        """Make the library bit by bit, so that it is there when it is wanted."""
        self._made_library().prepare()

    def _made_library(self) -> LibraryPage:
        if self.library is None:
            self.library = LibraryPage(self.link, self._appearance.palette)
            self.library.set_used(self.watch.state.model)
            self.library.use_wanted.connect(self._on_use)
            self.watch.state_changed.connect(self._mark_used)
            self._pages.addWidget(self.library)
        return self.library

    def _mark_used(self, state: ServerState) -> None:
        if self.library is not None:
            self.library.set_used(state.model)

    def _on_use(self, name: str) -> None:
        self.show_page("chat")
        self.page.choose_model(name)

    def _on_context_wanted(self, model: str, n_ctx: int | None, then: Callable[[], object]) -> None:
        text = None if n_ctx is None else str(n_ctx)
        self.link.ask(
            ask.ChangeSettings(model, (SettingText("ctx", text),)),
            lambda sheet: self.watch.load(model, then),
            lambda trouble: self.page.server_banner.say(trouble.sentence, "danger"),
        )

    # The two sides.

    def toggle_sidebar(self) -> None:
        """Show or hide the chats."""
        is_shown = self.history.isHidden()
        self.history.setVisible(is_shown)
        if self._is_narrow:
            self.tuning.setVisible(self.tuning.isVisible() and not is_shown)
        else:
            self._wants_sidebar = is_shown

    def toggle_panel(self) -> None:
        """Show or hide the settings of the chat."""
        is_shown = self.tuning.isHidden()
        self.tuning.setVisible(is_shown)
        if is_shown:
            self.tuning.prompt.setFocus()
        else:
            self.page.composer.setFocus()
        if self._is_narrow and is_shown:
            self.history.hide()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """A narrow window shows the chat first; both sides stay one key away."""
        super().resizeEvent(event)
        self.tuning.fit(self.width())
        was_narrow, self._is_narrow = self._is_narrow, self.width() < NARROW
        if self._is_narrow and not was_narrow:
            self.history.hide()
            self.tuning.hide()
        elif was_narrow and not self._is_narrow:
            self.history.setVisible(self._wants_sidebar)

    # What happened.

    def _on_new_chat(self) -> None:
        self.show_page("chat")
        self.desk.new_chat()
        self.history.choose(None)
        self.page.composer.setFocus()

    def _focus_search(self) -> None:
        self.show_page("chat")
        self.history.show()
        self.history.search.setFocus()
        self.history.search.selectAll()

    def _on_listed(self, chats: object, words: str) -> None:
        self.history.show_chats(list(chats), words)  # type: ignore[call-overload]
        self.history.choose(self.desk.current.chat.id)

    def _on_current(self, conversation: object) -> None:
        self.history.choose(self.desk.current.chat.id)
        if self._is_narrow:
            self.history.hide()

    def _on_deleted(self, title: str) -> None:
        self.toast.say("Chat deleted", "Undo", self.desk.undo_delete)

    def _on_storage_problem(self, problem: str | None) -> None:
        if problem is None:
            self.page.storage_banner.hide()
            self.desk.list_soon()  # chats that could not be saved until now
        else:
            self.page.storage_banner.say(problem, "warning")

    # Looks.

    def _show_looks(self) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        themes = ((ThemeChoice.SYSTEM, "Like the system"), (ThemeChoice.LIGHT, "Light"), (ThemeChoice.DARK, "Dark"))
        _add_choices(menu, themes, self._appearance.choice, self.choose_theme)
        menu.addSeparator()
        sizes = menu.addMenu("Text size")
        _add_choices(sizes, tuple((size, f"{size}%") for size in PERCENTS), self._appearance.percent, self.resize_text)
        sizes.addSeparator()
        sizes.addAction("Ctrl and + or −; Ctrl+0 is 100%").setEnabled(False)
        corner = self.theme_button.mapToGlobal(self.theme_button.rect().topRight())
        menu.popup(QPoint(corner.x(), corner.y() + self.theme_button.height() - menu.sizeHint().height()))

    def choose_theme(self, choice: ThemeChoice) -> None:
        """Show this theme, now and at the next start."""
        self._appearance.choose(choice)
        self._settings.setValue("theme", choice.value)

    def step_text(self, by: int) -> None:
        """Make text ``by`` steps larger; a negative number makes it smaller."""
        self.resize_text(step(self._appearance.percent, by))

    def resize_text(self, percent: int) -> None:
        """Show text in this size, now and at the next start."""
        self._appearance.resize_text(percent)
        self._settings.setValue("textSize", percent)

    def _dress(self, palette: Palette) -> None:
        self.tools.set_style(self._appearance.text_style)
        for part in (self.rail, self.history, self.page, self.tuning, self.theme_button, self.speed_bar):
            part.set_palette(palette)
        self.tuning.fit(self.width())
        if self.library is not None:
            self.library.set_palette(palette)

    def _restore(self) -> None:
        self.resize(1180, 780)
        geometry = self._settings.value("geometry")
        if geometry is not None:
            self.restoreGeometry(geometry)
        theme = str(self._settings.value("theme", ThemeChoice.SYSTEM.value))
        if theme in set(ThemeChoice):
            self._appearance.choose(ThemeChoice(theme))
        self._appearance.resize_text(read_percent(self._settings.value("textSize")))
        self._wants_sidebar = str(self._settings.value("sidebar", "true")) == "true"
        self.history.setVisible(self._wants_sidebar and self.width() >= NARROW)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Save everything and quit."""
        self._settings.setValue("geometry", self.saveGeometry())
        self._settings.setValue("sidebar", self._wants_sidebar)
        self.tuning.take_typed()
        self.page.keep_draft()
        self.desk.stop_all()
        self.watch.stop()
        self.link.stop()
        self._api.close()
        self.archive.close()
        self.tools.colours.close()
        self._gui.close()
        super().closeEvent(event)


def _add_choices(menu: QMenu, choices: Sequence[tuple[_T, str]], chosen: _T, choose: Callable[[_T], object]) -> None:
    """Add entries of which one is chosen."""
    group = QActionGroup(menu)
    for choice, text in choices:
        action = QAction(text, menu)
        action.setCheckable(True)
        action.setChecked(choice == chosen)
        action.triggered.connect(lambda checked=False, choice=choice: choose(choice))
        group.addAction(action)
        menu.addAction(action)
