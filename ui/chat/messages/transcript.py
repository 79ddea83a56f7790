"""The messages of a chat, newest at the bottom; widgets of older ones are made when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from PySide6.QtCore import QPoint, QTimer, Signal
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QApplication, QVBoxLayout, QWidget

from ui.chat.markdown.text_tools import TextTools
from ui.chat.messages.assistant_message import AssistantMessage
from ui.chat.messages.message_view import MessageView
from ui.chat.messages.user_message import UserMessage
from ui.chat.storage.search_hit import hit_spans
from ui.client.chat_records import Message, Role, Status
from ui.language import tr
from ui.platform.display import give_back_memory
from ui.theme.tokens import COLUMN, Space
from ui.widgets.icon_button import IconButton
from ui.widgets.page_layout import ScrollColumn, lay_out

PAGE = 16  # messages that are made, one by one
_LAYERS = 4  # layouts within each other, from a receipt's facts to the transcript
NEAR_TOP = 300  # pixels from the top at which older messages are fetched


_View = TypeVar("_View", bound=MessageView)


class Transcript(ScrollColumn):
    """Shows a path of messages and stays at its end, unless the user scrolled away."""

    regenerate = Signal(object)
    go_on = Signal(object)
    redo_in_full = Signal(object)
    ways_wanted = Signal(object, object)
    race_wanted = Signal(object)
    tint_wanted = Signal(bool)
    edited = Signal(object, str)
    written = Signal()  # in the place of a message
    chosen = Signal(object)
    call_answered = Signal(str, bool, bool)  # the id of a call, is it allowed, for good
    link_chosen = Signal(str)
    left = Signal()  # a message went away with the keyboard in it

    def __init__(self, tools: TextTools) -> None:
        body = QWidget()
        super().__init__(body)
        self._tools = tools
        self.kept: Mapping[int, str] = {}  # by message what was written in its place and not sent
        self.lacks_model: Callable[[Message], bool] = lambda message: False
        self._path: list[Message] = []
        self._views: dict[int, MessageView] = {}
        self._gone: list[MessageView] = []  # shown no more, and still there
        self._unstyled: list[int] = []  # messages out of sight that have the style of before, the nearest last
        self._n_made = 0  # messages at the end of the path that have a view
        self._n_wanted = 0
        self._versions_of: Callable[[int], list[int]] = lambda message_id: [message_id]
        self._is_following = True
        self._is_adding_above = False
        self._last_maximum = 0
        # Where a search met its words, until the user scrolls.
        self._hit: MessageView | None = None
        self.setAccessibleName(tr("Conversation"))
        self._column = QVBoxLayout(body)
        self._column.setSpacing(Space.L + Space.XS)
        self._column.addStretch()
        self.to_end = IconButton("bottom", tr("Go to the latest message"), self)
        self.to_end.setProperty("kind", "round")
        self.to_end.clicked.connect(self.go_to_end)
        self.to_end.hide()
        self._more_timer = QTimer(self, interval=0)
        self._more_timer.timeout.connect(self._make_one)
        QApplication.instance().focusChanged.connect(self._on_focus)  # type: ignore[union-attr]  # no widget without

    def view_of(self, message_id: int) -> MessageView | None:
        """Return the view of a message, None where none was made yet."""
        return self._views.get(message_id)

    @property
    def unsent(self) -> dict[int, str]:
        """By message what is written in its place and not sent, "" where nothing is."""
        return {message_id: view.unsent for message_id, view in self._views.items()}

    def show_path(self, path: Sequence[Message], versions_of: Callable[[int], list[int]]) -> None:
        """Show another path; what it shares with the one before stays."""
        kept = _shared_length(self._path, path)
        self._versions_of = versions_of
        for message in path[:kept]:
            if message.id in self._views:
                self._views[message.id].message = message
        removed = self._path[kept:]
        if kept == 0 or len(removed) > self._n_made:
            self._clear()
            kept = 0
        else:
            for message in removed:
                self._remove(message.id)
        self._n_made = 0 if kept == 0 else self._n_made - len(removed)
        self._path = list(path)
        n_new = len(path) - kept
        if kept:
            for message in path[kept:]:
                view = self._make(message)
                self._column.insertWidget(self._column.count() - 1, view)
                self._place(view)
            self._n_made += n_new
        self._n_wanted = max(self._n_made, PAGE)
        if kept == 0:
            self._make_one()  # of a long one more would be a stall
        self._more_timer.start()
        self._mark_last()
        self.go_to_end()

    def reply(self, message_id: int) -> AssistantMessage | None:
        """Return the view of a reply, None where none was made yet."""
        view = self._views.get(message_id)
        return view if isinstance(view, AssistantMessage) else None

    def show_calls(self, message: Message) -> None:
        """Show how far the calls of tools in a growing reply are."""
        self._path = [message if known.id == message.id else known for known in self._path]
        if (view := self.reply(message.id)) is not None:
            view.show_calls(message)

    def show_ended(self, message: Message) -> None:
        """Show how a reply ended."""
        self._path = [message if known.id == message.id else known for known in self._path]
        if (view := self.reply(message.id)) is not None:
            view.show_ended(message)

    # What the keyboard does with the last messages, while they are shown.

    def answer_again(self) -> None:
        """Ask for another version of the last reply."""
        if (reply := self._last(AssistantMessage)) is not None:
            self.regenerate.emit(reply.message.id)

    def continue_last(self) -> None:
        """Ask for the rest of the last reply, where it was cut."""
        if (reply := self._last(AssistantMessage)) is not None:
            reply.continue_it()

    def edit_last(self) -> None:
        """Edit what was said last."""
        if (asked := self._last(UserMessage)) is not None:
            field = asked.begin_edit()
            QTimer.singleShot(0, field, lambda: self.ensureWidgetVisible(field))  # it may have been scrolled away

    def step_version(self, by: int) -> None:
        """Show another version of the last message that has some."""
        views = [self._views.get(message.id) for message in reversed(self._path) if self.isVisible()]
        several = next((view.versions for view in views if view is not None and view.versions is not None), None)
        if several is not None:
            several.step(by)

    def _last(self, kind: type[_View]) -> _View | None:
        views = [self._views.get(message.id) for message in reversed(self._path[-2:]) if self.isVisible()]
        return next((view for view in views if isinstance(view, kind)), None)

    def show_ways(self) -> None:
        """Offer in replies that failed what helps now: their models may be gone, or back."""
        for view in self._views.values():
            if isinstance(view, AssistantMessage):
                view.show_way()

    def restyle(self) -> None:
        """Follow a change of the tools' style: what is in sight at once, the rest one by one."""
        sight = self.viewport().rect().translated(0, self.verticalScrollBar().value())
        self._unstyled = []
        for view in sorted(self._views.values(), key=lambda view: -abs(view.y() - sight.y())):
            if view.geometry().intersects(sight):
                view.restyle()
            else:
                self._unstyled.append(view.message.id)
        self._more_timer.start()

    def show_hit(self, message_id: int, words: str) -> None:
        """Scroll to a message and mark the words in it."""
        if all(message.id != message_id for message in self._path):
            return
        while message_id not in self._views:
            self._n_wanted = self._n_made + 1
            self._make_one()
        self._is_following = False
        self._hit = self._views[message_id]
        self._hit.mark(partial(hit_spans, words=words))
        # Where it is, the layout says later, and again while messages above it are made.
        QTimer.singleShot(0, self._hit, self._go_to_hit)

    def forget_hit(self) -> None:
        """Mark nothing any more."""
        self._hit = None
        for view in self._views.values():
            view.mark(None)

    def go_to_end(self) -> None:
        """Scroll to the end and stay there."""
        self._is_following, self._hit = True, None
        self._forget_old()
        self.verticalScrollBar().setValue(self.verticalScrollBar().maximum())
        self.to_end.hide()

    def showEvent(self, event: QShowEvent) -> None:
        """Place the messages that were made out of sight."""
        super().showEvent(event)
        lay_out()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the column in the middle and readable."""
        self.centre(self._column, COLUMN, Space.XL)
        super().resizeEvent(event)
        self.to_end.move((self.width() - self.to_end.width()) // 2, self.height() - self.to_end.height() - Space.S)

    # Making views.

    def _clear(self) -> None:
        self._more_timer.stop()
        for message_id in list(self._views):
            self._remove(message_id)

    def _remove(self, message_id: int) -> None:
        view = self._views.pop(message_id)
        had_keyboard = _message_around(self.window().focusWidget()) is view
        self._column.removeWidget(view)
        view.hide()
        self._gone.append(view)
        if had_keyboard:
            self.left.emit()

    def _forget_old(self) -> None:
        """Do without views of what was read far above the end: another width or theme takes a moment for each."""
        if self._n_made <= 4 * PAGE:
            return
        for message in self._path[-self._n_made : -2 * PAGE]:
            if self._views[message.id].editor is not None or self.kept.get(message.id):  # one that was left just now
                break
            self._remove(message.id)
            self._n_made -= 1
        self._n_wanted = self._n_made
        self._more_timer.start()

    def _make_one(self) -> None:
        """Make the newest message that has no view yet; where enough have one, restyle or delete one."""
        at = len(self._path) - self._n_made - 1
        if at < 0 or self._n_made >= self._n_wanted:
            (self._restyle_one if self._unstyled else self._delete_one)()
            return
        self._is_adding_above = True
        view = self._make(self._path[at])
        self._column.insertWidget(0, view)
        view.lower()  # a screen reader goes by that order
        self._n_made += 1
        self._place(view)

    def _restyle_one(self) -> None:
        view = self._views.get(self._unstyled.pop())
        if view is None:
            return
        self._is_adding_above = view.y() < self.verticalScrollBar().value()  # it may be higher or lower now
        view.restyle()
        lay_out(_LAYERS)
        self._is_adding_above = False

    def _delete_one(self) -> None:
        if not self._gone:
            self._more_timer.stop()
            return
        self._gone.pop().deleteLater()  # those of a long chat in one go would be a stall
        if len(self._gone) % PAGE == 0:
            give_back_memory()

    def _place(self, view: MessageView) -> None:
        """Give a message its height before it is painted: that follows from the width, which the layout gives first."""
        view.show()
        lay_out()

    def _make(self, message: Message) -> MessageView:
        versions = self._versions_of(message.id)
        view: MessageView
        if message.role is Role.USER:
            view = UserMessage(message, versions, self._tools)
        else:
            assistant = AssistantMessage(message, versions, self._tools)
            assistant.regenerate.connect(self.regenerate)
            assistant.go_on.connect(self.go_on)
            assistant.redo_in_full.connect(self.redo_in_full)
            assistant.ways_wanted.connect(self.ways_wanted)
            assistant.race_wanted.connect(self.race_wanted)
            assistant.tint_wanted.connect(self.tint_wanted)
            assistant.calls.answered.connect(self.call_answered)
            assistant.lacks_model = self.lacks_model
            assistant.receipt.toggled.connect(self._on_receipt)
            if message.status is not Status.STREAMING:
                assistant.show_ended(message)
            view = assistant
        if kept := self.kept.get(message.id):
            view.go_on_editing(kept)
        view.edited.connect(self.edited)
        view.written.connect(self.written)
        view.chosen.connect(self.chosen)
        view.link_chosen.connect(self.link_chosen)
        view.unfolded.connect(self._on_unfolded)
        self._views[message.id] = view
        return view

    def _mark_last(self) -> None:
        last = self._path[-1].id if self._path else None
        for message_id, view in self._views.items():
            view.set_last(message_id == last)

    # Scrolling.

    def _go_to_hit(self) -> None:
        hit = self._hit
        if hit is not None:
            view = next((text for text in hit.text_views if text.extraSelections()), hit.text_views[-1])
            top = view.mapTo(self.widget() or view, QPoint(0, view.go_to_first_mark())).y()
            self.verticalScrollBar().setValue(top - self.viewport().height() // 3)
            self._hit, self._is_following = hit, False  # that was no scrolling of the user's

    def _on_range(self, minimum: int, maximum: int) -> None:
        bar, scrolled_away = self.verticalScrollBar(), self._scrolled_away
        if self._is_following:
            bar.setValue(maximum)
            if self._path and self._path[-1].status is not Status.STREAMING:
                self._show_focused(scrolled_away)
                self._is_following = bar.value() >= maximum - Space.L
        elif self._hit is not None:
            self._last_maximum = maximum
            self._go_to_hit()
        elif self._is_adding_above:
            bar.setValue(bar.value() + maximum - self._last_maximum)
        else:
            self._is_following = bar.value() >= maximum  # what was unfolded is folded again
            self._show_focused(scrolled_away)
        self._is_adding_above = False
        self._last_maximum = maximum
        self._show_to_end()

    def _on_value(self, value: int) -> None:
        super()._on_value(value)
        bar = self.verticalScrollBar()
        if bar.maximum() == self._last_maximum:
            self._hit = None
            self._is_following = value >= bar.maximum() - Space.L
        if value < NEAR_TOP and self._n_wanted <= self._n_made < len(self._path):
            self._n_wanted = self._n_made + PAGE
            self._more_timer.start()
        self._show_to_end()

    def _on_receipt(self, is_open: bool) -> None:
        """Give a receipt its height before it is painted: else it is seen once, squeezed into the room there was."""
        lay_out(_LAYERS)

    def _on_unfolded(self, is_open: bool) -> None:
        """Stay where something was unfolded: at the end it would be out of sight. What comes in is followed."""
        if is_open and self._path[-1].status is not Status.STREAMING:
            self._is_following = False

    def _show_to_end(self) -> None:
        bar = self.verticalScrollBar()
        # Near the end the button would cover as much as it shows.
        is_far = bar.maximum() - bar.value() > self.to_end.height() + Space.S
        self.to_end.setVisible(not self._is_following and is_far)

    def _on_focus(self, old: QWidget | None, new: QWidget | None) -> None:
        # Within a message the keyboard does not leave it: what goes away for a moment would lose it.
        for view, has_focus in {_message_around(old): False, _message_around(new): True}.items():
            if view is not None and view.message.id in self._views:
                QTimer.singleShot(0, view, partial(view.set_attention, has_focus or view.underMouse()))


def _shared_length(first: Sequence[Message], second: Sequence[Message]) -> int:
    pairs = zip(first, second, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a.id != b.id), min(len(first), len(second)))


def _message_around(widget: QWidget | None) -> MessageView | None:
    while widget is not None and not isinstance(widget, MessageView):
        widget = widget.parentWidget()
    return widget
