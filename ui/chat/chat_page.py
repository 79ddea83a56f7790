"""One chat with all that belongs to it: model, messages, and the field to write in. The window shows one or two."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from PySide6.QtCore import Qt, QTimer, QUrl, Signal
from PySide6.QtGui import (
    QDesktopServices,
    QDragEnterEvent,
    QDropEvent,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QResizeEvent,
    QShortcut,
)
from PySide6.QtWidgets import (
    QAbstractSlider,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from ui.chat.attachments.pages_dialog import PagesDialog
from ui.chat.attachments.sending import Sending
from ui.chat.chat_sessions import OpenChat
from ui.chat.composer import Composer, files_in
from ui.chat.context_fit import ContextFit, ways_of_files
from ui.chat.conversation import ChatSession
from ui.chat.markdown.text_tools import TextTools
from ui.chat.messages.assistant_message import AssistantMessage
from ui.chat.messages.receipts import CONTEXT_FULL
from ui.chat.messages.transcript import Transcript
from ui.chat.messages.user_message import UserMessage
from ui.chat.model_picker import ModelPicker
from ui.chat.server_notice import ServerNotice
from ui.chat.storage.search_hit import first_hit
from ui.chat.welcome import Welcome
from ui.client.api import Api, ServerState
from ui.client.attachments import Attachment, SentParts
from ui.client.chat_records import ChatSettings, Message, Status
from ui.client.problems import MODEL_GONE
from ui.client.server_watch import ServerWatch
from ui.client.speeds import Speed
from ui.language import tr
from ui.theme.layouts import fill
from ui.theme.tokens import COLUMN, TOP_BAR, Space
from ui.widgets.banner import Banner
from ui.widgets.elided_label import on_button
from ui.widgets.growing_edit import PAGE_KEYS, model_files
from ui.widgets.icon_button import IconButton
from ui.widgets.page_layout import Way, announce, ask_first, offer_ways

LIVE_MS = 100
KEEP_MS = 500  # typing ends before it is written down
NO_SPARK = tr("No small model is paired with this one.")
SEEING = "VL"  # a word in the names of many models that see images
HINT = tr("Enter sends  ·  Shift+Enter starts a new line")


class ChatPage(QWidget):
    """Shows the chat of a pane and passes on what the user does."""

    sidebar_wanted = Signal()
    panel_wanted = Signal()
    other_wanted = Signal()  # where two chats take turns in a narrow window
    close_wanted = Signal()
    wanted = Signal()  # this page, from another one: it is about to show its models
    find_wanted = Signal(str)  # a model of the Hub, by a word or none
    model_settings_wanted = Signal(str)
    model_dropped = Signal(str)  # a model file
    settings_shown = Signal(object)  # ChatSettings
    context_wanted = Signal(str, object, object)  # a model, its context in tokens (None: as usual), what to do then

    def __init__(self, pane: OpenChat, watch: ServerWatch, tools: TextTools, api: Api) -> None:
        super().__init__()
        self.setObjectName("canvas")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.pane, self._desk, self._watch, self._tools = pane, pane.desk, watch, tools
        self._conversation = pane.current
        self._api = api
        self._is_beside = pane is not pane.desk.panes[0]
        self._keep = QTimer(self, singleShot=True, interval=KEEP_MS)
        self.sidebar_button = IconButton("sidebar", tr("Show or hide the chats (Ctrl+B)"))
        self.panel_button = IconButton("panel", tr("Chat settings (Ctrl+.)"))
        self.other_button = IconButton("beside", tr("Show the other chat (F6)"))
        self.close_button = IconButton("close", tr("Close the chat beside (Ctrl+Shift+W)"))
        self.picker = ModelPicker()
        self.progress = QProgressBar()
        self.progress.setAccessibleName(tr("Loading of the model"))
        self.progress.setTextVisible(False)
        self.progress.setRange(0, 1000)
        self.server_banner = Banner()
        self._notice = ServerNotice(watch, self.server_banner, self)
        self.welcome = Welcome()
        self.transcript = Transcript(tools)
        self._unsent = pane.desk.unsent
        self.transcript.kept = self._unsent.texts
        self.transcript.lacks_model = self._lacks_model
        self.stack = QStackedWidget()
        self.composer = Composer()
        self.fit = ContextFit(api, watch, self.composer, pane.current, self)
        self.hint = QLabel(HINT)
        self._live = QTimer(self, interval=LIVE_MS)
        self.sending = Sending(api, self)
        self._stop = QShortcut(QKeySequence("Esc"), self, pane.stop)
        self._stop.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        self.setAcceptDrops(True)
        self.setFocusProxy(self.composer)
        self._lay_out()
        self._connect_signals()
        self._show_conversation(pane.current)
        self._unsent.read(self._on_unsent)
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
        bar.addWidget(self.other_button)
        bar.addWidget(self.panel_button)
        bar.addWidget(self.close_button)
        self.sidebar_button.setVisible(not self._is_beside)
        self.close_button.setVisible(self._is_beside)
        self.other_button.hide()
        self.stack.addWidget(self.welcome)
        self.stack.addWidget(self.transcript)
        self.stack.setMinimumHeight(1)  # in a low window it gives way before what is being written
        self.hint.setProperty("tone", "caption")
        self.hint.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._writing = fill(QVBoxLayout(), self.fit.banner, self.composer, spacing=Space.XS + 2)
        foot = self._foot = QGridLayout()
        foot.setContentsMargins(0, 0, 0, 0)
        # The hint stays in the middle, whatever is beside it.
        foot.setColumnStretch(0, 1)
        foot.setColumnStretch(2, 1)
        foot.addWidget(self.hint, 0, 1)
        foot.addWidget(self.fit.bar, 0, 2, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._writing.addLayout(foot)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(top)
        if self._is_beside:  # that of the first pane stands above all pages, which the server concerns too
            column.addWidget(self.server_banner)
        shown = QGridLayout()
        shown.addWidget(self.stack, 0, 0)
        shown.addWidget(self.progress, 0, 0, Qt.AlignmentFlag.AlignTop)  # over it, so that nothing jumps
        self.progress.raise_()
        column.addLayout(shown, 1)
        column.addLayout(self._writing)

    def _connect_signals(self) -> None:
        self.sidebar_button.clicked.connect(self.sidebar_wanted)
        self.panel_button.clicked.connect(self.panel_wanted)
        self.other_button.clicked.connect(self.other_wanted)
        self.close_button.clicked.connect(self.close_wanted)
        self.picker.chosen.connect(self.choose_model)
        self.picker.opened.connect(self._watch.look_at_models)
        self.picker.cancelled.connect(self._watch.cancel_load)
        self.picker.settings_wanted.connect(self.model_settings_wanted)
        self.picker.unload_wanted.connect(self._notice.unload)
        self.picker.find_wanted.connect(lambda: self.find_wanted.emit(""))
        self.welcome.tried.connect(lambda text: self._send(text, ()))
        self.composer.sent.connect(self._on_send)
        self.composer.field.textChanged.connect(self._keep.start)
        self.composer.shelf.changed.connect(self.keep_draft)
        self.composer.shelf.count = self.sending.count
        self.composer.shelf.why_blind = self._why_blind
        self.composer.shelf.sight_wanted.connect(self._offer_sight)
        self.sending.waits.connect(self._on_finding)
        self._keep.timeout.connect(self.keep_draft)
        self.composer.stopped.connect(self._on_stop)
        self.composer.speed.chosen.connect(self._on_speed_chosen)
        self.transcript.regenerate.connect(partial(self._do, ChatSession.regenerate))
        self.transcript.go_on.connect(partial(self._do, ChatSession.go_on))
        self.transcript.redo_in_full.connect(self._redo_in_full)
        self.transcript.ways_wanted.connect(self._on_ways_wanted)
        self.transcript.edited.connect(self._on_edited)
        self.transcript.written.connect(self._keep.start)
        self.transcript.chosen.connect(partial(self._do, ChatSession.choose))
        self.transcript.link_chosen.connect(self._ask_about_link)
        self.transcript.left.connect(self.composer.setFocus)
        self.pane.current_changed.connect(self._show_conversation)
        self.pane.path_changed.connect(self._on_path)
        self.pane.drafted.connect(partial(self._show, AssistantMessage.mark_drafted))
        self.pane.grew.connect(partial(self._show, AssistantMessage.append))
        self.pane.thought.connect(partial(self._show, AssistantMessage.append_thought))
        self.pane.calls_changed.connect(self.transcript.show_calls)
        self.transcript.call_answered.connect(partial(self._do, ChatSession.answer_call))
        self.pane.ended.connect(self._on_ended)
        self.pane.running_changed.connect(self._on_running)
        self.pane.running_changed.connect(self._on_asked)
        self._watch.state_changed.connect(self._on_state)
        self._watch.models_changed.connect(self.picker.set_models)
        self._watch.models_changed.connect(lambda models: self.composer.shelf.show_problem())
        self._watch.models_changed.connect(lambda models: self.transcript.show_ways())
        if not self._is_beside:  # the first pane tells of the server, the other one does not
            self._watch.load_failed.connect(self._notice.show_load_failed)
            self._watch.load_cancelled.connect(self._notice.show_load_cancelled)
            self._notice.other_wanted.connect(self.wanted)
            self._notice.other_wanted.connect(self.picker.open)
            self._notice.model_wanted.connect(self.choose_model)
            self._notice.usual_context_wanted.connect(lambda model: self._enlarge(model, None, lambda: None))
        for banner in (self.server_banner, self.fit.banner) if self._is_beside else (self.fit.banner,):
            banner.left.connect(self.composer.setFocus)
        self._live.timeout.connect(self._show_live)
        self.fit.other_wanted.connect(self.picker.open)
        self.fit.context_wanted.connect(self._enlarge)
        self.fit.settings_changed.connect(self.settings_shown)
        self.fit.summed_up.connect(self._on_summed_up)

    def _do(self, act: Callable[..., None], *wish: object) -> None:
        """Let the chat that is shown do what is wished for."""
        act(self._conversation, *wish)

    def _show(self, show: Callable[..., None], message_id: int, *what: object) -> None:
        """Show more of a growing reply, where it has a view."""
        if (view := self.transcript.reply(message_id)) is not None:
            show(view, *what)

    def change_settings(self, settings: ChatSettings) -> None:
        """Ask differently in this chat from the next message on."""
        self._conversation.change_settings(settings)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Take files anywhere on the page."""
        if files_in(event.mimeData()) or model_files(event.mimeData()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Attach the files, and hand on the models among them; of several the last one is loaded."""
        self.composer.take(event.mimeData())
        event.acceptProposedAction()
        self._desk.activate(self.pane)  # the model is for this chat
        self.composer.setFocus()
        for file in model_files(event.mimeData()):
            self.model_dropped.emit(file)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """What is typed while the keyboard is elsewhere on the page is a message too; whole pages are the chat's."""
        others = (
            Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier | Qt.KeyboardModifier.MetaModifier
        )
        if event.text().strip() and event.text().isprintable() and not event.modifiers() & others:
            self.composer.insert(event.text())
        elif event.key() in PAGE_KEYS:
            actions, is_up = QAbstractSlider.SliderAction, event.key() == Qt.Key.Key_PageUp
            step = actions.SliderPageStepSub if is_up else actions.SliderPageStepAdd
            self.transcript.verticalScrollBar().triggerAction(step)
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the field as wide as the text above it, and lower than the window."""
        super().resizeEvent(event)
        side = max(Space.L, (self.width() - COLUMN) // 2 - Space.M)
        is_low = self.height() < 480
        self._writing.setContentsMargins(side, Space.XS, side, Space.S if is_low else Space.M)
        beside = self.fit.bar.sizeHint().width() + self.hint.fontMetrics().horizontalAdvance(HINT) // 2 + Space.L
        self.hint.setVisible(not is_low and self.width() - 2 * side >= 2 * beside)
        # The field does not move when the bar comes.
        self._foot.setRowMinimumHeight(0, 0 if self.hint.isHidden() else self.fit.bar.sizeHint().height())
        self.composer.field.set_max_lines(max(3, self.height() // 60))
        self.picker.status.setVisible(self.width() >= 560)

    # The chat that is shown.

    def _show_conversation(self, conversation: ChatSession) -> None:
        if self.sending.is_waiting:
            self._on_stop()
        self.keep_draft()
        self._conversation = conversation
        self.fit.follow(conversation)
        self.composer.set_text(self._unsent.texts.get(self._draft_key, ""))
        self.picker.set_wanted(conversation.chat.settings.model)
        if conversation.chat.settings.model not in (None, self._watch.state.model):
            self._watch.look_at_models()  # it may be gone, or back
        key = self._draft_key
        self.composer.shelf.show_chat(key, self._unsent.files.get(key, ()), self._unsent.untold.pop(key, ""))
        self.welcome.set_toy(self.picker.is_toy)
        self.composer.speed.show_speed(conversation.chat.settings.speed)
        self.settings_shown.emit(conversation.chat.settings)
        self._show_spark()
        self._on_path()
        self._show_hit()
        self._on_running(conversation.is_running)
        if self._desk.active is self.pane:
            self.composer.setFocus()

    def keep_foot(self, is_kept: bool) -> None:
        """Reserve the line below the field even while it is empty, so that the fields of two chats stand level."""
        policy = self.fit.bar.sizePolicy()
        policy.setRetainSizeWhenHidden(is_kept)
        self.fit.bar.setSizePolicy(policy)

    @property
    def settings(self) -> ChatSettings:
        """How this chat asks."""
        return self._conversation.chat.settings

    def _show_hit(self) -> None:
        """Go to where a search met its words, on another branch where they are on none that is shown."""
        tree, words = self._conversation.tree, self._desk.words
        if not words:
            return
        hit = first_hit(tree.path, words)
        if hit is None and (other := first_hit(tree.messages, words)) is not None:
            hit = other
            self._conversation.choose(hit)
        if hit is not None:
            self.transcript.show_hit(hit, words)

    @property
    def _draft_key(self) -> int:
        return self.pane.new_key if self._conversation.is_new else self._conversation.chat.id

    def keep_draft(self) -> None:
        """Write down what was written in this chat and not sent, and say where it would not fit."""
        self._keep.stop()
        self.fit.show()
        key, text = self._draft_key, self.composer.text if self.composer.text.strip() else ""
        self.composer.shelf.key = key  # a chat that begins has another one than before
        self._unsent.keep_texts({key: text} | self.transcript.unsent)
        self._unsent.keep_files(key, self.composer.shelf.attachments)

    def look_for_drafts(self) -> None:
        """Show what was written and not sent, where more of that is there now."""
        self.keep_draft()
        self._unsent.read(self._on_unsent)

    def _on_unsent(self, texts: dict[int, str]) -> None:
        """Show what was written before the last start, above what was typed since."""
        kept, typed = texts.get(self._draft_key, ""), self.composer.text
        if kept != typed:
            self.composer.set_text("\n".join(part for part in (kept, typed) if part))
        if files := self._unsent.files.get(self._draft_key):
            self.composer.shelf.show_attachments(files)

    def _on_path(self) -> None:
        conversation = self._conversation
        self._unsent.keep_texts(self.transcript.unsent)  # their messages may go out of sight
        self.stack.setCurrentWidget(self.welcome if conversation.is_new else self.transcript)
        self.transcript.show_path(conversation.tree.path, conversation.tree.versions)
        self.fit.show()
        if (running := conversation.running) is not None:
            self._show(AssistantMessage.mark_drafted, running.message.id, running.drafted)
            self._show(AssistantMessage.show_running, running.message.id, running.text, running.thoughts)

    def _on_summed_up(self, text: str) -> None:
        self.pane.new_chat()
        self.composer.set_text(text + self.composer.text.strip())  # what waits there to be sent stays
        self.composer.setFocus()

    # What becomes of a message.

    def _ways_of_sent(self, asked: Message) -> list[Way]:
        """Return how less of the files of a message can be sent with it again."""
        files = asked.attachments
        again = partial(self._on_edited, asked.id, asked.content)

        def choose_pages(at: int) -> None:
            def chosen(sent: tuple[int, ...]) -> None:
                again((*files[:at], replace(files[at], choice=SentParts.PAGES, sent=sent), *files[at + 1 :]))

            dialog = PagesDialog(files[at], self.window())
            dialog.chosen.connect(chosen)
            dialog.open()

        return ways_of_files(files, lambda: again(tuple(one.in_passages() for one in files)), choose_pages)

    def _on_ways_wanted(self, message: Message, button: QWidget) -> None:
        if message.finish_reason != CONTEXT_FULL:
            names = [model.name for model in self._watch.models]
            others = [(on_button(name), partial(self._answer_by, name, message.id)) for name in names]
            name = (message.model or "").rpartition("/")[2]
            find = (tr("Look for it on the Hub…"), lambda: self.find_wanted.emit(name))
            again = (tr("Try again"), partial(self._conversation.regenerate, message.id))
            offer_ways([*others, *([find] if name else []), again], button, self)
            return
        question = message.parent_id
        sent = self.fit.sent(self._conversation.tree.path_to(question))
        ways = self.fit.ways(sent, "", (), partial(self._conversation.regenerate, message.id))
        if question is not None:
            ways = [*self._ways_of_sent(self._conversation.tree[question]), *ways]
        view = self.transcript.view_of(question) if question is not None else None
        if isinstance(view, UserMessage):
            ways.append((tr("Shorten the message"), view.begin_edit))
        offer_ways(ways, button, self)

    def _lacks_model(self, message: Message) -> bool:
        """Whether the model of a reply is known not to be here; those of other servers may be unlisted."""
        state, models = self._watch.state, self._watch.models
        name = message.model or state.model or ""
        is_remote = name.partition("/")[0] in state.remotes or state.phase in ("unknown", "gone")
        return bool(name and models) and not is_remote and all(model.name != name for model in models)

    def _answer_by(self, model: str, reply: int) -> None:
        self.choose_model(model)
        self._conversation.regenerate(reply)

    def _enlarge(self, model: str, n_ctx: int | None, then: Callable[[], object]) -> None:
        self._notice.enlarged = model if n_ctx is not None else ""
        self.fit.banner.hide()
        self.context_wanted.emit(model, n_ctx, then)

    def _on_send(self, text: str) -> None:
        files = self.composer.shelf.attachments
        if blind := self.composer.shelf.blind:
            self.composer.set_text(text)
            announce(self, blind)
            return
        room = self.fit.room_for(self.fit.sent(self._conversation.tree.path), text, files)
        self.sending.prepare(files, text, room, self._embedder(), lambda ready: self._send(text, ready))

    def _on_edited(self, message_id: int, text: str, files: tuple[Attachment, ...] | None = None) -> None:
        """Send a message again, with other ``files`` where they are given; passages of them are chosen anew."""
        message = self._conversation.tree[message_id]
        files = message.attachments if files is None else files
        before = self.fit.sent(self._conversation.tree.path_to(message.parent_id))
        room = self.fit.room_for(before, text, files)

        def done(ready: tuple[Attachment, ...]) -> None:
            if (view := self.transcript.view_of(message_id)) is not None and (text.strip() or ready):
                view.leave_editor()
            self._conversation.edit(message_id, text, ready)

        self.sending.prepare(files, text, room, self._embedder(), done)

    def _embedder(self) -> str | None:
        """The model of this machine that gives vectors and nothing else, None where there is none."""
        can = {model.name: model.can or () for model in self._watch.models if model.remote is None}
        return next((name for name, what in can.items() if "embedding" in what and "completion" not in what), None)

    def _why_blind(self) -> str:
        """Why the model of this chat takes no images; "" where it does, or where nobody knows."""
        name = self.picker.shown_model
        can = next((model.can for model in self._watch.models if model.name == name), None)
        if can is None or "vision" in can:
            return ""
        return tr("{name} cannot see images: remove them to send the message.", name=name)

    def _offer_sight(self, button: QWidget) -> None:
        """Offer the models that see images, and to find one."""
        names = [model.name for model in self._watch.models if "vision" in (model.can or ())]
        ways: list[Way] = [(on_button(name), partial(self.choose_model, name)) for name in names]
        offer_ways([*ways, (tr("Find one on the Hub…"), lambda: self.find_wanted.emit(SEEING))], button, self)

    def _on_finding(self, share: float | None) -> None:
        """Show that passages are looked for; the button stops that."""
        is_waiting = share is not None
        self.composer.set_running(is_waiting or self._conversation.is_running)
        self._show_spark()
        if share is not None:
            self.hint.setText(tr("Choosing the passages that fit the question…  {share:.0%}", share=share))

    def _on_stop(self) -> None:
        if self.sending.is_waiting:
            text = self.sending.text
            self.sending.cancel()
            self.composer.set_text(text)
        else:
            self._conversation.stop()

    def _send(self, text: str, files: tuple[Attachment, ...]) -> None:
        # What is sent is kept as a message: first that, then the draft is gone.
        was = self._draft_key
        self._conversation.send(text, files)
        self.composer.shelf.show_attachments(())
        if was != self._draft_key:
            self._unsent.keep_texts({was: ""})
            self._unsent.keep_files(was, ())
        self.keep_draft()
        self.composer.setFocus()

    def _redo_in_full(self, message_id: int) -> None:
        self._conversation.regenerate(message_id, Speed.STANDARD)

    def _on_ended(self, message: Message) -> None:
        self.fit.show()
        self.transcript.show_ended(message)
        if message.status is Status.DONE:
            self.picker.set_answered()
        elif message.finish_reason == MODEL_GONE:
            self._watch.look_at_models()

    def _on_running(self, is_running: bool) -> None:
        self.composer.set_running(is_running)
        self._stop.setEnabled(is_running)  # otherwise Escape belongs to whatever has the keyboard
        self.picker.set_asked(is_running)
        if is_running:
            self._live.start()
            self._show_live()
        else:
            self._live.stop()

    def _on_asked(self, is_running: bool) -> None:
        """Load the model of an older chat, which answers here again, as if it had been chosen: it has been."""
        name = self._conversation.chat.settings.model
        is_here = any(model.name == name and model.remote is None for model in self._watch.models)
        if is_running and is_here and name is not None and name != self._watch.state.model and not self._is_beside:
            self._watch.load(name)

    def _show_live(self) -> None:
        running, now = self._conversation.running, time.monotonic()
        if running is None:
            return
        self.fit.show_growing()
        if running.ttft is not None:
            self.picker.set_answered()
        if (view := self.transcript.reply(running.message.id)) is None:
            return
        rate, wait = running.rate.per_second(now), now - running.began
        view.show_live(rate, running.ttft, wait, self._what_it_waits_for(), running.progress, running.stream.read)
        view.show_thinking(running.thinking(now), is_over=not running.is_thinking)
        view.show_answered_by(running.stream.answered_by)

    def _what_it_waits_for(self) -> str:
        if self.picker.is_loading:
            return tr("Loading the model…")
        waits = {"unknown": tr("Starting the engine…"), "restarting": tr("Starting again…")}
        return waits.get(self._watch.state.phase, "")

    # The server.

    def _on_state(self, state: ServerState) -> None:
        self.picker.set_state(state)
        self.composer.shelf.show_problem()
        self.welcome.set_toy(self.picker.is_toy)
        self._show_spark()
        self.transcript.show_ways()  # what other servers there are is known now
        self.fit.show()
        if state.phase == "ready":
            self.composer.shelf.count_again()
            self.begin_instructions()
        is_busy = state.phase in ("unknown", "loading", "restarting")
        self.progress.setRange(0, 1000 if 0 < state.progress < 1 else 0)
        self.progress.setValue(round(state.progress * 1000))
        self.progress.setVisible(is_busy)
        if not self._is_beside:
            self._notice.show_state(state)

    def _show_spark(self) -> None:
        """Say where no small model can answer; of a model that is not loaded that is not known."""
        state, wanted = self._watch.state, self._conversation.chat.settings.model
        is_known = state.phase == "ready" and wanted in (None, state.model)
        problem = (state.why_no_spark or NO_SPARK) if is_known and not state.spark else ""
        self.composer.speed.set_no_spark(problem)
        is_stuck = problem and self._conversation.chat.settings.speed is Speed.SPARK
        self.hint.setText(tr("Spark cannot answer: {problem}", problem=problem) if is_stuck else HINT)

    def begin_instructions(self) -> None:
        """Give a chat that has not begun the instructions of its model."""
        was = self._conversation.chat.settings
        settings = self.pane.with_instructions(was) if self._conversation.is_new else was
        if settings != was:
            self._conversation.change_settings(settings)
            self.settings_shown.emit(settings)

    def choose_speed(self, speed: Speed) -> None:
        """Let this chat ask at another speed."""
        settings = replace(self._conversation.chat.settings, speed=speed)
        self._conversation.change_settings(settings)
        self.composer.speed.show_speed(speed)
        self.settings_shown.emit(settings)
        self._show_spark()

    def _on_speed_chosen(self, speed: Speed) -> None:
        self.choose_speed(speed)
        self.composer.setFocus()

    def choose_model(self, name: str) -> None:
        """Let this chat ask for a model, and load it where it is one of this machine."""
        settings = replace(self._conversation.chat.settings, model=name)
        self._conversation.change_settings(settings)
        self.picker.set_wanted(name)
        self.composer.shelf.show_problem()
        self.welcome.set_toy(self.picker.is_toy)
        self.settings_shown.emit(settings)
        self.begin_instructions()
        self._show_spark()
        # Beside another chat the model is loaded with the next message, next to the other one where memory holds both.
        if name != self._watch.state.model and self.picker.remote is None and not self._is_beside:
            self._watch.load(name)

    # Links.

    def _ask_about_link(self, address: str) -> None:
        url = QUrl(address)
        if url.scheme() not in ("http", "https", "mailto"):
            return
        question = tr("Open this link in your browser?")
        ask_first(self, question, url.toDisplayString(), tr("Open"), lambda: self._open_link(url), by_enter=True)

    def _open_link(self, url: QUrl) -> None:
        if not QDesktopServices.openUrl(url):
            address = url.toString()
            copy = (tr("Copy the address"), lambda: QGuiApplication.clipboard().setText(address))
            self.server_banner.say(tr("No program here opens {address}.", address=address), action=copy)
