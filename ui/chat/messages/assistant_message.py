"""What the model said: its text, how it went, and the receipt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeVar

from PySide6.QtCore import Signal
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QWidget

from models.formatting.figures import milliseconds, percent, speed
from models.formatting.safe_text import one_line
from ui.chat.markdown.draft_tint import spans_from
from ui.chat.markdown.markdown_view import MarkdownView
from ui.chat.markdown.text_tools import TextTools
from ui.chat.markdown.text_view import TextView
from ui.chat.messages.deep_stages import DeepStages
from ui.chat.messages.message_editor import MessageEditor
from ui.chat.messages.message_view import MessageView, opening
from ui.chat.messages.receipt_view import ReceiptCard, ReceiptLine
from ui.chat.messages.receipts import CONTEXT_FULL, failure_of, receipt
from ui.chat.messages.thoughts_view import THINKING, ThoughtsView
from ui.chat.tools.calls_view import CallsView
from ui.client.chat_records import EDITED, Message, Status
from ui.client.problems import MODEL_GONE
from ui.client.speeds import DeepProgress, PromptProgress, deep_progress
from ui.language import dotted, tr
from ui.theme.colours import Dressed, colours
from ui.theme.icons import pixmap
from ui.theme.layouts import fill
from ui.theme.tokens import Space
from ui.widgets.flow_layout import FoldingRow
from ui.widgets.icon_button import IconButton
from ui.widgets.page_layout import announce, plain_label

FIT = tr("Make it fit…")
# What is offered where the same again would be refused again.
_WAYS = {CONTEXT_FULL: FIT, MODEL_GONE: tr("Choose another model")}
ICON = 18
PATIENCE = 0.7  # seconds of silence until the view says what is going on
_Part = TypeVar("_Part", bound=QWidget)


class AssistantMessage(MessageView):
    """A reply, growing or ended."""

    regenerate = Signal(object)
    go_on = Signal(object)  # the reply is to be continued
    ways_wanted = Signal(object, object)  # the message, and the button to show the ways at
    race_wanted = Signal(object)  # the reply whose prompt is to be raced
    tint_wanted = Signal(bool)  # drafted words are to be tinted, in all replies
    redo_in_full = Signal(object)  # the full model is to answer in place of the small one

    def __init__(self, message: Message, versions: list[int], tools: TextTools) -> None:
        super().__init__(message, versions, tools)
        self.setAccessibleName(tr("The model said"))
        self.view = MarkdownView(tools)
        self.view.setAccessibleName(tr("Reply"))
        self.view.link_chosen.connect(self.link_chosen)
        self.view.grown.connect(self._tell_paragraphs)
        self._told: int | None = None  # up to where in the document a growing reply was read out
        self._waits_for = ""
        self.lacks_model: Callable[[Message], bool] = lambda message: False  # it is not here any more
        self.calls = CallsView(tools)
        self.calls.link_chosen.connect(self.link_chosen)
        self.calls.unfolded.connect(self.unfolded)
        self.receipt = ReceiptLine()
        self.receipt.toggled.connect(self._on_receipt)
        self.receipt_card: ReceiptCard | None = None  # made when it is first opened
        self.redo = IconButton("redo", tr("Answer again"), size=16)
        self.redo.setToolTip(tr("Answer again (Ctrl+R)"))
        self.redo.clicked.connect(lambda: self.regenerate.emit(self.message.id))
        self.edit.show_as("edit", tr("Edit this reply, as another version"))
        self.more = IconButton("play", tr("Continue this reply"), size=16)
        self.more.setToolTip(tr("Continue this reply (Ctrl+Shift+R)"))
        self.more.clicked.connect(self.continue_it)
        self.buttons += [self.redo, self.more]
        self.footer.addWidget(self.receipt, 1)
        for widget in (self.versions, self.more, self.edit, self.copy, self.redo):
            if widget is not None:
                self.footer.addWidget(widget)
        fill(self.column, self.calls, self.view, self.footer)
        self.show_calls(message)
        self.restyle()

    # What few replies have is made when it is first wanted: each widget takes 10 kB, and a chat has many replies.

    @cached_property
    def stages(self) -> DeepStages:
        """How far a deep reply is."""
        return self._placed(DeepStages(), 0)

    @cached_property
    def thoughts(self) -> ThoughtsView:
        """What the model thought before."""
        thoughts = self._placed(ThoughtsView(self._tools), self.column.indexOf(self.calls))
        thoughts.head.toggled.connect(self.unfolded)
        return thoughts

    @cached_property
    def problem(self) -> _Note:
        """Why it failed, with what can be done."""
        note = self._placed(_Note("problemNote", "alert", "danger"), self.column.indexOf(self.view) + 1)
        note.button.clicked.connect(self._on_retry)
        return note

    @cached_property
    def spark_note(self) -> _Note:
        """That the small model gave it."""
        note = _Note("warningNote", "spark", "warning", tr("Redo with the full model"))
        note.button.clicked.connect(lambda: self.redo_in_full.emit(self.message.id))
        return self._placed(note, self.column.indexOf(self.footer))

    def _placed(self, part: _Part, at: int) -> _Part:
        after = self.column.itemAt(at)
        self.column.insertWidget(at, part)
        part.stackUnder((after and after.widget()) or self.receipt)  # a screen reader goes by that order
        return part

    @property
    def text_views(self) -> list[TextView]:
        """Where the text is shown: what stands above calls of tools, and the rest."""
        return [*self.calls.texts, self.view]

    @property
    def text(self) -> str:
        """The reply as the model wrote it."""
        return self.calls.text + self.view.text

    def show_running(self, text: str, thoughts: str) -> None:
        """Show a reply that is still growing, from what came so far."""
        # A reply that is continued is there already.
        if thoughts:
            self.thoughts.append(thoughts.removeprefix(self.thoughts.text))
        self.view.append(text.removeprefix(self.text))
        self.view.flush()
        if self._told is None:  # between its rounds of calls it goes on
            self._told, self._waits_for = self.view.document().characterCount() - 1, ""
        if "problem" in vars(self):
            self.problem.say("")
        self.receipt.set_openable(False)
        self._show_text()
        self.receipt.setText(" ")
        self._keep_button_room(False)

    def append(self, text: str) -> None:
        """Add to a growing reply."""
        self.view.append(text)
        self.view.setVisible(True)

    def mark_drafted(self, spans: Sequence[tuple[int, int]]) -> None:
        """Say which characters of a growing reply were drafted, before they are added."""
        self.view.mark_drafted(spans_from(len(self.calls.text), spans))

    def show_calls(self, message: Message) -> None:
        """Show how far the calls of tools are. What was written stands above a new one, and what follows below it."""
        n_before = len(self.calls.text)
        if message.calls and message.calls[-1].at > n_before:
            self._tell_rest()
        self.calls.show_calls(message)
        if len(self.calls.text) > n_before:
            self._write_rest(message)
            self.mark(self._find)  # also what stands above now
            self._told = None if self._told is None else 0
            self._show_text()

    def append_thought(self, text: str) -> None:
        """Add to what the model thinks before it answers."""
        if not self.thoughts.text:
            announce(self, THINKING)
        self.thoughts.append(text)

    def show_thinking(self, seconds: float | None, *, is_over: bool) -> None:
        """Show for how long the model has been thinking, or had before its reply began; None where it does not."""
        if seconds is not None:
            self.thoughts.show_time(seconds, is_over=is_over)

    def show_live(
        self,
        rate: float,
        ttft: float | None,
        wait: float,
        extra: str,
        progress: DeepProgress | None,
        read: PromptProgress | None,
    ) -> None:
        """Show how fast the reply is coming, which stage of a deep one is at work, or what it waits for (``extra``).

        Until it comes, ``read`` says how much of the prompt was read.
        """
        if progress is not None or "stages" in vars(self):
            self.stages.show_progress(progress)
        if ttft is None and progress is not None and not extra:
            self.receipt.setText(deep_progress(progress, wait))
            return
        if ttft is None:
            if extra != self._waits_for:
                self._waits_for = extra
                announce(self, extra)
            so_far = percent(read.share) if read is not None else ""
            words = dotted(tr("Reading the prompt…  {wait:.1f} s", wait=wait), so_far) if wait >= PATIENCE else "…"
            self.receipt.setText(extra or words)
            return
        parts = [speed(rate) if rate > 0 else "", tr("first token {ttft}", ttft=milliseconds(ttft * 1000))]
        self.receipt.setText(dotted(*parts))

    def show_answered_by(self, name: str | None, can_redo: bool = False) -> None:
        """Mark a reply that the small model gives or gave; None for the full one."""
        words = tr("Answered by the small model {name}, less capable.", name=one_line(name)) if name else ""
        if words or "spark_note" in vars(self):
            if words != self.spark_note.text:
                self.spark_note.say(words)
            self.spark_note.button.setVisible(can_redo)

    def show_ended(self, message: Message) -> None:
        """Show the reply as it ended."""
        self.message = message
        if "stages" in vars(self):
            self.stages.hide()
        self.show_calls(message)
        if message.thoughts or "thoughts" in vars(self):
            self.thoughts.show_ended(message.thoughts, message.thinking_ms)
        self.show_answered_by(message.answered_by, can_redo=True)
        if self.text != message.content:
            self._write_rest(message)
        else:
            self.view.finish()
        self._show_text()
        self.view.setAccessibleName(tr("Reply: {beginning}", beginning=opening(message.content)))
        self._tell_end(message)
        failure = failure_of(message)
        if failure or "problem" in vars(self):
            self.problem.say(failure or "")
        self.show_way()
        self.receipt.setText(receipt(message))
        self.receipt.set_openable(message.timings is not None)
        self._keep_button_room()

    def show_way(self) -> None:
        """Name what can be done about a reply that failed."""
        if "problem" in vars(self):
            self.problem.button.setText(self._way or tr("Try again"))

    @property
    def _way(self) -> str:
        """What helps where the same again would be refused again; "" where it may succeed."""
        reason = self.message.finish_reason or ""
        return _WAYS.get(reason) or (_WAYS[MODEL_GONE] if self.lacks_model(self.message) else "")

    def _tell_paragraphs(self) -> None:
        """Let a screen reader say each paragraph of a growing reply when it is whole."""
        if self._told is not None and self.view.certain_end > self._told and QAccessible.isActive():
            begin, self._told = self._told, self.view.certain_end
            announce(self.view, self.view.spoken(begin, self._told))

    def _tell_rest(self, ended: str = "") -> None:
        """Let it say what it has not said yet, and how the reply ended."""
        if self._told is not None and QAccessible.isActive():
            rest = self.view.spoken(self._told, self.view.document().characterCount()) if self.view.text else ""
            announce(self, "\n".join(part for part in (rest, ended) if part))

    def _tell_end(self, message: Message) -> None:
        """Let it say the rest, and how the reply ended where that is not by itself."""
        self._tell_rest(failure_of(message) or (tr("Stopped") if message.status is Status.STOPPED else ""))
        self._told = None

    def _write_rest(self, message: Message) -> None:
        """Write what stands below all calls."""
        begin = len(self.calls.text)
        self.view.set_text(message.content[begin:], spans_from(begin, message.drafted))

    def _show_text(self) -> None:
        is_edited = self.editor is not None
        self.view.setVisible(bool(self.view.text) and not self.view.text.isspace() and not is_edited)
        self.calls.setVisible(bool(self.calls.rows) and not is_edited)

    @property
    def can_continue(self) -> bool:
        """True for a reply at the end of the chat that was cut, or changed by the user."""
        message = self.message
        is_cut = message.status in (Status.STOPPED, Status.FAILED) or message.finish_reason in ("length", EDITED)
        return self._is_last and bool(message.content) and is_cut

    def continue_it(self) -> None:
        """Ask for the rest of a reply that was cut."""
        if self.can_continue:
            self.go_on.emit(self.message.id)

    def _made_editor(self, text: str) -> MessageEditor:
        editor = MessageEditor(text, tr("Edit the reply"), tr("Save"))
        self.column.insertWidget(self.column.indexOf(self.view), editor)
        return editor

    def _on_edited(self, text: str) -> None:
        if self.unsent:
            super()._on_edited(text)
        else:
            self.leave_editor()

    def restyle(self) -> None:
        """Follow the style of the tools."""
        if "thoughts" in vars(self):
            self.thoughts.restyle()
        self.calls.restyle()
        self._fill_receipt()
        self.view.set_style(self._tools.style)

    def _on_receipt(self, is_open: bool) -> None:
        if is_open and self.receipt_card is None:
            self.receipt_card = ReceiptCard()
            self.receipt_card.race.clicked.connect(lambda: self.race_wanted.emit(self.message))
            self.receipt_card.tint.toggled.connect(self.tint_wanted)
            self.column.addWidget(self.receipt_card)
        if self.receipt_card is not None:
            self.receipt_card.setVisible(is_open)
            self._fill_receipt()

    def _fill_receipt(self) -> None:
        if self.receipt_card is not None and self.message.timings is not None:
            self.receipt_card.show_timings(self.message.timings)
            self.receipt_card.show_tint(self._tools.style.tints_drafts, bool(self.message.drafted))

    def _on_retry(self) -> None:
        if self._way:
            self.ways_wanted.emit(self.message, self.problem.button)
        else:
            self.regenerate.emit(self.message.id)

    def _offers(self, button: IconButton) -> bool:
        # A reply without a word has nothing to copy, and a failed one has its own button to ask again.
        if button is self.more:
            return self.can_continue
        return self.message.status is not Status.FAILED if button is self.redo else bool(self.message.content)

    def _can_show_buttons(self) -> bool:
        return super()._can_show_buttons() and self.message.status is not Status.STREAMING


class _Note(Dressed, QFrame):
    """What is to be known of a reply, with a button for what can be done; hidden while there is nothing."""

    def __init__(self, name: str, icon: str, tone: str, button: str = "") -> None:
        """``name`` is that in the style sheet; ``tone`` is the colour of the icon."""
        super().__init__()
        self.setObjectName(name)
        self._icon_name, self._tone, self._icon = icon, tone, QLabel()
        self._text, self.button = plain_label(tone="", can_select=True), QPushButton(button)
        row = fill(QHBoxLayout(self), spacing=Space.M, margins=(Space.M + 2, Space.S, Space.S, Space.S))
        fill(row, self._icon, (FoldingRow(self._text, self.button, Space.M), 1))
        self.dress()
        self.hide()

    @property
    def text(self) -> str:
        return self._text.text()

    def say(self, words: str) -> None:
        """Show these words, or nothing where there are none."""
        self._text.setText(words)
        self.setVisible(bool(words))

    def dress(self) -> None:
        colour = getattr(colours(), self._tone)
        self._icon.setPixmap(pixmap(self._icon_name, colour, ICON, self.devicePixelRatioF()))
