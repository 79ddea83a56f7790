"""What the model said: its text, how it went, and the receipt."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QWidget

from models.formatting.figures import milliseconds, speed
from ui.chat.markdown.markdown_view import MarkdownView
from ui.chat.markdown.text_tools import TextTools
from ui.chat.markdown.text_view import TextView
from ui.chat.messages.deep_stages import DeepStages
from ui.chat.messages.message_view import MessageView, caption
from ui.chat.messages.receipts import CONTEXT_FULL, deep_progress, problem_of, receipt, receipt_details
from ui.chat.messages.thoughts_view import ThoughtsView
from ui.client.chat_records import Message, Status
from ui.client.speeds import DeepProgress
from ui.theme.icons import pixmap
from ui.theme.tokens import Space
from ui.widgets.elided_label import ElidedLabel
from ui.widgets.icon_button import IconButton

FIT = "Make it fit…"
PATIENCE = 0.7  # seconds of silence until the view says what is going on


class AssistantMessage(MessageView):
    """A reply, growing or ended."""

    regenerate = Signal(object)
    fit_wanted = Signal(object, object)  # the message, and the button to show the ways at
    redo_in_full = Signal(object)  # the full model is to answer in place of the small one

    def __init__(self, message: Message, versions: list[int], tools: TextTools, parent: QWidget | None = None) -> None:
        super().__init__(message, versions, tools, parent)
        self.setAccessibleName("The model said")
        self.view = MarkdownView(tools.markdown, tools.colours, tools.style)
        self.view.setAccessibleName("Reply")
        self.view.link_chosen.connect(self.link_chosen)
        self.problem = _Problem()
        self.problem.retry.clicked.connect(self._on_retry)
        self.spark_note = _SparkNote()
        self.spark_note.redo.clicked.connect(lambda: self.redo_in_full.emit(self.message.id))
        self.stages = DeepStages()
        self.thoughts = ThoughtsView(tools)
        self.receipt = caption()
        self.receipt.setAccessibleName("Receipt")
        self.redo = IconButton("redo", "Answer again", size=16)
        self.redo.clicked.connect(lambda: self.regenerate.emit(self.message.id))
        self.buttons.append(self.redo)
        self.footer.addWidget(self.receipt, 1)
        for widget in (self.versions, self.copy, self.redo):
            self.footer.addWidget(widget)
        self.column.addWidget(self.stages)
        self.column.addWidget(self.thoughts)
        self.column.addWidget(self.view)
        self.column.addWidget(self.problem)
        self.column.addWidget(self.spark_note)
        self.column.addLayout(self.footer)
        self.restyle()

    @property
    def text_view(self) -> TextView:
        """Where the text is shown."""
        return self.view

    @property
    def text(self) -> str:
        """The reply as the model wrote it."""
        return self.view.text

    def show_running(self, text: str, thoughts: str = "") -> None:
        """Show a reply that is still growing, from what came so far."""
        self.thoughts.append(thoughts)
        self.view.append(text)
        self.view.flush()
        self.view.setVisible(bool(text))
        self.receipt.setText(" ")
        self._keep_button_room(False)

    def append(self, text: str) -> None:
        """Add to a growing reply."""
        self.view.append(text)
        self.view.setVisible(True)

    def append_thought(self, text: str) -> None:
        """Add to what the model thinks before it answers."""
        self.thoughts.append(text)

    def show_thinking(self, seconds: float | None) -> None:
        """Show for how long the model has been thinking, or had before its reply began; None where it does not."""
        if seconds is not None:
            self.thoughts.show_time(seconds, is_over=bool(self.view.text))

    def show_live(
        self, rate: float, ttft: float | None, wait: float, extra: str = "", progress: DeepProgress | None = None
    ) -> None:
        """Show how fast the reply is coming, or which stage of a deep one is at work."""
        self.stages.show_progress(progress)
        if ttft is None and progress is not None and not extra:
            self.receipt.setText(deep_progress(progress, wait))
            return
        if ttft is None:
            words = f"Reading the prompt…  {wait:.1f} s" if wait >= PATIENCE else "…"
            self.receipt.setText(extra or words)
            return
        parts = [speed(rate) if rate > 0 else "", f"first token {milliseconds(ttft * 1000)}"]
        self.receipt.setText("  ·  ".join(part for part in parts if part))

    def show_answered_by(self, name: str | None, can_redo: bool = False) -> None:
        """Mark a reply that the small model gives or gave; None for the full one."""
        self.spark_note.tell(name, can_redo)

    def show_ended(self, message: Message) -> None:
        """Show the reply as it ended."""
        self.message = message
        self.stages.hide()
        self.thoughts.show_ended(message.thoughts, message.thinking_ms)
        self.show_answered_by(message.answered_by, can_redo=True)
        if self.view.text != message.content:
            self.view.set_text(message.content)
        else:
            self.view.finish()
        self.view.setVisible(bool(message.content))
        self.problem.tell(problem_of(message), FIT if message.finish_reason == CONTEXT_FULL else "Try again")
        self.receipt.setText(receipt(message))
        self.receipt.setToolTip(receipt_details(message.timings) if message.timings else "")
        self.receipt.setAccessibleDescription(self.receipt.toolTip())
        self._keep_button_room()
        self._show_buttons()

    def restyle(self) -> None:
        """Follow the palette."""
        super().restyle()
        self.problem.restyle(self._tools)
        self.spark_note.restyle(self._tools)
        self.stages.restyle(self._tools)
        self.thoughts.restyle()
        self.view.set_style(self._tools.style)

    def _on_retry(self) -> None:
        if self.message.finish_reason == CONTEXT_FULL:  # the same again would be refused again
            self.fit_wanted.emit(self.message, self.problem.retry)
        else:
            self.regenerate.emit(self.message.id)

    def _show_buttons(self) -> None:
        super()._show_buttons()
        # A reply without a word has nothing to copy, and a failed one has its own button to ask again.
        self.copy.setVisible(self.copy.isVisibleTo(self) and bool(self.message.content))
        self.redo.setVisible(self.redo.isVisibleTo(self) and self.message.status is not Status.FAILED)

    def _can_show_buttons(self) -> bool:
        return super()._can_show_buttons() and self.message.status is not Status.STREAMING


class _Problem(QFrame):
    """Why there is no reply, and a button to ask again."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("problemCard")
        self._icon = QLabel()
        self._text = QLabel()
        self._text.setWordWrap(True)
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.retry = QPushButton()
        row = QHBoxLayout(self)
        row.setContentsMargins(Space.M + 2, Space.M, Space.M, Space.M)
        row.setSpacing(Space.M)
        row.addWidget(self._icon)
        row.addWidget(self._text, 1)
        row.addWidget(self.retry)
        self.hide()

    @property
    def text(self) -> str:
        return self._text.text()

    def tell(self, problem: str | None, action: str) -> None:
        self._text.setText(problem or "")
        self.retry.setText(action)
        self.setVisible(problem is not None)

    def restyle(self, tools: TextTools) -> None:
        self._icon.setPixmap(pixmap("alert", tools.palette.danger, 20, self.devicePixelRatioF()))


class _SparkNote(QFrame):
    """Says that the small model answered, with a button to let the full one answer instead."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("sparkNote")
        self._icon = QLabel()
        self._text = ElidedLabel()
        self.redo = QPushButton("Redo with the full model")
        row = QHBoxLayout(self)
        row.setContentsMargins(Space.M, Space.XS + 2, Space.XS + 2, Space.XS + 2)
        row.setSpacing(Space.S)
        row.addWidget(self._icon)
        row.addWidget(self._text, 1)
        row.addWidget(self.redo)
        self.hide()

    @property
    def text(self) -> str:
        return self._text.text()

    def tell(self, name: str | None, can_redo: bool) -> None:
        words = f"Answered by the small model {name}, less capable." if name else ""
        if words != self._text.text():
            self._text.setText(words)
            self._text.setToolTip(words)
        self.redo.setVisible(can_redo)
        self.setVisible(bool(name))

    def restyle(self, tools: TextTools) -> None:
        self._icon.setPixmap(pixmap("spark", tools.palette.warning, 16, self.devicePixelRatioF()))
