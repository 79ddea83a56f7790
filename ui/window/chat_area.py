"""The page of chats: their list, those that are open, and the settings of one; and what is done with them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QHBoxLayout, QWidget

from models.formatting.safe_text import one_line
from models.library import requests as ask
from models.library.values import ModelRow, SettingText, Trouble
from ui.chat.attachments.file_reading import FileReading
from ui.chat.attachments.shelf import Shelf, Unread
from ui.chat.chat_page import ChatPage
from ui.chat.chat_sessions import ChatSessions, OpenChat
from ui.chat.exchange.exchange import Exchange
from ui.chat.history.history_panel import HistoryPanel
from ui.chat.markdown.markdown_view import MarkdownView
from ui.chat.markdown.text_tools import TextTools
from ui.chat.prompts.prompt_library import PromptLibrary
from ui.chat.prompts.prompt_menu import PromptMenu
from ui.chat.race import RaceDialog
from ui.chat.storage.chat_archive import ChatArchive
from ui.chat.storage.ids import Ids
from ui.chat.tools.tool_box import ToolBox
from ui.chat.tools.tools_dialog import ToolsDialog
from ui.chat.tuning_panel import TuningPanel
from ui.client.api import Api
from ui.client.attachments import Attachment
from ui.client.chat_records import Chat, ChatSummary, Message
from ui.client.library_link import LibraryLink
from ui.client.server_watch import ServerWatch
from ui.commands.command import Command
from ui.commands.command_palette import CommandPalette
from ui.commands.shortcuts_dialog import IN_CHAT, ON_CHATS
from ui.language import tr
from ui.library.labels import fit_and_speed
from ui.library.settings.settings_dialog import SettingsDialog
from ui.platform.gui_thread import GuiThread
from ui.settings.window_settings import TINT, WindowSettings
from ui.theme.appearance import Appearance
from ui.theme.layouts import fill
from ui.widgets.banner import Banner
from ui.widgets.dialogs import Dialog
from ui.widgets.page_layout import announce
from ui.widgets.toast import Toast
from ui.window.chat_panes import ChatPanes
from ui.window.newcomer import Newcomer
from ui.window.sides import Sides
from ui.window.storage_notice import StorageNotice

UNREAD = "unread"
QUIET_MS = 60_000  # until a check of the chats that came beside a reply is tried again
SPLIT = tr("split side by side two")


class ChatArea(QWidget):
    """Places the parts of the page and connects them with the chats on disk."""

    wanted = Signal()  # the page is to be seen
    library_wanted = Signal()
    model_wanted = Signal(str)  # a model of the library, by its name
    find_wanted = Signal(str)  # a model of the Hub, by a word or none
    quit_wanted = Signal()

    def __init__(
        self,
        api: Api,
        watch: ServerWatch,
        link: LibraryLink,
        kept: WindowSettings,
        appearance: Appearance,
        tools: TextTools,
        chats_file: Path,
    ) -> None:
        super().__init__()
        self._api, self._watch, self._link, self._kept = api, watch, link, kept
        self._appearance, self._tools = appearance, tools
        self._gui, ids = GuiThread(self), Ids()
        self.archive = ChatArchive(chats_file, self._gui.post, self._on_storage_problem, ids.saw)
        self._figures = kept.figures  # fit and speed of the models of this machine, by name
        self._take_tint()
        self.desk = ChatSessions(api, self.archive, ids, self)
        self.tools_box = ToolBox(kept.beside("tools.json"), watch, self)
        self.desk.use_tools(self.tools_box)
        self.exchange = Exchange(self.archive, ids, self)
        self.prompts = PromptLibrary(self.archive, ids, self)
        self.prompt_menu = PromptMenu(self.prompts, lambda: [model.name for model in watch.models], self)
        self.history = HistoryPanel()
        self.panes = ChatPanes(self.desk, self._made_page)
        self.first = self.panes.page  # the one that is always there
        self.tuning = TuningPanel(self.first, watch)
        self.storage_banner = Banner()  # above all pages: what it says is to be known before anything is written
        self._storage = StorageNotice(self.archive, self.storage_banner, kept, self)
        self.newcomer = Newcomer(link, watch, self.first.welcome, kept, self)
        self._sides = Sides(self.history, self.panes, self.tuning, appearance)
        self.toast = Toast(self.first.stack)  # above what is being written, however tall that is
        # Of what was done to chats and folders since the start, the last one last.
        self._undo: list[Callable[[], object]] = []
        self._unread: list[Unread] = []  # files that were being read when the window was closed the last time
        fill(QHBoxLayout(self), self._sides, margins=0)
        self.setFocusProxy(self.panes)
        self._connect_list()
        self._connect_settings()
        self._storage.export_wanted.connect(partial(self._with_list, self.history.export_all))
        self._storage.chats_changed.connect(self.desk.list_soon)
        self._storage.chats_changed.connect(self.desk.let_go)
        self._storage.brought_back.connect(self._on_brought_back)
        self._storage.quit_wanted.connect(self.quit_wanted)
        self.history.can_bring_back = lambda: bool(self._storage.ways_back)
        self.history.back_wanted.connect(lambda: self._storage.offer_ways_back(self.history.more))
        self.newcomer.use_wanted.connect(self._on_arrived)
        self.newcomer.file_chosen.connect(self.open_file)
        self.newcomer.library_wanted.connect(self.library_wanted)
        self.newcomer.find_wanted.connect(lambda: self.find_wanted.emit(""))
        kept.changed.connect(self._on_kept)
        appearance.changed.connect(lambda palette: self._on_looks())

    def _connect_list(self) -> None:
        history, desk, exchange = self.history, self.desk, self.exchange
        history.opened.connect(self.open_chat)
        history.beside_wanted.connect(self.open_beside)
        history.new_wanted.connect(self.new_chat)
        history.renamed.connect(desk.rename)
        history.deleted.connect(desk.delete)
        history.searched.connect(desk.search)
        history.searched.connect(self._on_searched)
        history.pinned.connect(desk.pin)
        history.put_away.connect(desk.archive)
        history.moved.connect(desk.move)
        history.folder_renamed.connect(self._rename_folder)
        history.archive_wanted.connect(desk.show_archive)
        history.more_wanted.connect(desk.list_more)
        history.import_wanted.connect(exchange.take_in)
        history.export_wanted.connect(exchange.write)
        history.exchange_left.connect(exchange.cancel)
        exchange.progressed.connect(lambda words: history.show_exchange(words, is_over=False))
        exchange.ended.connect(lambda words, is_other, new: history.show_exchange(words, True, is_other, new))
        exchange.took_in.connect(desk.list_soon)
        desk.put_away.connect(lambda chat: self._offer_undo(tr("Chat archived"), partial(desk.archive, chat, False)))
        desk.deleted.connect(lambda chat: self._offer_undo(tr("Chat deleted"), partial(desk.restore, chat)))
        desk.listed.connect(self._on_listed)
        desk.running_changed.connect(history.model.set_running)
        desk.running_changed.connect(lambda running: self._watch.set_live(bool(running)))
        desk.current_changed.connect(self._on_current)

    def _connect_settings(self) -> None:
        tuning, watch = self.tuning, self._watch
        self.panes.used_changed.connect(self._on_used_changed)
        tuning.tools.clicked.connect(self.show_tools)
        tuning.prompts.clicked.connect(self._offer_instructions)
        tuning.close_wanted.connect(self.toggle_settings)
        self.desk.instructions_for = lambda model: self.prompts.instructions_for(model or watch.state.model)

    def _made_page(self, pane: OpenChat) -> ChatPage:
        page = ChatPage(pane, self._watch, self._tools, self._api)
        page.picker.figure_of = lambda model: self._figures.get(model, "")
        page.transcript.race_wanted.connect(partial(self._on_race_wanted, page))
        page.transcript.tint_wanted.connect(self._tint)
        page.sidebar_wanted.connect(self.toggle_list)
        page.panel_wanted.connect(lambda: self._show_settings_of(page))
        page.wanted.connect(self._bring_chat)
        page.wanted.connect(lambda: self.desk.activate(pane))
        page.context_wanted.connect(self._on_context_wanted)
        page.find_wanted.connect(self.find_wanted)
        page.model_dropped.connect(self.open_file)
        page.model_settings_wanted.connect(self._change_model)
        page.composer.prompts.clicked.connect(lambda: self._offer_prompts(page))
        page.composer.sent.connect(lambda text: self.tuning.take_typed())
        page.composer.shelf.read_aside.connect(self._on_read_aside)
        page.composer.shelf.readings_elsewhere = partial(self._readings_elsewhere, page)
        self.prompts.changed.connect(page.begin_instructions)
        if pane is not self.desk.panes[0]:
            page.picker.set_models(self._watch.models)
        return page

    def _on_read_aside(self, key: int, found: Attachment | str) -> None:
        """Hand what was read for a chat that was left to the pane that shows it by now, or keep it."""
        if (shelf := self._shelf_of(key)) is not None:
            shelf.take_read(found)
        else:
            self.desk.unsent.keep_read(key, found)

    def _shelf_of(self, key: int) -> Shelf | None:
        """Return the files of the pane that shows a chat."""
        shelves = (page.composer.shelf for page in self.panes.pages)
        return next((shelf for shelf in shelves if shelf.key == key), None)

    def _readings_elsewhere(self, here: ChatPage, key: int) -> list[FileReading]:
        others = (page for page in self.panes.pages if page is not here)
        return [reading for page in others for reading in page.composer.shelf.hand_over(key)]

    @property
    def page(self) -> ChatPage:
        """The chat that is used."""
        return self.panes.page

    def commands(self, palette: CommandPalette) -> dict[str, tuple[Command, ...]]:
        """Return what can be done by name with chats, by what it is about; ``palette`` finds one of them."""
        on_page = self._with_page
        return {
            IN_CHAT: (
                Command(tr("New chat"), self.new_chat, ("Ctrl+N",), words=tr("conversation start")),
                Command(
                    tr("Choose a model"),
                    on_page(lambda page: page.picker.open()),
                    ("Ctrl+L",),
                    words=tr("switch change load unload eject LLM"),
                ),
                Command(
                    tr("Attach files"),
                    on_page(lambda page: page.composer.choose_files()),
                    ("Ctrl+U",),
                    words=tr("upload document PDF image picture photo"),
                ),
                Command(tr("Take a prompt"), on_page(self._offer_prompts), ("Ctrl+P",), words=tr("template")),
                Command(
                    tr("Answer again"),
                    on_page(lambda page: page.transcript.answer_again()),
                    ("Ctrl+R",),
                    words=tr("regenerate retry repeat redo"),
                ),
                Command(tr("Stop the reply"), on_page(lambda page: page.pane.stop()), words=tr("cancel end abort")),
                Command(
                    tr("Continue a reply that was cut"),
                    on_page(lambda page: page.transcript.continue_last()),
                    ("Ctrl+Shift+R",),
                ),
                Command(
                    tr("Edit what was said last"),
                    on_page(lambda page: page.transcript.edit_last()),
                    ("Ctrl+E",),
                    words=tr("change correct message"),
                ),
                Command(
                    tr("Earlier version of a message"),
                    on_page(lambda page: page.transcript.step_version(-1)),
                    ("Alt+Left",),
                    words=tr("branch"),
                ),
                Command(
                    tr("Later version of a message"),
                    on_page(lambda page: page.transcript.step_version(1)),
                    ("Alt+Right",),
                    words=tr("branch"),
                ),
                Command(
                    tr("Tint drafted words"),
                    self._switch_tint,
                    ("Ctrl+Shift+D",),
                    words=tr("highlight colour color accepted speculative"),
                ),
                Command(tr("Race two ways to answer"), self.open_race, words=tr("compare benchmark models speed")),
                Command(
                    tr("Prompts"),
                    self.prompt_menu.manage,
                    words=tr("templates variables library system instructions role persona"),
                ),
                Command(
                    tr("MCP servers"),
                    self.show_tools,
                    words=tr("tools plugins extensions functions web search internet agent"),
                ),
            ),
            ON_CHATS: (
                Command(tr("Show or hide the chats"), self.toggle_list, ("Ctrl+B",), words=tr("sidebar history list")),
                Command(
                    tr("Show or hide the settings of the chat"),
                    self.toggle_settings,
                    ("Ctrl+.",),
                    words=tr(
                        "temperature top-k top-p min-p penalty seed random sampling creative creativity maximum max "
                        "tokens length thinking reasoning system prompt instructions role"
                    ),
                ),
                Command(tr("Rename this chat…"), self._with_chat(self._ask_to_rename), words=tr("title name")),
                Command(tr("Put this chat into the archive"), self._with_chat(self._archive), words=tr("put away")),
                Command(
                    tr("Delete this chat"), self._with_chat(self._delete), words=tr("remove erase clear trash bin")
                ),
                Command(
                    tr("Export this chat…"),
                    self._with_chat(self._export),
                    words=tr("save copy share Markdown JSON"),
                ),
                Command(
                    tr("New chat beside this one"),
                    partial(self.open_beside, None),
                    ("Ctrl+Shift+N",),
                    words=SPLIT,
                ),
                Command(tr("Open a chat beside this one"), partial(self.find_beside, palette), words=SPLIT),
                Command(tr("Go to the other chat"), self._switch, ("F6",)),
                Command(tr("Close the chat beside"), self.panes.close_beside, ("Ctrl+Shift+W",)),
                Command(
                    tr("Undo archiving or deleting a chat, or changing a folder"),
                    self.undo,
                    ("Ctrl+Z",),
                    words=tr("restore deleted archived removed"),
                ),
                Command(
                    tr("Import chats…"),
                    partial(self._with_list, self.history.import_chats),
                    words="ChatGPT LM Studio Open WebUI GPT4All",
                ),
                Command(
                    tr("Export all chats…"),
                    partial(self._with_list, self.history.export_all),
                    words=tr("save backup Markdown JSON zip"),
                ),
            ),
        }

    # Chats.

    def ask_for_commands(self, then: Callable[[Iterator[Command]], None]) -> None:
        """Ask for a command for each chat, which opens it."""

        def made(chat: ChatSummary) -> Command:
            beside = None if self.desk.is_open(chat.id) else partial(self.open_beside, chat.id)
            return Command(chat.title, partial(self.open_chat, chat.id), (), tr("Chat"), beside)

        self.desk.ask_for_all(lambda chats: then(map(made, chats)))

    def find_beside(self, palette: CommandPalette) -> None:
        """Let a chat be found that is opened beside the one in use."""
        add = palette.open([], tr("Search the chat to open beside this one"))

        def offer(chats: Sequence[ChatSummary]) -> None:
            others = (chat for chat in chats if not self.desk.is_open(chat.id))
            add(Command(chat.title, partial(self.open_beside, chat.id), (), tr("Chat")) for chat in others)

        self.desk.ask_for_all(offer)

    def new_chat(self) -> None:
        """Open an empty chat."""
        self._bring_chat()
        self.desk.new_chat()
        self.history.choose(None)
        self.page.composer.setFocus()

    def open_chat(self, chat_id: int) -> None:
        """Open a chat in the pane that is used."""
        self._bring_chat()
        self.desk.open(chat_id)

    def open_beside(self, chat_id: int | None) -> None:
        """Open a chat in a pane of its own, or an empty one."""
        self._bring_chat()
        self.panes.open_beside(chat_id)

    def _bring_chat(self) -> None:
        """Bring the chat in sight, also where the one that is wanted is the one in use."""
        self.wanted.emit()
        self._sides.uncover()

    def _switch(self) -> None:
        self.wanted.emit()
        self.panes.switch()

    def open_answer(self, question: str, answer: dict[str, Any], job: str) -> None:
        """Open what a job has answered as a chat."""
        self._bring_chat()
        self.desk.open_answer(question, answer, f"slipstream job:{job}")

    def _with_page(self, act: Callable[[ChatPage], object]) -> Callable[[], object]:
        """Return what does this with the chat that is used then, in sight: it may take the keyboard."""

        def act_in_sight() -> None:
            if not self.panes.isVisible():
                self._bring_chat()
            act(self.page)

        return act_in_sight

    def _with_chat(self, act: Callable[[Chat], object]) -> Callable[[], object]:
        """Return what does this with the chat that is used then, where it has begun."""

        def act_in_sight() -> None:
            self._bring_chat()
            if self.desk.current.is_new:
                self.toast.tell(tr("Nothing has been said in this chat yet"))
            else:
                act(self.desk.current.chat)

        return act_in_sight

    def _ask_to_rename(self, chat: Chat) -> None:
        self.history.ask_for_name(tr("Rename chat"), partial(self.desk.rename, chat.id), chat.title)

    def _archive(self, chat: Chat) -> None:
        self.desk.archive(chat.id, is_archived=True)

    def _delete(self, chat: Chat) -> None:
        self.desk.delete(chat.id)

    def _export(self, chat: Chat) -> None:
        self._with_list(partial(self.history.export, chat.title, chat.id))

    def focus_search(self) -> None:
        """Give the keyboard to the field that searches chats."""
        self.history.show()
        self.history.search.setFocus()
        self.history.search.selectAll()

    def _on_searched(self, words: str) -> None:
        if not words:
            for page in self.panes.pages:
                page.transcript.forget_hit()

    def _on_listed(self, chats: list[ChatSummary], words: str) -> None:
        self.history.show_chats(chats, words)
        if not self.history.is_walked:
            self.history.choose(self.desk.current.chat.id)

    def _on_current(self, conversation: object) -> None:
        self.history.choose(self.desk.current.chat.id)
        self._sides.uncover()

    def _rename_folder(self, folder: str, name: str) -> None:
        """Give a folder another name, or take its chats out; it stays closed, also when that is undone."""
        model = self.history.model
        was = model.closed & {folder}
        now = frozenset({name}) if was and name and name not in model.folders else frozenset[str]()
        undo = self.desk.rename_folder(folder, name)
        model.closed = model.closed - was | now

        def back() -> None:
            model.closed = model.closed - now | was
            undo()

        self._offer_undo(tr("Folder renamed") if name else tr("Folder removed"), back)

    def _offer_undo(self, words: str, undo: Callable[[], object]) -> None:
        self._undo.append(undo)
        self.toast.say(words, tr("Undo"), self.undo)

    def undo(self) -> None:
        """Bring back the chat that was deleted or archived last, or the folder; once more, what was before it."""
        self.toast.hide()
        if self._undo:
            self._undo.pop()()
            announce(self, tr("Undone"))

    def _on_brought_back(self, words: str) -> None:
        self.prompts.read()
        for page in self.panes.pages:
            page.look_for_drafts()
        self.wanted.emit()
        self.toast.tell(words)

    def check_chats(self) -> None:
        """Look for damage in a large file of chats, when no reply comes in."""
        if self.desk.running:
            QTimer.singleShot(QUIET_MS, self, self.check_chats)
        else:
            self._storage.look_through()

    def _on_storage_problem(self, problem: str | None) -> None:
        self._storage.show_problem(problem)

    # The two sides.

    def _with_list(self, act: Callable[[], object]) -> None:
        """Do this with the list of chats in sight, which says what becomes of it."""
        self.wanted.emit()
        if self.history.isHidden():
            self.toggle_list()
        act()

    def toggle_list(self) -> None:
        """Show or hide the chats."""
        if not self._brings(self.history):
            self._sides.toggle_history()

    def toggle_settings(self) -> None:
        """Show or hide the settings of the chat."""
        if self._brings(self.tuning) or self._sides.toggle_settings(self.window().width()):
            self.tuning.prompt.setFocus()
        else:
            self.page.composer.setFocus()

    def _brings(self, side: QWidget) -> bool:
        """Turn to the chats; return whether that brings one of the sides into sight."""
        if not self.isHidden():
            return False
        self.wanted.emit()
        return side.isVisible()

    def fit(self, width: int) -> None:
        """Show both sides where a window of ``width`` pixels has room for them."""
        self._sides.fit(width)

    # The settings of a chat.

    def _on_used_changed(self) -> None:
        self.tuning.follow(self.page)
        self.history.choose(self.desk.current.chat.id)

    def _show_settings_of(self, page: ChatPage) -> None:
        is_other = page is not self.page
        self.desk.activate(page.pane)
        if not is_other or self.tuning.isHidden():
            self.toggle_settings()

    def _offer_prompts(self, page: ChatPage) -> None:
        composer = page.composer
        composer.setFocus()
        self.prompt_menu.offer(composer.prompts, False, composer.insert, composer.text)

    def _offer_instructions(self) -> None:
        panel = self.tuning
        self.prompt_menu.offer(panel.prompts, True, panel.prompt.setPlainText, panel.prompt.toPlainText())

    def show_tools(self) -> None:
        """Show the MCP servers."""
        ToolsDialog(self.tools_box, self.window()).open()

    # Models.

    def use(self, name: str) -> None:
        """Let a model answer in the chat that is used."""
        self.wanted.emit()
        self.page.choose_model(name)

    def open_file(self, file: str) -> None:
        """Use a model file where it is, and load it."""
        self.wanted.emit()
        self.first.server_banner.take_back(self)
        self._link.ask(ask.ImportFile(file), self.use, self._on_not_opened)

    def _on_arrived(self, file: str) -> None:
        """Let the model that a newcomer has waited for answer. It may come long after: who is elsewhere stays there."""

        def use(name: str) -> None:
            self.page.choose_model(name)
            self.toast.tell(tr("{name} answers from now on", name=one_line(name)))

        self._link.ask(ask.ImportFile(file), use, self._on_not_opened)

    def _on_not_opened(self, trouble: Trouble) -> None:
        show = (tr("Show the models"), self.library_wanted.emit)
        self.first.server_banner.say(trouble.sentence, "danger", show, by=self, stays=True)

    def _on_context_wanted(self, model: str, n_ctx: int | None, then: Callable[[], object]) -> None:
        text = None if n_ctx is None else str(n_ctx)
        self._link.ask(
            ask.ChangeSettings(model, (SettingText("ctx", text),)),
            lambda sheet: self._watch.load(model, then),
            lambda trouble: self.first.server_banner.say(
                trouble.sentence, "danger", (tr("Show the model"), lambda: self.model_wanted.emit(model)), by=self
            ),
        )

    def _change_model(self, name: str) -> None:
        dialog = SettingsDialog(self._link, name, self.window())
        dialog.saved.connect(self.toast.tell)
        dialog.open()

    def show_figures(self, rows: Iterable[ModelRow]) -> None:
        """Say in the lists of models whether each fits, and how fast it is."""
        figures = {row.name: words for row in rows if (words := fit_and_speed(row))}
        if figures != self._figures:
            self._figures = figures
            for page in self.panes.pages:
                page.picker.refill_menu()

    def open_race(self, prompt: str = "") -> None:
        """Let the same prompt be answered in two ways, and compare their speeds."""
        can = [model for model in self._watch.models if model.remote is None]
        names = [model.name for model in can if model.can is None or "completion" in model.can]
        names.sort(key=lambda name: name != self._watch.state.model)
        if names:
            RaceDialog(self._api, self._tools, names, prompt, self.window()).open()
        else:
            find = (tr("Find one"), lambda: self.find_wanted.emit(""))
            self.toast.say(tr("There is no model here that can race"), *find)

    def _on_race_wanted(self, page: ChatPage, reply: Message) -> None:
        tree = page.pane.current.tree
        asked = tree[reply.parent_id].content if reply.parent_id in tree and reply.parent_id is not None else ""
        self.open_race(" ".join(asked.split()))

    # Looks.

    def _tint(self, is_on: bool) -> None:
        self._kept.keep(TINT, is_on)

    def _switch_tint(self) -> None:
        """Tint drafted words or no longer, and say so: replies that are there may not know theirs."""
        self._tint(not self._tints_drafts)
        self.toast.tell(
            tr("Drafted words of new replies are tinted.")
            if self._tints_drafts
            else tr("Drafted words are no longer tinted.")
        )

    def _on_kept(self, name: str) -> None:
        if name == TINT:
            self._take_tint()
            self.panes.restyle()

    def _take_tint(self) -> None:
        # Replies asked for while it is off do not know their drafted words.
        self._tints_drafts = self._api.asks_for_drafted = self._kept.is_on(TINT, usually=False)
        self._tools.style = replace(self._appearance.text_style, tints_drafts=self._tints_drafts)

    def _on_looks(self) -> None:
        """Write messages anew, or when they are turned to. All else dresses itself."""
        self._take_tint()
        if not self.isHidden():
            self.restyle()
        for dialog in self.window().findChildren(Dialog):
            for view in dialog.findChildren(MarkdownView):
                view.set_style(self._tools.style)

    def restyle(self) -> None:
        """Write messages anew: they were out of sight when the looks changed."""
        self.panes.restyle()
        self.fit(self.window().width())

    # From one start to the next.

    def restore(self) -> None:
        """Open the chats of the last time as they were left, list all, and start their tools."""
        self.history.dress()  # it has the fonts of its place now
        self._sides.restore(self._kept)
        self.fit(self.window().width())
        self.panes.restore(self._kept)
        self.desk.list_soon()
        self.tools_box.start()
        with contextlib.suppress(ValueError, TypeError):
            left = json.loads(str(self._kept.value(UNREAD)))
            self._unread = [(int(key), str(path), is_copy is True) for key, path, is_copy in left]
        # When what was kept of the drafts has been read.
        self.archive.ask(lambda store: None, lambda found: self._read_on(), None)

    def _read_on(self) -> None:
        left, self._unread = self._unread, []
        for one in left:  # where its chat is shown: a message waits for its files
            (self._shelf_of(one[0]) or self.first.composer.shelf).read_again([one])

    def keep_drafts(self) -> None:
        """Write down what was written and not sent."""
        for page in self.panes.pages:
            page.keep_draft()

    def leave(self) -> None:
        """Keep how everything was, and end what is at work."""
        self.panes.keep(self._kept)
        self._sides.keep(self._kept)
        self._kept.keep_figures(self._figures)
        self.tuning.take_typed()
        self.keep_drafts()
        left = self._unread
        for page in self.panes.pages:
            page.sending.cancel()
            left += page.composer.shelf.close_readings()
        self._kept.keep(UNREAD, json.dumps(left))
        self.exchange.cancel()
        self._storage.leave()
        self.tools_box.stop()
        self.desk.stop_all()

    def close_archive(self) -> None:
        """Write the last of it, and wait for that."""
        self.archive.close()
        self._gui.close()
