"""The calls of tools in a reply, each below the text that led to it: a question first, then a line that unfolds."""

from __future__ import annotations

import json

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QApplication,
    QFrame,
    QHBoxLayout,
    QPlainTextEdit,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from models.formatting.safe_text import one_line
from ui.chat.attachments.sent_files import SentFiles
from ui.chat.markdown.draft_tint import spans_from
from ui.chat.markdown.markdown_view import MarkdownView
from ui.chat.markdown.text_tools import TextTools
from ui.client.chat_records import Message
from ui.client.tool_calls import CallStatus, ToolCall
from ui.language import tr
from ui.theme.colours import Dressed, colours
from ui.theme.icons import set_icon
from ui.theme.layouts import STRETCH, fill
from ui.theme.text_size import scaled
from ui.theme.tokens import Space
from ui.widgets.elided_label import on_button
from ui.widgets.page_layout import announce, plain_label

HEIGHT = 160  # pixels of an unfolded call at most, which then scrolls
LINE = 80  # characters that have room in a line of it, about
_STATES = {
    CallStatus.ASKED: tr("waits for you"), CallStatus.RUNNING: tr("is called…"), CallStatus.DONE: tr("called"),
    CallStatus.FAILED: tr("failed"), CallStatus.REFUSED: tr("not called"),
}  # fmt: skip


