"""The window: it places the pages and connects them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QCloseEvent,
    QContextMenuEvent,
    QDragEnterEvent,
    QDropEvent,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QResizeEvent,
    QShortcut,
)
from PySide6.QtWidgets import (
    QApplication,
    QHBoxLayout,
    QMainWindow,
    QMessageBox,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from ui.chat.chat_page import ChatPage
from ui.chat.markdown.code_colours import CodeColours
from ui.chat.markdown.formulas import Formulas
from ui.chat.markdown.markdown import Markdown
from ui.chat.markdown.text_tools import TextTools
from ui.chat.storage.chat_archive import MEMORY_ONLY
from ui.client.api import Api
from ui.client.library_link import LibraryLink
from ui.client.server_watch import ServerWatch
from ui.commands.command import Command
from ui.commands.command_palette import CommandPalette
from ui.commands.shortcuts_dialog import ON_PAGES, ON_WINDOW, ShortcutsDialog
from ui.gauges.speed_bar import SpeedBar
from ui.language import tr
from ui.library.labels import downloads_at_work
from ui.server.endpoint import Endpoint, EndpointState
from ui.settings.looks_section import TEXT_WORDS, THEMES
from ui.settings.window_settings import WindowSettings
from ui.speed.history import History
from ui.theme.appearance import Appearance, ThemeChoice
from ui.theme.icons import icon
from ui.theme.layouts import fill
from ui.theme.text_size import USUAL, step
from ui.widgets.dialogs import Dialog
from ui.widgets.growing_edit import model_files
from ui.widgets.page_layout import ask_first, leave_keyboard
from ui.window.background import Background
from ui.window.chat_area import ChatArea
from ui.window.rail import PAGES, NavigationRail, named_pages
from ui.window.tab_order import move_focus

# Other pages are imported when they are made: the window is there before.
if TYPE_CHECKING:
    from ui.jobs.jobs_page import JobsPage
    from ui.library.library_page import LibraryPage
    from ui.server.server_page import ServerPage
    from ui.settings.settings_page import SettingsPage
    from ui.speed.speed_page import SpeedPage

    Page = ChatArea | LibraryPage | SpeedPage | ServerPage | JobsPage | SettingsPage
PREPARE_MS = 600
UNSAVED = tr("Chats cannot be saved right now. Quit all the same?")
_QUESTION = "question"  # on the page of jobs, written and not sent


class MainWindow(QMainWindow):
    """A rail at the edge, the page that it leads to, and the gauges below. Pages but chats are made late."""

    closed = Signal()  # for good
    restart_wanted = Signal(object)  # the arguments of the private server, list[str]

    def __init__(
        self, api: Api, appearance: Appearance, chats_file: Path, settings_file: Path, library: Api | None = None
    ) -> None:
        super().__init__()
        self.kept = WindowSettings(settings_file, self)
        self.kept.dress(appearance)  # first: parts that were made with another size of text would keep it
        appearance.undress()
        self.setWindowTitle("Slipstream")
        self.setMinimumSize(QSize(480, 360))
        self.setAcceptDrops(True)
        self._api, self._appearance, self._chats_file = api, appearance, chats_file
        self.tools = TextTools(Markdown(), CodeColours(self), appearance.text_style, Formulas(self))
        self.watch = ServerWatch(api, self)
        self.link = LibraryLink(library or api, self)
        self.chats = ChatArea(api, self.watch, self.link, self.kept, appearance, self.tools, chats_file)
        self.desk = self.chats.desk
        self.rail, self._pages, self.speed_bar = NavigationRail(), QStackedWidget(), SpeedBar()
        self._banners = (self.chats.storage_banner, self.chats.first.server_banner)  # above all pages
        self.endpoint = Endpoint(api, self.kept, self)
        self.speeds = History()
        self._shown_page, self._is_quitting, self._is_sure = "chat", False, False
        self._asked: QMessageBox | None = None  # whether to quit all the same
        self.background = Background(self, self.kept, icon("stream", appearance.palette.accent, size=64))
        self.palette_card = CommandPalette(self)
        self._offer_new_models: Callable[[], object] = lambda: None
        self._commands = {**self.chats.commands(self.palette_card), **self._made_commands()}
        self._lay_out()
        appearance.dress_again()
        self._connect_signals()
        for command in self.commands:
            for key in command.keys:
                QShortcut(QKeySequence(key), self, command.act)
        self._restore()
        self.speed_bar.dress()  # it has the fonts of its place now
        self.chats.restore()
        self._restore_page()
        self.page.composer.setFocus()

    def _lay_out(self) -> None:
        self._pages.addWidget(self.chats)
        column = fill(QVBoxLayout(), *self._banners, (self._pages, 1), spacing=0)
        beside = fill(QHBoxLayout(), self.rail, (column, 1), spacing=0)
        middle = QWidget()
        fill(QVBoxLayout(middle), (beside, 1), self.speed_bar, spacing=0, margins=0)
        self.setCentralWidget(middle)
        self.rail.show_page("chat")

    def _connect_signals(self) -> None:
        self.rail.chosen.connect(self.show_page)
        self.chats.wanted.connect(lambda: self.show_page("chat"))
        for banner in self._banners:
            banner.left.connect(lambda: self.show_page(self._shown_page))
        self.chats.library_wanted.connect(lambda: self.show_page("library"))
        self.chats.model_wanted.connect(self._show_model)
        self.chats.find_wanted.connect(self._find_models)
        self.chats.quit_wanted.connect(self.quit)
        self.watch.models_changed.connect(lambda models: self._offer_new_models())
        self.link.models_changed.connect(self.watch.look_at_models)
        self.watch.looked.connect(self.speed_bar.show_state)
        self.watch.looked.connect(lambda state, seen: self.speeds.add_state(time.monotonic(), state, seen))
        self.speed_bar.why_wanted.connect(lambda: self.show_page("speed"))
        self.endpoint.changed.connect(self._on_endpoint)
        self.desk.running_changed.connect(self.background.on_running)
        self.desk.answered.connect(self.background.on_answered)
        self.desk.called.connect(self.background.on_called)
        self.link.downloads_changed.connect(
            lambda downloads: self.background.on_downloads(downloads, is_first=not self.link.knows_downloads)
        )
        self.link.downloads_changed.connect(
            lambda downloads: self.rail.set_busy("library", downloads_at_work(downloads) > 0)
        )
        self.background.notices.opened.connect(self.bring_forward)
        self.background.chat_wanted.connect(self._on_told_chat)
        self.background.downloads_wanted.connect(self._on_told_download)
        self.background.menu.addAction(tr("Open Slipstream"), self.bring_forward)
        self.background.menu.addAction(tr("Quit"), self.quit)

    @property
    def page(self) -> ChatPage:
        """The chat that is used."""
        return self.chats.page

    # The pages.

    @cached_property
    def library(self) -> LibraryPage:
        """Models: those of this machine, and those of the Hub."""
        from ui.library.library_page import LibraryPage

        page = LibraryPage(self.link, self.watch)
        page.use_wanted.connect(self.chats.use)
        page.file_chosen.connect(self.chats.open_file)
        page.judged.connect(self.chats.show_figures)
        page.judged.connect(lambda rows: self.watch.look_at_models())
        self._pages.addWidget(page)
        return page

    @cached_property
    def speed(self) -> SpeedPage:
        """How fast replies are, and why."""
        from ui.speed.speed_page import SpeedPage

        page = SpeedPage(self._api, self.link, self.watch, self.speeds)
        page.library_wanted.connect(self._show_model)
        self._pages.addWidget(page)
        return page

    @cached_property
    def server(self) -> ServerPage:
        """How other programs use the server."""
        from ui.server.server_page import ServerPage

        page = ServerPage(self._api, self.endpoint, self.watch)
        self._pages.addWidget(page)
        return page

    @cached_property
    def jobs(self) -> JobsPage:
        """What is answered in the background."""
        from ui.jobs.jobs_page import JobsPage

        page = JobsPage(self._api, self.watch, self.tools)
        page.chat_wanted.connect(self.chats.open_answer)
        page.question.setPlainText(str(self.kept.value(_QUESTION) or ""))
        self._pages.addWidget(page)
        return page

    @cached_property
    def settings(self) -> SettingsPage:
        """What can be set for the whole app."""
        from ui.platform.desktop_entry import DesktopEntry
        from ui.settings.settings_page import SettingsPage

        page = SettingsPage(self.kept, self._appearance, self.link, self.watch, DesktopEntry(), self._chats_file)
        page.restart_wanted.connect(self.restart_wanted)
        self._pages.addWidget(page)
        return page

    def show_page(self, page: str) -> None:
        """Show one of the rail's pages."""
        pages: dict[str, Callable[[], Page]] = {
            "chat": lambda: self.chats,
            "library": lambda: self.library,
            "speed": lambda: self.speed,
            "server": lambda: self.server,
            "jobs": lambda: self.jobs,
            "settings": lambda: self.settings,
        }
        shown = pages[page]()
        if self._appearance.dress(shown) and shown is self.chats:
            self.chats.restyle()
        self._pages.setCurrentWidget(shown)
        is_by_mouse = self.rail.underMouse()
        shown.setFocus(Qt.FocusReason.MouseFocusReason if is_by_mouse else Qt.FocusReason.OtherFocusReason)
        self.rail.show_page(page)
        self._shown_page = page
        led_here: dict[str, object] = {"library": self.chats, "server": self.endpoint}
        if page in led_here:  # by what is said above the pages, which has no more to offer then
            self.chats.first.server_banner.take_back(led_here[page])

    def prepare_pages(self) -> None:
        """Make the pages with the most in them bit by bit, so that they are there when they are wanted."""
        self.library.prepare()
        self.settings.prepare()
        # In a moment of its own, when those have been made.
        QTimer.singleShot(PREPARE_MS, self, lambda: self.server.prepare() if self.isVisible() else None)

    def _show_model(self, name: str) -> None:
        self.show_page("library")
        self.library.models.show_model(name)

    def _find_models(self, words: str = "") -> None:
        self.show_page("library")
        self.library.search_hub(words)

    def _ask_in_depth(self) -> None:
        self.show_page("jobs")
        self.jobs.question.setFocus()

    def _show_setting(self, name: str) -> None:
        self.show_page("settings")
        self.settings.complete()
        self.settings.show_setting(name)

    def _focus_search(self) -> None:
        if self._shown_page == "settings":
            self.settings.setFocus()
        elif self._shown_page == "library":
            self.library.focus_search()
        else:
            self.show_page("chat")
            self.chats.focus_search()

    # Commands.

    @property
    def commands(self) -> list[Command]:
        """All that can be done by name anywhere in the window."""
        return [command for group in self._commands.values() for command in group]

    def _made_commands(self) -> dict[str, tuple[Command, ...]]:
        """Return what can be done by name with pages and the window, by what it is about."""
        return {
            ON_PAGES: (
                *(
                    Command(name, partial(self.show_page, page), (key,), tr("Page"), words=words)
                    for page, name, key, words in named_pages()
                ),
                Command(
                    tr("Find models"),
                    self._find_models,
                    kind=tr("Page"),
                    words=tr("new get download install Hugging Face LLM AI"),
                ),
                Command(
                    tr("Ask a hard question"),
                    self._ask_in_depth,
                    kind=tr("Page"),
                    words=tr("deep think reasoning research"),
                ),
                Command(tr("Search this page"), self._focus_search, ("Ctrl+F",), words=tr("find")),
            ),
            ON_WINDOW: (
                Command(tr("Command palette"), self.open_palette, ("Ctrl+K",)),
                Command(tr("Larger text"), partial(self.step_text, 1), ("Ctrl++", "Ctrl+="), words=TEXT_WORDS),
                Command(tr("Smaller text"), partial(self.step_text, -1), ("Ctrl+-",), words=TEXT_WORDS),
                Command(tr("Text of the usual size"), partial(self.resize_text, USUAL), ("Ctrl+0",), words=TEXT_WORDS),
                *(
                    Command(
                        tr("Theme: {name}", name=name),
                        partial(self.choose_theme, ThemeChoice(value)),
                        words=tr("mode night colour color"),
                    )
                    for value, name in THEMES
                ),
                Command(tr("Keyboard shortcuts"), self.show_shortcuts, ("F1", "Ctrl+/"), words=tr("hotkeys keys help")),
                Command(tr("Quit"), self.quit, ("Ctrl+Q",), words=tr("exit close end")),
            ),
        }

    def open_palette(self) -> None:
        """Let commands, models, settings and chats be found by a few letters."""
        offered = set[str]()

        def models() -> Iterator[Command]:
            for name in [model.name for model in self.watch.models if model.name not in offered]:
                offered.add(name)
                yield Command(name, partial(self.chats.use, name), (), tr("Model"))

        def settings() -> Iterator[Command]:
            for name, words in self.settings.offers():
                yield Command(name, partial(self._show_setting, name), (), tr("Setting"), words=words)

        others = (command for command in self.commands if command.act != self.open_palette)
        add = self.palette_card.open([*others, *models()])
        self._offer_new_models = lambda: add(models())  # in its first seconds the window knows none
        self.chats.ask_for_commands(lambda chats: add(chain(settings(), chats)))

    def show_shortcuts(self) -> None:
        """Show the list of keys."""
        ShortcutsDialog(self._commands, self).open()

    def focusNextPrevChild(self, forward: bool) -> bool:
        """Let Tab go through the window as it is read: views of messages are made last first, and later."""
        now = self.focusWidget()
        is_gone = now is not None and not (now.isVisible() and now.isEnabled())
        return (is_gone and now is not None and leave_keyboard(now)) or move_focus(self, forward, by_key=not is_gone)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Give the keyboard of a gauge to the page, where a click is for nothing that takes it."""
        focused = self.focusWidget()
        if focused is not None and self.speed_bar.isAncestorOf(focused):
            self.show_page(self._shown_page)
        super().mousePressEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Let Shift+F10 do what the menu key does, which many keyboards lack."""
        focused, is_shifted = self.focusWidget(), event.modifiers() == Qt.KeyboardModifier.ShiftModifier
        if focused is None or event.key() != Qt.Key.Key_F10 or not is_shifted:
            super().keyPressEvent(event)
        else:
            at = QRectF(focused.inputMethodQuery(Qt.InputMethodQuery.ImCursorRectangle)).center().toPoint()
            by_keyboard = QContextMenuEvent.Reason.Keyboard
            QApplication.sendEvent(focused, QContextMenuEvent(by_keyboard, at, focused.mapToGlobal(at)))

    # What comes from outside.

    def bring_forward(self) -> None:
        """Show the window in front of others."""
        self.setWindowState(self.windowState() & ~Qt.WindowState.WindowMinimized)
        self.show()
        self.raise_()
        self.activateWindow()

    def _on_told_chat(self, chat_id: int) -> None:
        self.bring_forward()
        self.chats.open_chat(chat_id)

    def _on_told_download(self) -> None:
        self.bring_forward()
        self.show_page("library")
        self.library.show_downloads()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Take model files anywhere."""
        if model_files(event.mimeData()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Use the model that was dropped; of several the last one is loaded."""
        for file in model_files(event.mimeData()):
            self.chats.open_file(file)
        event.acceptProposedAction()

    def _on_endpoint(self, state: EndpointState) -> None:
        """Say that other programs are shut out against the user's wish: at the start nobody looks at its page."""
        banner = self.chats.first.server_banner
        if state.problem and self._shown_page != "server":
            words = tr("Other programs cannot use this server. {problem}", problem=state.problem)
            banner.say(words, "warning", (tr("Show the server"), lambda: self.show_page("server")), by=self.endpoint)
        else:
            banner.take_back(self.endpoint)

    def use_recommended_engine(self) -> None:
        """Restart the private server as it is recommended: it does not start as it was set up."""
        self.kept.forget_engine()
        self.kept.engine_in_use = []
        self.restart_wanted.emit([])

    # Looks.

    def choose_theme(self, choice: ThemeChoice) -> None:
        """Show this theme, now and at the next start."""
        self.kept.change_looks(self._appearance, "theme", choice.value)

    def step_text(self, by: int) -> None:
        """Make text ``by`` steps larger; a negative number makes it smaller."""
        self.resize_text(step(self._appearance.percent, by))

    def resize_text(self, percent: int) -> None:
        """Show text in this size, now and at the next start."""
        self.kept.change_looks(self._appearance, "textSize", percent)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Show both sides of a chat where there is room."""
        super().resizeEvent(event)
        self.chats.fit(self.width())

    # From one start to the next.

    def _restore(self) -> None:
        self.resize(1180, 780)
        geometry = self.kept.value("geometry")
        if isinstance(geometry, QByteArray):
            self.restoreGeometry(geometry)

    def _restore_page(self) -> None:
        page = str(self.kept.value("page"))
        if page in PAGES and page != self._shown_page:
            # The window is there first: other pages take longer to make.
            QTimer.singleShot(0, self, lambda: self.show_page(page))

    def quit(self) -> None:
        """Close the window for good, also where closing it leaves the app running."""
        self._is_quitting = True
        self.close()

    def quit_unasked(self) -> None:
        """Close the window for good, also where chats cannot be saved: nobody may be there to answer."""
        self._is_sure = True
        self.quit()

    def _on_answer(self) -> None:
        self._asked = None

    def closeEvent(self, event: QCloseEvent) -> None:
        """Save everything and quit; where it is wanted, leave the app running without a window."""
        if self.background.keeps_running and not self._is_quitting:
            event.ignore()
            self.chats.keep_drafts()
            self.hide()
            self.background.stay()
            return
        archive = self.chats.archive
        # Whoever insists while it is asked need not answer.
        if archive.has_unsaved and not self._is_sure and self._asked is None:
            event.ignore()
            self._is_quitting = False
            self.bring_forward()
            lost = MEMORY_ONLY if archive.is_in_memory else tr("What could not be saved is lost.")
            self._asked = ask_first(self, UNSAVED, lost, tr("Quit"), self.quit_unasked)
            self._asked.finished.connect(self._on_answer)
            return
        for dialog in self.findChildren(Dialog):
            dialog.reject()  # what is written there is kept as if that was closed first
        self.kept.keep("page", self._shown_page)
        if "jobs" in vars(self):
            self.kept.keep(_QUESTION, self.jobs.question.toPlainText())
        self.kept.keep("geometry", self.saveGeometry())
        self.chats.leave()
        self.watch.stop()
        self.link.stop()
        self._api.close()
        self.chats.close_archive()
        self.tools.colours.close()
        self.tools.formulas.close()
        self.background.close()
        super().closeEvent(event)
        self.closed.emit()
