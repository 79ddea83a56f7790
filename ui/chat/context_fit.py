"""What of a chat fits into the context of its model: how much it takes, what would not fit, and what makes room."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from ui.chat.attachments.chip import short
from ui.chat.attachments.sending import files_that_count
from ui.chat.composer import Composer
from ui.chat.context_bar import ContextBar
from ui.chat.context_use import (
    ContextUse,
    draft_tokens,
    is_cut_by_context,
    larger_context,
    later_start,
    sent_of,
    tokens_in,
    used_by,
)
from ui.chat.conversation import ChatSession
from ui.chat.messages.assistant_message import FIT
from ui.chat.summary import Summary
from ui.client.api import Api
from ui.client.attachments import FOUND, Attachment
from ui.client.chat_records import Message, Role
from ui.client.server_watch import ServerWatch
from ui.language import tr
from ui.widgets.banner import Banner
from ui.widgets.page_layout import Way, offer_ways

# Of the context, for passages of attached files: the rest is for the chat before them and for the reply.
PASSAGES_SHARE = 0.6
LEAST_PASSAGES = 256  # tokens, where a chat has filled its context already
USUAL_CONTEXT = 4_096  # tokens, until a model is loaded
LARGER = tr("Load the model with")


class ContextFit(QObject):
    """Shows in a ``bar`` how much of the context a chat takes, and says in a ``banner`` what would not fit."""

    other_wanted = Signal()  # another model
    context_wanted = Signal(str, object, object)  # a model, its context in tokens, what to do then
    settings_changed = Signal(object)  # ChatSettings
    summed_up = Signal(str)  # a summary of the chat, with which another one can begin

    def __init__(self, api: Api, watch: ServerWatch, composer: Composer, session: ChatSession, parent: QWidget) -> None:
        """``composer`` has the message that is being written; ``parent`` is the page of the chat."""
        super().__init__(parent)
        self.bar, self.banner = ContextBar(), Banner()
        self.banner.setProperty("floats", True)
        self._api, self._watch, self._composer, self._session, self._page = api, watch, composer, session, parent
        self._counted: tuple[str, int] = ("", 0)  # a text that was being written, and its tokens
        self._summary = Summary(api, self)
        self._is_summing_up = False
        self.bar.clicked.connect(lambda: self._offer_room(self.bar))
        self._summary.done.connect(self._on_summary)
        self._summary.failed.connect(self._on_no_summary)

    def follow(self, session: ChatSession) -> None:
        """Be about this chat from now on."""
        self._summary.cancel()
        self._is_summing_up = False
        self._session = session

    @property
    def n_ctx(self) -> int:
        """Tokens of the context that this chat gets; 0 where its model is not loaded."""
        state, wanted = self._watch.state, self._session.chat.settings.model
        return state.n_ctx or 0 if state.phase == "ready" and wanted in (None, state.model) else 0

    def sent(self, path: list[Message]) -> list[Message]:
        """Return what of a path is sent."""
        return sent_of(path, self._session.chat.settings.begins_at)

    def room_for(self, before: list[Message], text: str, files: tuple[Attachment, ...]) -> int:
        """Return the tokens that passages of files may take; a part of the context stays free for the reply."""
        others = tuple(one for one in files if one.choice not in FOUND)
        n_passages = round((self.n_ctx or USUAL_CONTEXT) * PASSAGES_SHARE)
        return max(LEAST_PASSAGES, n_passages - tokens_in(before, text, others))

    def show(self) -> None:
        """Say before it is sent that a message would not be answered."""
        n_ctx, text, files, sent = self.n_ctx, *self._written
        self._session.n_ctx = n_ctx
        use = self._use(sent, text, files)
        self.bar.show_use(use)
        if self._is_summing_up:
            return
        n_tokens = use.n_used + use.n_draft if text or files else 0
        if not n_ctx or n_tokens < n_ctx:
            self._show_cut(use, sent)
            return
        words = tr(
            "About {n_tokens:,} tokens with this message; the model's context holds {n_ctx:,}.",
            n_tokens=n_tokens,
            n_ctx=n_ctx,
        )
        ways = [*self._ways_of_attached(), *self.ways(sent, text, files, lambda: None)]
        if ways:
            make_room = (FIT, lambda: offer_ways(ways, self.banner.action, self._page))
            self.banner.say(words, "warning", make_room, can_close=False)
            return
        shorten = tr(" Shorten it, or choose a model with a larger context.")
        other = (tr("Choose another model"), self.other_wanted.emit)
        self.banner.say(words + shorten, "warning", other, can_close=False)

    def _show_cut(self, use: ContextUse, sent: list[Message]) -> None:
        """Say that the last reply was cut where the context ends, until there is more of it."""
        reply = sent[-1] if sent else None
        if reply is None or not use.is_nearly_full or not is_cut_by_context(reply):
            self.banner.hide()
            return
        words = tr("The reply was cut: the model's context of {n_ctx:,} tokens is full.", n_ctx=use.n_ctx)
        go_on = partial(self._session.go_on, reply.id)
        make_room = (FIT, lambda: self._offer_room(self.banner.action, go_on))
        self.banner.say(words, "warning", make_room, can_close=False)

    def show_growing(self) -> None:
        """Count a reply that comes in, as far as it is."""
        use, n_used = self.bar.use, self._n_growing
        if use.n_ctx and n_used and n_used != use.n_used:
            self.bar.show_use(replace(use, n_used=n_used))

    def ways(
        self, sent: list[Message], text: str, files: tuple[Attachment, ...], then: Callable[[], object]
    ) -> list[Way]:
        """Return what makes the messages fit; ``then`` follows."""
        state, n_ctx = self._watch.state, self.n_ctx
        ways = list[Way]()
        if not n_ctx:
            return ways
        wanted = larger_context(tokens_in(sent, text, files), n_ctx, state.n_ctx_train or 0)
        if wanted is not None:
            ways.append(self._larger(wanted, then))
        start = later_start(sent, text, n_ctx)
        left = [message for message in sent if message.id >= start]
        if len(left) < len(sent) and tokens_in(left, text, files) < n_ctx:
            ways.append((tr("Leave out earlier messages"), lambda: self._begin_at(start, then)))
        return ways

    @property
    def _written(self) -> tuple[str, tuple[Attachment, ...], list[Message]]:
        """The message that is being written: its text, its files, and what is sent before it."""
        return self._composer.text.strip(), self._composer.shelf.attachments, self.sent(self._session.tree.path)

    @property
    def _n_growing(self) -> int:
        """Tokens of the chat with a reply that comes in, as the server counts them; 0 where it does not."""
        running = self._session.running
        return running.stream.n_in_context if running is not None else 0

    def _use(self, sent: list[Message], text: str, files: tuple[Attachment, ...]) -> ContextUse:
        n_ctx = self.n_ctx
        if not n_ctx:
            return ContextUse()
        n_used, is_counted = (self._n_growing, True) if self._n_growing else used_by(sent)
        if not (text or files):
            return ContextUse(n_used, 0, n_ctx, not is_counted)
        if text == self._counted[0] and not files:
            return ContextUse(n_used, draft_tokens(self._counted[1]), n_ctx, not is_counted)
        n_draft = tokens_in(sent, text, files_that_count(files)) - tokens_in(sent)
        if text != self._counted[0]:
            self._api.count_tokens(text, lambda n_tokens: self._on_counted(text, n_tokens), lambda problem: None)
        return ContextUse(n_used, n_draft, n_ctx, is_estimate=True)

    def _on_counted(self, text: str, n_tokens: int) -> None:
        self._counted = text, n_tokens
        if text == self._composer.text.strip():
            self.show()

    def _offer_room(self, button: QWidget, then: Callable[[], object] = lambda: None) -> None:
        """Offer what makes room; ``then`` follows."""
        text, files, sent = self._written
        ways = self.ways(sent, text, files, then)
        n_ctx = self.n_ctx
        larger = min(2 * n_ctx, self._watch.state.n_ctx_train or 0)
        if larger > n_ctx and not any(words.startswith(LARGER) for words, _ in ways):
            ways.append(self._larger(larger, then))
        if any(message.role is Role.ASSISTANT for message in sent) and not self._session.is_running:
            ways.append((tr("Start a new chat with a summary of this one"), self._sum_up))
        nothing = tr("There is room enough, and this model's context cannot be larger")
        offer_ways(ways, button, self._page, nothing)

    def _larger(self, n_ctx: int, then: Callable[[], object]) -> Way:
        model = self._watch.state.model or ""
        words = tr("{LARGER} {wanted:,} tokens of context", LARGER=LARGER, wanted=n_ctx)
        return words, lambda: self.context_wanted.emit(model, n_ctx, then)

    def _ways_of_attached(self) -> list[Way]:
        """Return how less of the attached files can be sent."""
        shelf = self._composer.shelf
        chips = [chip for chip in shelf.chips if chip.attachment is not None]
        return ways_of_files(shelf.attachments, shelf.choose_passages, lambda at: shelf.choose_pages(chips[at]))

    def _begin_at(self, message_id: int, then: Callable[[], object]) -> None:
        settings = replace(self._session.chat.settings, begins_at=message_id)
        self._session.change_settings(settings)
        self.settings_changed.emit(settings)
        self.show()
        then()

    def _sum_up(self) -> None:
        self._is_summing_up = True
        cancel = (tr("Cancel"), self._leave_summary)
        self.banner.say(tr("Writing a summary of this chat…"), "plain", cancel, can_close=False)
        self._summary.begin(self._session.chat.settings, self.sent(self._session.tree.path), self.n_ctx)

    def _leave_summary(self) -> None:
        self._summary.cancel()
        self._is_summing_up = False
        self.show()

    def _on_summary(self, text: str) -> None:
        self._leave_summary()
        self.summed_up.emit(text)

    def _on_no_summary(self, problem: str) -> None:
        self._is_summing_up = False
        again = (tr("Try again"), self._sum_up)
        self.banner.say(tr("There is no summary: {problem}", problem=problem), "danger", again)


def ways_of_files(
    files: Sequence[Attachment], send_passages: Callable[[], object], choose_pages: Callable[[int], object]
) -> list[Way]:
    """Return how less of long files can be sent; ``choose_pages`` is given the place of a file."""
    long = [at for at, one in enumerate(files) if one.is_long]
    ways = list[Way]()
    if any(files[at].choice not in FOUND for at in long):
        ways.append((tr("Send the passages that fit the question"), send_passages))
    ways += [
        (tr("Choose what to send of {name}…", name=short(files[at].name, 40)), partial(choose_pages, at)) for at in long
    ]
    return ways
