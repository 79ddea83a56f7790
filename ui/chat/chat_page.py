"""The page in the middle: model, messages, and the field to write in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import Qt, QTimer, QUrl, Signal
from PySide6.QtGui import QDesktopServices, QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QMenu,
    QMessageBox,
    QProgressBar,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from ui.chat.chat_sessions import ChatSessions
from ui.chat.composer import Composer
from ui.chat.context_use import larger_context, later_start, sent_of, tokens_in
from ui.chat.conversation import ChatSession
from ui.chat.markdown.text_tools import TextTools
from ui.chat.messages.assistant_message import FIT
from ui.chat.messages.transcript import Transcript
from ui.chat.messages.user_message import UserMessage
from ui.chat.model_picker import ModelPicker
from ui.chat.storage.search_hit import first_hit
from ui.chat.storage.store import NEW_CHAT
from ui.chat.welcome import Welcome
from ui.client.api import ServerState
from ui.client.chat_records import ChatSettings, Message
from ui.client.server_watch import ServerWatch
from ui.client.speeds import Speed
from ui.theme.tokens import COLUMN, TOP_BAR, Palette, Space
from ui.widgets.banner import Banner
from ui.widgets.icon_button import IconButton

LIVE_MS = 100
KEEP_MS = 500  # typing ends before it is written down
NO_SPARK = "No small model is paired with this one."
HINT = "Enter sends  ·  Shift+Enter starts a new line"


class ChatPage(QWidget):
    """Shows the current chat and passes on what the user does."""

    sidebar_wanted = Signal()
    panel_wanted = Signal()
    settings_shown = Signal(object)  # ChatSettings
    context_wanted = Signal(str, object, object)  # a model, its context in tokens (None: as usual), what to do then

    def __init__(self, desk: ChatSessions, watch: ServerWatch, tools: TextTools, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("canvas")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._desk, self._watch, self._tools = desk, watch, tools
        self._conversation = desk.current
        # By chat what was written there and not sent, as it is kept on disk.
        self._drafts: dict[int, str] = {}
        self._enlarged = ""  # the model that was given a larger context here
        self._keep = QTimer(self, singleShot=True, interval=KEEP_MS)
        self.sidebar_button = IconButton("sidebar", "Show or hide the chats (Ctrl+B)")
        self.panel_button = IconButton("panel", "Chat settings (Ctrl+,)")
        self.picker = ModelPicker()
        self.progress = QProgressBar()
        self.progress.setTextVisible(False)
        self.progress.setRange(0, 1000)
        self._told: tuple[str | None, tuple[str, ...]] = (None, ())
        self.storage_banner, self.server_banner = Banner(), Banner()
        self.welcome = Welcome()
        self.transcript = Transcript(tools)
        self.stack = QStackedWidget()
        self.composer = Composer()
        self.context_banner = Banner()
        self.hint = QLabel(HINT)
        self._live = QTimer(self, interval=LIVE_MS)
        self._lay_out()
        self._connect_signals()
        self._show_conversation(desk.current)
        desk.read_drafts(self._on_drafts)
        self._on_state(watch.state)

    def _lay_out(self) -> None:
        top = QFrame()
        top.setObjectName("topBar")
        top.setFixedHeight(TOP_BAR)
        bar = QHBoxLayout(top)
        bar.setContentsMargins(Space.S, 0, Space.S, 0)
        bar.setSpacing(Space.S)
        bar.addWidget(self.sidebar_button)
        bar.addWidget(self.picker, 1)
        bar.addWidget(self.panel_button)
        self.stack.addWidget(self.welcome)
        self.stack.addWidget(self.transcript)
        self.hint.setProperty("tone", "caption")
        self.hint.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self._writing = QVBoxLayout()
        self._writing.setSpacing(Space.XS + 2)
        self._writing.addWidget(self.context_banner)
        self._writing.addWidget(self.composer)
        self._writing.addWidget(self.hint)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(top)
        column.addWidget(self.progress)
        column.addWidget(self.storage_banner)
        column.addWidget(self.server_banner)
        column.addWidget(self.stack, 1)
        column.addLayout(self._writing)

    def _connect_signals(self) -> None:
        self.sidebar_button.clicked.connect(self.sidebar_wanted)
        self.panel_button.clicked.connect(self.panel_wanted)
        self.picker.chosen.connect(self.choose_model)
        self.picker.opened.connect(self._watch.look_at_models)
        self.welcome.tried.connect(self._on_send)
        self.composer.sent.connect(self._on_send)
        self.composer.field.textChanged.connect(self._keep.start)
        self._keep.timeout.connect(self.keep_draft)
        self.composer.stopped.connect(self._desk.stop)
        self.composer.speed.chosen.connect(self._on_speed_chosen)
        self.transcript.regenerate.connect(self._desk.regenerate)
        self.transcript.redo_in_full.connect(self._redo_in_full)
        self.transcript.fit_wanted.connect(self._on_fit_wanted)
        self.transcript.edited.connect(self._desk.edit)
        self.transcript.chosen.connect(self._desk.choose)
        self.transcript.link_chosen.connect(self._ask_about_link)
        self._desk.current_changed.connect(self._show_conversation)
        self._desk.path_changed.connect(self._on_path)
        self._desk.grew.connect(self.transcript.append)
        self._desk.thought.connect(self.transcript.append_thought)
        self._desk.ended.connect(self._on_ended)
        self._desk.current_running_changed.connect(self._on_running)
        self._watch.state_changed.connect(self._on_state)
        self._watch.models_changed.connect(self.picker.set_models)
        self._watch.load_failed.connect(lambda problem: self.server_banner.say(problem, "danger"))
        self._live.timeout.connect(self._show_live)

    def change_settings(self, settings: ChatSettings) -> None:
        """Ask differently in this chat from the next message on."""
        self._conversation.change_settings(settings)

    def set_palette(self, palette: Palette) -> None:
        """Draw everything for another palette; the tools have its style already."""
        banners = (self.storage_banner, self.server_banner, self.context_banner)
        parts = (self.picker, *banners, self.welcome, self.composer)
        for part in (self.sidebar_button, self.panel_button, *parts):
            part.set_palette(palette)
        self.transcript.restyle()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the field as wide as the text above it, and lower than the window."""
        super().resizeEvent(event)
        side = max(Space.L, (self.width() - COLUMN) // 2 - Space.M)
        is_low = self.height() < 480
        self._writing.setContentsMargins(side, Space.XS, side, Space.S if is_low else Space.M)
        self.hint.setVisible(not is_low)
        self.composer.field.set_max_lines(max(3, self.height() // 60))
        self.picker.status.setVisible(self.width() >= 560)

    # The chat that is shown.

    def _show_conversation(self, conversation: ChatSession) -> None:
        self.keep_draft()
        self._conversation = conversation
        self.composer.set_text(self._drafts.get(self._draft_key, ""))
        self.picker.set_wanted(conversation.chat.settings.model)
        self.composer.speed.show_speed(conversation.chat.settings.speed)
        self.settings_shown.emit(conversation.chat.settings)
        self._show_spark()
        self._on_path()
        self._show_hit()
        self._on_running(conversation.is_running)
        self.composer.setFocus()

    def _show_hit(self) -> None:
        """Go to where a search met its words, on another branch where they are on none that is shown."""
        tree, words = self._conversation.tree, self._desk.words
        if not words:
            return
        hit = first_hit(tree.path, words)
        if hit is None and not self._conversation.is_running and (other := first_hit(tree.messages, words)) is not None:
            hit = other
            self._desk.choose(hit)
        if hit is not None:
            self.transcript.show_hit(hit, words)

    @property
    def _draft_key(self) -> int:
        return NEW_CHAT if self._conversation.is_new else self._conversation.chat.id

    def keep_draft(self) -> None:
        """Write down what was written in this chat and not sent, and say where it would not fit."""
        self._keep.stop()
        self._show_fit()
        key, text = self._draft_key, self.composer.text if self.composer.text.strip() else ""
        if text != self._drafts.get(key, ""):
            self._drafts[key] = text
            self._desk.keep_draft(key, text)

    def _on_drafts(self, drafts: dict[int, str]) -> None:
        self._drafts = drafts | self._drafts
        parts = (drafts.get(self._draft_key, ""), self.composer.text)
        self.composer.set_text("\n".join(part for part in parts if part))

    def _on_path(self) -> None:
        conversation = self._conversation
        self.stack.setCurrentWidget(self.welcome if conversation.is_new else self.transcript)
        self.transcript.show_path(conversation.tree.path, conversation.tree.versions)
        if conversation.running_id is not None:
            text = conversation.text_of(conversation.running_id)
            self.transcript.show_running(conversation.running_id, text, conversation.live_thoughts)

    # What fits into the context.

    def _known_context(self) -> int:
        """Tokens of the context that this chat gets; 0 where its model is not loaded."""
        state, wanted = self._watch.state, self._conversation.chat.settings.model
        return state.n_ctx or 0 if state.phase == "ready" and wanted in (None, state.model) else 0

    def _sent(self, path: list[Message]) -> list[Message]:
        return sent_of(path, self._conversation.chat.settings.begins_at)

    def _show_fit(self) -> None:
        """Say before it is sent that a message would not be answered."""
        n_ctx, text = self._known_context(), self.composer.text.strip()
        n_tokens = tokens_in(self._sent(self._conversation.tree.path), text) if n_ctx and text else 0
        if not n_ctx or n_tokens < n_ctx:
            self.context_banner.hide()
            return
        words = f"With this message the chat has about {n_tokens:,} tokens, and the model's context holds {n_ctx:,}."
        ways = self._ways(self._sent(self._conversation.tree.path), text, lambda: None)
        shorten = "" if ways else " Shorten it, or choose a model with a larger context."
        action = (FIT, lambda: self._show_ways(ways, self.context_banner.action)) if ways else None
        self.context_banner.say(words + shorten, "warning", action, can_close=False)

    def _ways(
        self, sent: list[Message], text: str, then: Callable[[], object]
    ) -> list[tuple[str, Callable[[], object]]]:
        """Return what makes the messages fit, each way with its words; ``then`` follows."""
        state, n_ctx = self._watch.state, self._known_context()
        model, ways = state.model or "", list[tuple[str, Callable[[], object]]]()
        if not n_ctx:
            return ways
        wanted = larger_context(tokens_in(sent, text), n_ctx, state.n_ctx_train or 0)
        if wanted is not None:
            words = f"Load the model with {wanted:,} tokens of context"
            ways.append((words, lambda: self._enlarge(model, wanted, then)))
        start = later_start(sent, text, n_ctx)
        left = [message for message in sent if message.id >= start]
        if len(left) < len(sent) and tokens_in(left, text) < n_ctx:
            ways.append(("Leave out earlier messages", lambda: self._begin_at(start, then)))
        return ways

    def _show_ways(self, ways: list[tuple[str, Callable[[], object]]], button: QWidget) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for words, act in ways:
            menu.addAction(words, act)
        menu.popup(button.mapToGlobal(button.rect().bottomLeft()))

    def _on_fit_wanted(self, message: Message, button: QWidget) -> None:
        question = message.parent_id
        sent = self._sent(self._conversation.tree.path_to(question))
        ways = self._ways(sent, "", lambda: self._desk.regenerate(message.id))
        view = self.transcript.view_of(question) if question is not None else None
        if isinstance(view, UserMessage):
            ways.append(("Shorten the message", view.begin_edit))
        self._show_ways(ways, button)

    def _enlarge(self, model: str, n_ctx: int | None, then: Callable[[], object]) -> None:
        self._enlarged = model if n_ctx is not None else ""
        self.context_banner.hide()
        self.context_wanted.emit(model, n_ctx, then)

    def _begin_at(self, message_id: int, then: Callable[[], object]) -> None:
        settings = replace(self._conversation.chat.settings, begins_at=message_id)
        self._conversation.change_settings(settings)
        self.settings_shown.emit(settings)
        self._show_fit()
        then()

    def _on_send(self, text: str) -> None:
        # What is sent is kept as a message: first that, then the draft is gone.
        was = self._draft_key
        self._desk.send(text)
        if was != self._draft_key and self._drafts.pop(was, ""):
            self._desk.keep_draft(was, "")
        self.keep_draft()
        self.composer.setFocus()

    def _redo_in_full(self, message_id: int) -> None:
        self._desk.regenerate(message_id, Speed.STANDARD)

    def _on_ended(self, message: Message) -> None:
        self.transcript.show_ended(message)

    def _on_running(self, is_running: bool) -> None:
        self.composer.set_running(is_running)
        if is_running:
            self._live.start()
            self._show_live()
        else:
            self._live.stop()

    def _show_live(self) -> None:
        conversation = self._conversation
        if conversation.running_id is None:
            return
        self.transcript.show_live(
            conversation.running_id,
            conversation.live_rate,
            conversation.live_ttft,
            conversation.live_wait,
            self._what_it_waits_for(),
            conversation.live_progress,
        )
        self.transcript.show_thinking(conversation.running_id, conversation.live_thinking)
        self.transcript.show_answered_by(conversation.running_id, conversation.answered_by)

    def _what_it_waits_for(self) -> str:
        phase = self._watch.state.phase
        waits = {"unknown": "Starting the engine…", "loading": "Loading the model…", "restarting": "Starting again…"}
        return waits.get(phase, "")

    # The server.

    def _on_state(self, state: ServerState) -> None:
        self.picker.set_state(state)
        self._show_spark()
        self._show_fit()
        self.welcome.set_toy(state.is_toy)
        is_busy = state.phase in ("unknown", "loading", "restarting")
        self.progress.setRange(0, 1000 if 0 < state.progress < 1 else 0)
        self.progress.setValue(round(state.progress * 1000))
        # The line keeps its place, so that nothing jumps when it comes and goes.
        policy = self.progress.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.progress.setSizePolicy(policy)
        self.progress.setVisible(is_busy)
        if state.phase == "failed":
            self.server_banner.say(state.problem or "The model could not be loaded.", "danger", self._way_out(state))
            self._told = (None, ())
        elif state.phase == "ready":
            self._show_notices(state)

    def _show_notices(self, state: ServerState) -> None:
        """Say what the loaded model does without, once."""
        told = (state.model, state.notices)
        if not state.notices:
            self.server_banner.hide()
        elif told != self._told:
            again = ("Load it again", lambda: self._watch.load(state.model or ""))
            self.server_banner.say(" ".join(state.notices), "warning", again if state.left_out else None)
        self._told = told

    def _way_out(self, state: ServerState) -> tuple[str, Callable[[], object]]:
        model = state.model or ""
        if model and model == self._enlarged:
            return "Use the usual context", lambda: self._enlarge(model, None, lambda: None)
        return "Try again", lambda: self._watch.load(model)

    def _show_spark(self) -> None:
        """Say where no small model can answer; of a model that is not loaded that is not known."""
        state, wanted = self._watch.state, self._conversation.chat.settings.model
        is_known = state.phase == "ready" and wanted in (None, state.model)
        problem = (state.why_no_spark or NO_SPARK) if is_known and not state.spark else ""
        self.composer.speed.set_no_spark(problem)
        is_stuck = problem and self._conversation.chat.settings.speed is Speed.SPARK
        self.hint.setText(f"Spark cannot answer: {problem}" if is_stuck else HINT)

    def _on_speed_chosen(self, speed: Speed) -> None:
        settings = replace(self._conversation.chat.settings, speed=speed)
        self._conversation.change_settings(settings)
        self.settings_shown.emit(settings)
        self._show_spark()
        self.composer.setFocus()

    def choose_model(self, name: str) -> None:
        """Let this chat ask for a model, and load it where it is one of this machine."""
        settings = replace(self._conversation.chat.settings, model=name)
        self._conversation.change_settings(settings)
        self.picker.set_wanted(name)
        self.settings_shown.emit(settings)
        self._show_spark()
        if name != self._watch.state.model and self.picker.remote is None:
            self._watch.load(name)

    # Links.

    def _ask_about_link(self, address: str) -> None:
        url = QUrl(address)
        if url.scheme() not in ("http", "https", "mailto"):
            return
        box = QMessageBox(self.window())
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        box.setWindowTitle("Open link")
        box.setText("Open this link in your browser?")
        box.setInformativeText(url.toDisplayString())
        box.setTextFormat(Qt.TextFormat.PlainText)
        opens = box.addButton("Open", QMessageBox.ButtonRole.AcceptRole)
        box.addButton(QMessageBox.StandardButton.Cancel)
        box.buttonClicked.connect(lambda button: QDesktopServices.openUrl(url) if button is opens else None)
        box.open()
