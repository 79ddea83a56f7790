"""The window: it places the parts and connects them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from PySide6.QtCore import QByteArray, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QCloseEvent,
    QDragEnterEvent,
    QDropEvent,
    QKeySequence,
    QResizeEvent,
    QShortcut,
)
from PySide6.QtWidgets import (
    QHBoxLayout,
    QMainWindow,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from models.formatting.safe_text import one_line
from models.library import requests as ask
from models.library.values import ModelRow, SettingText, Trouble
from ui.chat.chat_page import ChatPage
from ui.chat.chat_sessions import ChatSessions, OpenChat
from ui.chat.exchange.exchange import Exchange
from ui.chat.history.history_panel import HistoryPanel
from ui.chat.markdown.code_colours import CodeColours
from ui.chat.markdown.formulas import Formulas
from ui.chat.markdown.markdown import Markdown
from ui.chat.markdown.text_tools import TextTools
from ui.chat.prompts.prompt_library import PromptLibrary
from ui.chat.prompts.prompt_menu import PromptMenu
from ui.chat.race import RaceDialog
from ui.chat.storage.chat_archive import ChatArchive
from ui.chat.storage.ids import Ids
from ui.chat.storage.store import ChatStore
from ui.chat.tools.tool_box import ToolBox
from ui.chat.tools.tools_dialog import ToolsDialog
from ui.chat.tuning_panel import TuningPanel
from ui.client.api import Api, ServerState
from ui.client.chat_records import ChatSettings, ChatSummary, Message
from ui.client.library_link import LibraryLink
from ui.client.server_watch import ServerWatch
from ui.commands.command import Command
from ui.commands.command_palette import CommandPalette
from ui.commands.shortcuts_dialog import IN_CHAT, ON_CHATS, ON_PAGES, ON_WINDOW, ShortcutsDialog
from ui.gauges.speed_bar import SpeedBar
from ui.jobs.jobs_page import JobsPage
from ui.language import tr
from ui.library.find_view import downloads_at_work
from ui.library.labels import fit_and_speed
from ui.library.library_page import DOWNLOADS, FIND, LibraryPage
from ui.library.settings.settings_dialog import SettingsDialog
from ui.platform.desktop_entry import DesktopEntry
from ui.platform.gui_thread import GuiThread
from ui.server.endpoint import Endpoint, EndpointState
from ui.server.server_page import ServerPage
from ui.settings.settings_page import THEMES, SettingsPage
from ui.settings.window_settings import WindowSettings
from ui.speed.history import History
from ui.speed.speed_page import SpeedPage
from ui.theme.appearance import Appearance, ThemeChoice
from ui.theme.icons import icon
from ui.theme.layouts import fill
from ui.theme.text_size import USUAL, step
from ui.theme.text_style import TextStyle
from ui.theme.tokens import SIDEBAR
from ui.widgets.growing_edit import model_files
from ui.widgets.page_layout import announce, leave_keyboard
from ui.widgets.toast import Toast
from ui.window.background import Background
from ui.window.chat_panes import ChatPanes
from ui.window.newcomer import Newcomer
from ui.window.rail import PAGES, NavigationRail, named_pages
from ui.window.sides import Sides
from ui.window.storage_notice import StorageNotice
from ui.window.tab_order import move_focus

PREPARE_MS = 600
_T = TypeVar("_T")


class MainWindow(QMainWindow):
    """A rail at the edge; chats, the open one and its settings, or another page; the gauges below all of them."""

    closed = Signal()  # for good
    restart_wanted = Signal(object)  # the arguments of the private server, list[str]

    def __init__(
        self, api: Api, appearance: Appearance, chats_file: Path, settings_file: Path, library: Api | None = None
    ) -> None:
        super().__init__()
        appearance.undress()
        self.setWindowTitle("Slipstream")
        self.setMinimumSize(QSize(480, 360))
        self.setAcceptDrops(True)
        self._api, self._appearance = api, appearance
        self.kept = WindowSettings(settings_file, self)
        self._chats_file = chats_file
        self._gui = GuiThread(self)
        self._ids = Ids()
        self.archive = ChatArchive(chats_file, self._gui.post, self._on_storage_problem, self._ids.saw)
        self.tools = TextTools(Markdown(), CodeColours(self), appearance.text_style, Formulas(self))
        self.watch = ServerWatch(api, self)
        self._figures: dict[str, str] = {}  # fit and speed of the models of this machine, by name
        self.desk = ChatSessions(api, self.archive, self._ids, self)
        self.exchange = Exchange(self.archive, self._ids, self)
        self.history = HistoryPanel()
        self.tuning = TuningPanel()
        self.chats = ChatPanes(self.desk, self._made_chat_page)
        self._first = self._tuned = self.chats.page  # the one that is always there; the one whose settings are shown
        self._storage = StorageNotice(self.archive, self._first.storage_banner, self)
        self.prompts = PromptLibrary(self.archive, self._ids, self)
        self.tools_box = ToolBox(settings_file.with_name("tools.json"), self)
        self.desk.use_tools(self.tools_box)
        self.prompt_menu = PromptMenu(self.prompts, lambda: [model.name for model in self.watch.models], self)
        self.rail = NavigationRail()
        self.speed_bar = SpeedBar()
        self.link = LibraryLink(library or api, self)
        self.endpoint = Endpoint(api, self.kept, self)
        self.newcomer = Newcomer(self.link, self.watch, self._first.welcome, self.kept, self)
        self.library: LibraryPage | None = None  # made when it is first wanted
        self.speed: SpeedPage | None = None  # like the library
        self.speeds = History()
        self.server: ServerPage | None = None
        self.jobs: JobsPage | None = None
        self.settings: SettingsPage | None = None
        self._chat, self._pages = QWidget(), QStackedWidget()
        self._sides = Sides(self.history, self.chats, self.tuning, appearance)
        self.toast = Toast(self._first.stack)  # above what is being written, however tall that is
        self._undo: list[Callable[[], object]] = []  # each deleting and archiving since the start, the last one last
        self._shown_page, self._is_quitting = "chat", False
        self.background = Background(self, self.kept, icon("stream", appearance.palette.accent, size=64))
        self._tints_drafts = self.kept.is_on("tintDrafts", usually=False)
        api.asks_for_drafted = self._tints_drafts
        self.palette_card = CommandPalette(self)
        self._offer_new_models: Callable[[], object] = lambda: None
        self._commands = self._made_commands()
        self._lay_out()
        appearance.dress_again()
        self._connect_signals()
        self._add_shortcuts()
        self._restore()
        for part in (self.speed_bar, self.history):  # they have the fonts of their place now
            part.dress()
        self._sides.fit(self.width())
        self._restore_place()
        self.desk.list_soon()
        self.tools_box.start()
        self.page.composer.setFocus()

    def _lay_out(self) -> None:
        fill(QHBoxLayout(self._chat), self._sides, margins=0)
        self._pages.addWidget(self._chat)
        beside = fill(QHBoxLayout(), self.rail, (self._pages, 1), spacing=0)
        middle = QWidget()
        fill(QVBoxLayout(middle), (beside, 1), self.speed_bar, spacing=0, margins=0)
        self.setCentralWidget(middle)
        self.rail.show_page("chat")

    def _connect_signals(self) -> None:
        self.history.opened.connect(self.desk.open)
        self.history.beside_wanted.connect(self.open_beside)
        self.history.new_wanted.connect(self._on_new_chat)
        self.history.renamed.connect(self.desk.rename)
        self.history.deleted.connect(self.desk.delete)
        self.history.searched.connect(self.desk.search)
        self.history.searched.connect(self._on_searched)
        self.history.pinned.connect(self.desk.pin)
        self.history.put_away.connect(self.desk.archive)
        self.history.moved.connect(self.desk.move)
        self.history.folder_renamed.connect(self.desk.rename_folder)
        self.history.archive_wanted.connect(self.desk.show_archive)
        self.history.import_wanted.connect(self.exchange.take_in)
        self.history.export_wanted.connect(self.exchange.write)
        self.history.exchange_left.connect(self.exchange.cancel)
        self.exchange.progressed.connect(lambda words: self.history.show_exchange(words, is_over=False))
        self.exchange.ended.connect(lambda words, is_other: self.history.show_exchange(words, True, is_other))
        self.exchange.took_in.connect(self.desk.list_soon)
        self.desk.put_away.connect(
            lambda chat: self._offer_undo(tr("Chat archived"), partial(self.desk.archive, chat, False))
        )
        self.desk.deleted.connect(lambda chat: self._offer_undo(tr("Chat deleted"), partial(self.desk.restore, chat)))
        self.history.more_wanted.connect(self.desk.list_more)
        self.desk.listed.connect(self._on_listed)
        self.desk.running_changed.connect(self.history.model.set_running)
        self.desk.running_changed.connect(lambda running: self.watch.set_live(bool(running)))
        self.desk.current_changed.connect(self._on_current)
        self._storage.export_wanted.connect(partial(self._with_chats, self.history.export_all))
        self._storage.chats_changed.connect(self.desk.list_soon)
        self._storage.brought_back.connect(self.toast.tell)
        self.chats.used_changed.connect(self._on_used_changed)
        self.tuning.changed.connect(partial(self._tune, ChatPage.change_settings))
        self.tuning.model_chosen.connect(partial(self._tune, ChatPage.choose_model))
        self.tuning.speed_chosen.connect(partial(self._tune, ChatPage.choose_speed))
        self.tuning.tools.clicked.connect(self.show_tools)
        self.tuning.prompts.clicked.connect(self._offer_instructions)
        for part in (self.tuning, self.tools_box):
            self.watch.models_changed.connect(part.set_models)
            self.watch.state_changed.connect(lambda state, part=part: part.set_loaded(state.model))
        self.watch.models_changed.connect(lambda models: self._offer_new_models())
        self.desk.instructions_for = lambda model: self.prompts.instructions_for(model or self.watch.state.model)
        self.prompts.changed.connect(self._on_prompts)
        self.tuning.close_wanted.connect(self.toggle_panel)
        self.kept.changed.connect(self._on_kept)
        self._appearance.changed.connect(lambda palette: self._on_looks())
        self.watch.looked.connect(self.speed_bar.show_state)
        self.watch.looked.connect(lambda state: self.speeds.add(time.monotonic(), state.snapshot))
        self.speed_bar.why_wanted.connect(lambda: self.show_page("speed"))
        self.rail.chosen.connect(self.show_page)
        self.endpoint.changed.connect(self._on_endpoint)
        self.desk.running_changed.connect(self.background.on_running)
        self.desk.answered.connect(self.background.on_answered)
        self.desk.called.connect(self.background.on_called)
        self.link.downloads_changed.connect(
            lambda downloads: self.background.on_downloads(downloads, is_first=not self.link.knows_downloads)
        )
        self.background.notices.opened.connect(self.bring_forward)
        self.background.chat_wanted.connect(self._on_told_chat)
        self.background.downloads_wanted.connect(self._on_told_download)
        self.background.menu.addAction(tr("Open Slipstream"), self.bring_forward)
        self.background.menu.addAction(tr("Quit"), self.quit)
        self.newcomer.use_wanted.connect(self._on_arrived)
        self.newcomer.file_chosen.connect(self.open_file)
        self.newcomer.library_wanted.connect(lambda: self.show_page("library"))
        self.link.downloads_changed.connect(
            lambda downloads: self.rail.set_busy("library", downloads_at_work(downloads) > 0)
        )

    def _made_chat_page(self, pane: OpenChat) -> ChatPage:
        page = ChatPage(pane, self.watch, self.tools, self._api)
        page.picker.figure_of = self._figure_of
        page.transcript.race_wanted.connect(partial(self._on_race_wanted, page))
        page.transcript.tint_wanted.connect(self.tint_drafts)
        page.sidebar_wanted.connect(self.toggle_sidebar)
        page.panel_wanted.connect(lambda: self._show_settings_of(page))
        page.context_wanted.connect(self._on_context_wanted)
        page.find_wanted.connect(self._find_models)
        page.model_dropped.connect(self.open_file)
        page.model_settings_wanted.connect(self._change_model)
        page.settings_shown.connect(lambda settings: self._on_settings_shown(page, settings))
        page.composer.prompts.clicked.connect(lambda: self._offer_prompts(page))
        page.composer.sent.connect(lambda text: self.tuning.take_typed())
        stop = QShortcut(QKeySequence("Esc"), page, pane.stop)
        stop.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        # Only while there is something to stop: otherwise Escape belongs to whatever has the keyboard.
        stop.setEnabled(False)
        pane.running_changed.connect(stop.setEnabled)
        pane.current_changed.connect(lambda session: stop.setEnabled(session.is_running))
        if pane is not self.desk.panes[0]:
            page.picker.set_models(self.watch.models)
        return page

    @property
    def page(self) -> ChatPage:
        """The chat that is used."""
        return self.chats.page

    def _choose_model(self) -> None:
        self.show_page("chat")
        self.page.picker.open()

    def _tune(self, change: Callable[[ChatPage, _T], object], value: _T) -> None:
        change(self._tuned, value)

    def _on_prompts(self) -> None:
        for page in self.chats.pages:
            page.begin_instructions()

    def _with_page(self, act: Callable[[ChatPage], object]) -> Callable[[], object]:
        """Return what does this with the chat that is used then, in sight: it may take the keyboard."""

        def act_in_sight() -> None:
            if self._shown_page != "chat":
                self.show_page("chat")
            act(self.page)

        return act_in_sight

    def _on_used_changed(self) -> None:
        self.tuning.take_typed()
        self._tuned = self.page
        self._tuned.show_settings()
        self.history.choose(self.desk.current.chat.id)

    def _on_settings_shown(self, page: ChatPage, settings: ChatSettings) -> None:
        if page is self._tuned:
            self.tuning.show_settings(settings)

    def _show_settings_of(self, page: ChatPage) -> None:
        is_other = page is not self.page
        self.desk.activate(page.pane)
        if not is_other or self.tuning.isHidden():
            self.toggle_panel()

    def _made_commands(self) -> dict[str, tuple[Command, ...]]:
        """Return what can be done by name anywhere in the window, with its keys, by what it is about."""
        return {
            IN_CHAT: (
                Command(tr("New chat"), self._on_new_chat, ("Ctrl+N",)),
                Command(tr("Choose a model"), self._choose_model, ("Ctrl+L",)),
                Command(tr("Attach files"), self._with_page(lambda page: page.composer.choose_files()), ("Ctrl+U",)),
                Command(tr("Take a prompt"), self._offer_prompts, ("Ctrl+P",)),
                Command(tr("Answer again"), self._with_page(lambda page: page.transcript.answer_again()), ("Ctrl+R",)),
                Command(
                    tr("Continue a reply that was cut"),
                    self._with_page(lambda page: page.transcript.continue_last()),
                    ("Ctrl+Shift+R",),
                ),
                Command(
                    tr("Edit what was said last"),
                    self._with_page(lambda page: page.transcript.edit_last()),
                    ("Ctrl+E",),
                ),
                Command(
                    tr("Earlier version of a message"),
                    self._with_page(lambda page: page.transcript.step_version(-1)),
                    ("Alt+Left",),
                ),
                Command(
                    tr("Later version of a message"),
                    self._with_page(lambda page: page.transcript.step_version(1)),
                    ("Alt+Right",),
                ),
                Command(tr("Tint drafted words"), lambda: self.tint_drafts(not self._tints_drafts), ("Ctrl+Shift+D",)),
                Command(tr("Race two ways to answer"), self.open_race),
                Command(tr("Prompts"), self.prompt_menu.manage),
                Command(tr("MCP servers"), self.show_tools),
            ),
            ON_CHATS: (
                Command(tr("Show or hide the chats"), self.toggle_sidebar, ("Ctrl+B",)),
                Command(tr("Show or hide the settings of the chat"), self.toggle_panel, ("Ctrl+.",)),
                Command(tr("New chat beside this one"), partial(self.open_beside, None), ("Ctrl+Shift+N",)),
                Command(tr("Open a chat beside this one"), self.open_beside_palette),
                Command(tr("Go to the other chat"), self._switch_chats, ("F6",)),
                Command(tr("Close the chat beside"), self.chats.close_beside, ("Ctrl+Shift+W",)),
                Command(tr("Undo deleting or archiving a chat"), self.undo, ("Ctrl+Z",)),
                Command(tr("Import chats…"), partial(self._with_chats, self.history.import_chats)),
                Command(tr("Export all chats…"), partial(self._with_chats, self.history.export_all)),
            ),
            ON_PAGES: (
                *(
                    Command(name, partial(self.show_page, page), (key,), tr("Page"))
                    for page, name, key in named_pages()
                ),
                Command(tr("Find models"), self._find_models, kind=tr("Page")),
                Command(tr("Search this page"), self._focus_search, ("Ctrl+F",)),
            ),
            ON_WINDOW: (
                Command(tr("Command palette"), self.open_palette, ("Ctrl+K",)),
                Command(tr("Larger text"), partial(self.step_text, 1), ("Ctrl++", "Ctrl+=")),
                Command(tr("Smaller text"), partial(self.step_text, -1), ("Ctrl+-",)),
                Command(tr("Text of the usual size"), partial(self.resize_text, USUAL), ("Ctrl+0",)),
                *(
                    Command(tr("Theme: {name}", name=name), partial(self.choose_theme, ThemeChoice(value)))
                    for value, name in THEMES
                ),
                Command(tr("Keyboard shortcuts"), self.show_shortcuts, ("F1", "Ctrl+/")),
                Command(tr("Quit"), self.quit, ("Ctrl+Q",)),
            ),
        }

    def bring_forward(self) -> None:
        """Show the window in front of others."""
        self.setWindowState(self.windowState() & ~Qt.WindowState.WindowMinimized)
        self.show()
        self.raise_()
        self.activateWindow()

    def _on_told_chat(self, chat_id: int) -> None:
        self.bring_forward()
        self._open_chat(chat_id)

    def _on_told_download(self) -> None:
        self.bring_forward()
        self._show_library(DOWNLOADS)

    @property
    def commands(self) -> list[Command]:
        """All that can be done by name anywhere in the window."""
        return [command for group in self._commands.values() for command in group]

    def _add_shortcuts(self) -> None:
        for command in self.commands:
            for key in command.keys:
                QShortcut(QKeySequence(key), self, command.act)

    def focusNextPrevChild(self, forward: bool) -> bool:
        """Let Tab go through the window as it is read: views of messages are made last first, and later."""
        now = self.focusWidget()
        is_gone = now is not None and not (now.isVisible() and now.isEnabled())
        return (is_gone and now is not None and leave_keyboard(now)) or move_focus(self, forward)

    # Commands.

    def open_palette(self) -> None:
        """Let commands, models, settings and chats be found by a few letters."""
        offered = set[str]()

        def models() -> Iterator[Command]:
            for name in [model.name for model in self.watch.models if model.name not in offered]:
                offered.add(name)
                yield Command(name, partial(self._on_use, name), (), tr("Model"))

        others = (command for command in self.commands if command.act != self.open_palette)
        add = self.palette_card.open([*others, *models()])
        self._offer_new_models = lambda: add(models())  # in its first seconds the window knows none
        kind = tr("Chat")

        def made(chat: ChatSummary) -> Command:
            beside = None if self.desk.is_open(chat.id) else partial(self.open_beside, chat.id)
            return Command(chat.title, partial(self._open_chat, chat.id), (), kind, beside)

        def rest(chats: Sequence[ChatSummary]) -> Iterator[Command]:
            for name in self._begun_settings().names():
                yield Command(name, partial(self._show_setting, name), (), tr("Setting"))
            yield from map(made, chats)

        self.archive.ask(ChatStore.chats, lambda chats: add(rest(chats)), list[ChatSummary]())

    def open_beside_palette(self) -> None:
        """Let a chat be found that is opened beside the one in use."""
        add = self.palette_card.open([], tr("Search the chat to open beside this one"))

        def offer(chats: Sequence[ChatSummary]) -> None:
            others = (chat for chat in chats if not self.desk.is_open(chat.id))
            add(Command(chat.title, partial(self.open_beside, chat.id), (), tr("Chat")) for chat in others)

        self.archive.ask(ChatStore.chats, offer, list[ChatSummary]())

    def _open_chat(self, chat_id: int) -> None:
        self.show_page("chat")
        self.desk.open(chat_id)

    def open_beside(self, chat_id: int | None) -> None:
        """Open a chat in a pane of its own, or an empty one."""
        self.show_page("chat")
        self.chats.open_beside(chat_id)

    def _switch_chats(self) -> None:
        self.show_page("chat")
        self.chats.switch()

    def _show_setting(self, name: str) -> None:
        self.show_page("settings")
        settings = self._begun_settings()
        settings.complete()
        settings.show_setting(name)

    def _find_models(self, words: str = "") -> None:
        self._show_library(FIND)
        if words:
            self._made_library().finder.field.setText(words)

    def _show_library(self, tab: str) -> None:
        self.show_page("library")
        self._made_library().show_tab(tab)

    def show_shortcuts(self) -> None:
        """Show the list of keys."""
        ShortcutsDialog(self._commands, self).open()

    # The pages.

    def show_page(self, page: str) -> None:
        """Show one of the rail's pages."""
        if page == "settings":
            settings = self._begun_settings()
            settings.set_devices(self.watch.state.devices)
            self._turn_to(settings)
            settings.prepare()
            settings.look()
            settings.setFocus()
        elif page != "chat":
            made: dict[str, Callable[[], LibraryPage | SpeedPage | ServerPage | JobsPage]] = {
                "library": self._made_library,
                "speed": self._made_speed,
                "server": self._made_server,
                "jobs": self._made_jobs,
            }
            shown = made[page]()
            self._turn_to(shown)
            shown.focus_view()
        else:
            self._turn_to(self._chat)
            self.page.composer.setFocus()
        self.rail.show_page(page)
        self._shown_page = page

    def _turn_to(self, page: QWidget) -> None:
        if self._appearance.dress(page) and page is self._chat:
            self._restyle()
        self._pages.setCurrentWidget(page)

    def prepare_pages(self) -> None:
        """Make the pages with the most in them bit by bit, so that they are there when they are wanted."""
        self._made_library().prepare()
        self._begun_settings().prepare()
        # In a moment of its own, when those have been made.
        QTimer.singleShot(PREPARE_MS, self, lambda: self._made_server().prepare() if self.isVisible() else None)

    def _made_library(self) -> LibraryPage:
        if self.library is None:
            self.library = LibraryPage(self.link)
            self.library.set_used(self.watch.state.model)
            self.library.use_wanted.connect(self._on_use)
            self.library.file_chosen.connect(self.open_file)
            self.library.judged.connect(self._on_judged)
            self.watch.state_changed.connect(self._mark_used)
            self._pages.addWidget(self.library)
        return self.library

    def _begun_settings(self) -> SettingsPage:
        if self.settings is None:
            self.settings = SettingsPage(self.kept, self._appearance, self.link, DesktopEntry(), self._chats_file)
            self.settings.restart_wanted.connect(self.restart_wanted)
            self._pages.addWidget(self.settings)
        return self.settings

    def _made_speed(self) -> SpeedPage:
        if self.speed is None:
            self.speed = SpeedPage(self._api, self.link, self.watch, self.speeds)
            self.speed.library_wanted.connect(self._show_model)
            self._pages.addWidget(self.speed)
        return self.speed

    def _made_jobs(self) -> JobsPage:
        if self.jobs is None:
            self.jobs = JobsPage(self._api, self.watch, self.tools)
            self.jobs.chat_wanted.connect(self._on_answer_wanted)
            self._pages.addWidget(self.jobs)
        return self.jobs

    def _on_answer_wanted(self, question: str, answer: dict[str, Any], job: str) -> None:
        self.show_page("chat")
        self.desk.open_answer(question, answer, f"slipstream job:{job}")

    def _change_model(self, name: str) -> None:
        dialog = SettingsDialog(self.link, name, self)
        dialog.saved.connect(self.toast.tell)
        dialog.open()

    def _show_model(self, name: str) -> None:
        self.show_page("library")
        self._made_library().models.show_model(name)

    def _made_server(self) -> ServerPage:
        if self.server is None:
            self.server = ServerPage(self._api, self.endpoint, self.watch)
            self._pages.addWidget(self.server)
        return self.server

    def _on_judged(self, rows: tuple[ModelRow, ...]) -> None:
        figures = {row.name: words for row in rows if (words := fit_and_speed(row))}
        if figures != self._figures:
            self._figures = figures
            for page in self.chats.pages:
                page.picker.refill_menu()

    def _figure_of(self, model: str) -> str:
        return self._figures.get(model, "")

    def _mark_used(self, state: ServerState) -> None:
        if self.library is not None:
            self.library.set_used(state.model)

    def _on_use(self, name: str) -> None:
        self.show_page("chat")
        self.page.choose_model(name)

    def open_file(self, file: str) -> None:
        """Use a model file where it is, and load it."""
        self.show_page("chat")
        self.link.ask(ask.ImportFile(file), self._on_use, self._on_not_opened)

    def _on_arrived(self, file: str) -> None:
        """Let the model that a newcomer has waited for answer. It may come long after: who is elsewhere stays there."""

        def use(name: str) -> None:
            self.page.choose_model(name)
            self.toast.tell(tr("{name} answers from now on", name=one_line(name)))

        self.link.ask(ask.ImportFile(file), use, self._on_not_opened)

    def _on_not_opened(self, trouble: Trouble) -> None:
        show = (tr("Show the models"), lambda: self.show_page("library"))
        self._first.server_banner.say(trouble.sentence, "danger", show)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Take model files anywhere."""
        if model_files(event.mimeData()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Use the model that was dropped; of several the last one is loaded."""
        for file in model_files(event.mimeData()):
            self.open_file(file)
        event.acceptProposedAction()

    def _on_context_wanted(self, model: str, n_ctx: int | None, then: Callable[[], object]) -> None:
        text = None if n_ctx is None else str(n_ctx)
        self.link.ask(
            ask.ChangeSettings(model, (SettingText("ctx", text),)),
            lambda sheet: self.watch.load(model, then),
            lambda trouble: self._first.server_banner.say(
                trouble.sentence, "danger", (tr("Show the model"), lambda: self._show_model(model))
            ),
        )

    def _on_endpoint(self, state: EndpointState) -> None:
        """Say that other programs are shut out against the user's wish: at the start nobody looks at its page."""
        if state.problem and self._shown_page != "server":
            words = tr("Other programs cannot use this server. {problem}", problem=state.problem)
            self._first.server_banner.say(words, "warning", (tr("Show the server"), self._show_endpoint))

    def _show_endpoint(self) -> None:
        self._first.server_banner.hide()
        self.show_page("server")

    def use_recommended_engine(self) -> None:
        """Restart the private server as it is recommended: it does not start as it was set up."""
        self.kept.forget_engine()
        self.kept.engine_in_use = []
        self.restart_wanted.emit([])

    # The two sides.

    def _with_chats(self, act: Callable[[], object]) -> None:
        """Do this with the list of chats in sight, which says what becomes of it."""
        self.show_page("chat")
        if self.history.isHidden():
            self.toggle_sidebar()
        act()

    def toggle_sidebar(self) -> None:
        """Show or hide the chats."""
        if not self._brings(self.history):
            self._sides.toggle_history()

    def toggle_panel(self) -> None:
        """Show or hide the settings of the chat."""
        if self._brings(self.tuning) or self._sides.toggle_settings(self.width()):
            self.tuning.prompt.setFocus()
        else:
            self.page.composer.setFocus()

    def _brings(self, side: QWidget) -> bool:
        """Turn to the chat; return whether that brings one of its sides into sight."""
        if self._shown_page == "chat":
            return False
        self.show_page("chat")
        return side.isVisible()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Show both sides where there is room."""
        super().resizeEvent(event)
        self._sides.fit(self.width())

    # What happened.

    def _on_new_chat(self) -> None:
        self.show_page("chat")
        self.desk.new_chat()
        self.history.choose(None)
        self.page.composer.setFocus()

    def show_tools(self) -> None:
        """Show the MCP servers."""
        ToolsDialog(self.tools_box, self).open()

    def _offer_prompts(self, page: ChatPage | None = None) -> None:
        self.show_page("chat")
        composer = (page or self.page).composer
        self.prompt_menu.offer(composer.prompts, False, composer.insert, composer.text)

    def _offer_instructions(self) -> None:
        panel = self.tuning
        self.prompt_menu.offer(panel.prompts, True, panel.prompt.setPlainText, panel.prompt.toPlainText())

    def _focus_search(self) -> None:
        shown = self._pages.currentWidget()
        if self.settings is not None and shown is self.settings:
            self.settings.search.setFocus()
            return
        if self.library is not None and shown is self.library:
            self.library.focus_search()
            return
        self.show_page("chat")
        self.history.show()
        self.history.search.setFocus()
        self.history.search.selectAll()

    def _on_searched(self, words: str) -> None:
        if not words:
            for page in self.chats.pages:
                page.transcript.forget_hit()

    def _on_listed(self, chats: list[ChatSummary], words: str) -> None:
        self.history.show_chats(chats, words)
        if not self.history.is_walked:
            self.history.choose(self.desk.current.chat.id)

    def _on_current(self, conversation: object) -> None:
        self.history.choose(self.desk.current.chat.id)
        self._sides.uncover()

    def _offer_undo(self, words: str, undo: Callable[[], object]) -> None:
        self._undo.append(undo)
        self.toast.say(words, tr("Undo"), self.undo)

    def undo(self) -> None:
        """Bring back the chat that was deleted or archived last; once more, the one before it."""
        self.toast.hide()
        if self._undo:
            self._undo.pop()()
            announce(self, tr("Undone"))

    def _on_storage_problem(self, problem: str | None) -> None:
        self._storage.show_problem(problem)

    # Looks.

    def choose_theme(self, choice: ThemeChoice) -> None:
        """Show this theme, now and at the next start."""
        self._appearance.choose(choice)
        self.kept.keep("theme", choice.value)

    def step_text(self, by: int) -> None:
        """Make text ``by`` steps larger; a negative number makes it smaller."""
        self.resize_text(step(self._appearance.percent, by))

    def resize_text(self, percent: int) -> None:
        """Show text in this size, now and at the next start."""
        self._appearance.resize_text(percent)
        self.kept.keep("textSize", percent)

    def open_race(self, prompt: str = "") -> None:
        """Let the same prompt be answered in two ways, and compare their speeds."""
        can = [model for model in self.watch.models if model.remote is None]
        names = [model.name for model in can if model.can is None or "completion" in model.can]
        names.sort(key=lambda name: name != self.watch.state.model)
        if names:
            RaceDialog(self._api, self.tools, names, prompt, self).open()
        else:
            self.toast.say(tr("There is no model here that can race"), tr("Find one"), self._find_models)

    def _on_race_wanted(self, page: ChatPage, reply: Message) -> None:
        tree = page.pane.current.tree
        asked = tree[reply.parent_id].content if reply.parent_id in tree and reply.parent_id is not None else ""
        self.open_race(" ".join(asked.split()))

    def tint_drafts(self, is_on: bool) -> None:
        """Tint drafted words, now and at the next start. Replies asked for while it is off do not know theirs."""
        self.kept.keep("tintDrafts", is_on)

    def _on_kept(self, name: str) -> None:
        if name == "tintDrafts":
            self._tints_drafts = self._api.asks_for_drafted = self.kept.is_on(name, usually=False)
            self.tools.style = self._text_style
            self.chats.restyle()

    @property
    def _text_style(self) -> TextStyle:
        return replace(self._appearance.text_style, tints_drafts=self._tints_drafts)

    def _on_looks(self) -> None:
        """Write messages anew, or when they are turned to. All else dresses itself."""
        self.tools.style = self._text_style
        if self._pages.currentWidget() is self._chat:
            self._restyle()

    def _restyle(self) -> None:
        self.chats.restyle()
        self._sides.fit(self.width())

    def _restore_place(self) -> None:
        """Open the page and the chat of the last time."""
        chat = str(self.kept.value("chat"))
        if chat.isascii() and chat.isdigit() and int(chat):
            self.desk.open(int(chat))
        beside = str(self.kept.value("chatBeside"))
        if beside.isascii() and beside.isdigit():
            self.chats.open_beside(int(beside) or None)
            self.desk.activate(self._first.pane)
        page = str(self.kept.value("page"))
        if page in PAGES and page != self._shown_page:
            # The window is there first: other pages take longer to make.
            QTimer.singleShot(0, self, lambda: self.show_page(page))

    def _restore(self) -> None:
        self.resize(1180, 780)
        geometry = self.kept.value("geometry")
        if isinstance(geometry, QByteArray):
            self.restoreGeometry(geometry)
        width = str(self.kept.value("sidebarWidth"))
        self.history.wanted_width = int(width) if width.isascii() and width.isdigit() else SIDEBAR
        self.kept.dress(self._appearance)
        self._sides.wants_history = self.kept.is_on("sidebar", usually=True)
        # Qt keeps a list of one as the one.
        closed = self.kept.value("closedFolders")
        names = closed if isinstance(closed, list) else [closed] if closed else []
        self.history.model.closed = frozenset(str(name) for name in names)
        self._figures = self.kept.figures

    def quit(self) -> None:
        """Close the window for good, also where closing it leaves the app running."""
        self._is_quitting = True
        self.close()

    def closeEvent(self, event: QCloseEvent) -> None:
        """Save everything and quit; where it is wanted, leave the app running without a window."""
        if self.background.keeps_running and not self._is_quitting:
            event.ignore()
            for page in self.chats.pages:
                page.keep_draft()
            self.hide()
            self.background.stay()
            return
        self.kept.keep("page", self._shown_page)
        first, *others = [0 if pane.current.is_new else pane.current.chat.id for pane in self.desk.panes]
        self.kept.keep("chat", first)
        self.kept.keep("chatBeside", others[0] if self.chats.is_two else "")
        self.kept.keep("geometry", self.saveGeometry())
        self.kept.keep("sidebar", self._sides.wants_history)
        self.kept.keep("sidebarWidth", self.history.wanted_width)
        self.kept.keep("closedFolders", sorted(self.history.model.closed))
        self.kept.keep_figures(self._figures)
        self.tuning.take_typed()
        for page in self.chats.pages:
            page.keep_draft()
            page.sending.cancel()
            page.composer.shelf.close_readings()
        self.exchange.cancel()
        self.tools_box.stop()
        self.desk.stop_all()
        self.watch.stop()
        self.link.stop()
        self._api.close()
        self.archive.close()
        self.tools.colours.close()
        self.tools.formulas.close()
        self._gui.close()
        self.background.close()
        super().closeEvent(event)
        self.closed.emit()