class CallsView(QWidget):
    """Shows a reply up to its last call. Hidden for one without calls."""

    answered = Signal(str, bool, bool)  # the id of a call, is it allowed, for good
    link_chosen = Signal(str)
    unfolded = Signal(bool)  # or folded

    def __init__(self, tools: TextTools, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._tools = tools
        self.text = ""  # of the reply, as far as it is shown here
        self.texts: list[MarkdownView] = []
        self.rows: dict[str, CallRow] = {}
        self._column = fill(QVBoxLayout(self), spacing=Space.S, margins=(0, 0, 0, Space.XS))
        self.hide()

    def show_calls(self, message: Message) -> None:
        """Show how far each call is. The keyboard goes on from a question that was answered to the next one."""
        now = QApplication.focusWidget()
        answered = next((row for row in self.rows.values() if now in (row.once, row.always, row.no)), None)
        before = {row for row in self.rows.values() if row.is_asked}
        for call in message.calls:
            if call.id not in self.rows:
                self._show_text(message, call.at)
                row = self.rows[call.id] = CallRow()
                row.answered.connect(self.answered)
                row.unfolded.connect(self.unfolded)
                self._column.addWidget(row)
            self.rows[call.id].show_call(call)
        self.setVisible(bool(self.rows))
        for row in self.rows.values():
            if row.is_asked and row not in before:
                announce(self, row.question.text())
        if answered is not None and not answered.once.isVisibleTo(answered):
            left = (row.once for row in self.rows.values() if row.once.isVisibleTo(row))
            next(left, answered.head).setFocus(Qt.FocusReason.TabFocusReason)

    def _show_text(self, message: Message, end: int) -> None:
        """Show the text up to a call."""
        begin = len(self.text)
        self.text = message.content[: max(begin, end)]
        if self.text[begin:].strip():
            view = MarkdownView(self._tools)
            view.setAccessibleName(tr("Reply"))
            view.link_chosen.connect(self.link_chosen)
            view.set_text(self.text[begin:], spans_from(begin, message.drafted))
            self.texts.append(view)
            self._column.addWidget(view)

    def restyle(self) -> None:
        """Follow a change of the tools' style."""
        for view in self.texts:
            view.set_style(self._tools.style)


class CallRow(Dressed, QFrame):
    """One call."""

    answered = Signal(str, bool, bool)
    unfolded = Signal(bool)  # or folded

    def __init__(self) -> None:
        super().__init__()
        self._call: ToolCall | None = None
        self.images: SentFiles | None = None  # of the result, made when they are first wanted
        self.head = QToolButton()
        self.head.setProperty("kind", "chip")
        self.head.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.head.setCheckable(True)
        self.head.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.head.setCursor(Qt.CursorShape.PointingHandCursor)
        self.head.setToolTip(tr("Show what was asked and what came back"))
        self.head.toggled.connect(self._unfold)
        self.head.toggled.connect(self.unfolded)
        self.question, self.details = plain_label(tone="", can_select=True), QPlainTextEdit()
        self.details.setObjectName("attachmentText")
        self.details.setReadOnly(True)
        self.details.setTabChangesFocus(True)
        self.details.setAccessibleName(tr("The call and its result"))
        self.details.hide()
        self.once, self.always, self.no = (
            QPushButton(tr("Allow once")),
            QPushButton(tr("Always allow")),
            QPushButton(tr("Refuse")),
        )
        self.once.setProperty("kind", "primary")
        self.always.setToolTip(tr("Call this tool from now on without asking"))
        for button, allow, always in ((self.once, True, False), (self.always, True, True), (self.no, False, False)):
            button.clicked.connect(lambda checked=False, allow=allow, always=always: self._answer(allow, always))
        self._ask = QFrame()
        self._ask.setObjectName("calmNote")
        buttons = fill(QHBoxLayout(), self.once, self.always, self.no, STRETCH)
        fill(QVBoxLayout(self._ask), self.question, buttons, margins=(Space.M, Space.S + 2, Space.M, Space.S + 2))
        self._column = fill(QVBoxLayout(self), spacing=Space.XS, margins=0)
        self._column.addWidget(self.head, 0, Qt.AlignmentFlag.AlignLeft)
        fill(self._column, self._ask, self.details)
        self.dress()

    @property
    def is_asked(self) -> bool:
        """Whether it waits to be allowed."""
        return self._call is not None and self._call.status is CallStatus.ASKED

    def show_call(self, call: ToolCall) -> None:
        """Show how far it is."""
        self._call = call
        name, server = one_line(call.tool or call.name), one_line(call.server)
        words = (tr("{name} of {server}", name=name, server=server) if server else name) + f"   {_STATES[call.status]}"
        self.head.setText(on_button(words))
        self.head.setAccessibleName(tr("Tool {words}", words=words))
        self.head.setVisible(not self.is_asked)
        self.question.setText(
            tr(
                "The model wants to call {name} of {server} with\n{short}",
                name=name,
                server=server,
                short=_short(call.arguments),
            )
        )
        self._ask.setVisible(self.is_asked)
        self.details.setPlainText(f"{_pretty(call.arguments)}\n\n{call.result}".rstrip())
        self._show_images()

    def dress(self) -> None:
        """Draw the icon, and leave room for the text."""
        set_icon(self.head, "tools", colours().muted, size=16)
        if self.head.isChecked():
            self.details.ensurePolished()
            self._unfold(True)

    def _answer(self, allow: bool, always: bool) -> None:
        if self._call is not None:
            self.answered.emit(self._call.id, allow, always)

    def _unfold(self, is_open: bool) -> None:
        lines = sum(1 + len(line) // LINE for line in self.details.toPlainText().split("\n"))
        room = (lines + 1) * self.details.fontMetrics().lineSpacing() + Space.M
        self.details.setFixedHeight(min(scaled(HEIGHT), room))
        self.details.setVisible(is_open)
        self._show_images()

    def _show_images(self) -> None:
        if self.images is None and self.head.isChecked() and self._call is not None and self._call.images:
            self.images = SentFiles(self._call.images, is_from_tool=True)
            self.images.unfolded.connect(self.unfolded)
            self._column.addWidget(self.images)
        if self.images is not None:
            self.images.setVisible(self.head.isChecked())


def _pretty(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments or "{}"), indent=1, ensure_ascii=False)
    except ValueError:
        return arguments


def _short(arguments: str) -> str:
    words = arguments.strip() or "{}"
    return (
        words
        if len(words) <= 2_000
        else tr("{words}… ({n_words:,} characters)", words=words[:2000], n_words=len(words))
    )
