"""What the views of all messages have in common: their buttons, which show when the message is of interest."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Signal
from PySide6.QtGui import QEnterEvent, QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from ui.chat.markdown.text_tools import TextTools
from ui.chat.markdown.text_view import Find, TextView
from ui.chat.messages.message_editor import MessageEditor
from ui.client.chat_records import Message
from ui.language import tr
from ui.theme.layouts import fill
from ui.theme.tokens import Space
from ui.widgets.icon_button import IconButton
from ui.widgets.page_layout import announce

OPENING = 80  # letters that tell a message from others


def opening(text: str) -> str:
    """Return how a message begins, for those who go from one to the next without seeing them."""
    first = " ".join(text[: 4 * OPENING].split())
    return first if len(first) <= OPENING else f"{first[:OPENING].rsplit(' ', 1)[0]}…"


class Versions(QWidget):
    """Shows "2 / 3" between two arrows."""

    chosen = Signal(object)  # message id: too large for the int of a signal

    def __init__(self, ids: list[int], shown: int) -> None:
        super().__init__()
        self._ids, self._at = ids, ids.index(shown)
        self.back = IconButton("left", tr("Earlier version"), size=16)
        self.forth = IconButton("right", tr("Later version"), size=16)
        self.label = QLabel(f"{self._at + 1} / {len(ids)}")
        self.label.setProperty("tone", "caption")
        fill(QHBoxLayout(self), self.back, self.label, self.forth, spacing=0, margins=0)
        self.back.setEnabled(self._at > 0)
        self.forth.setEnabled(self._at < len(ids) - 1)
        self.back.setToolTip(tr("Earlier version (Alt+Left)"))
        self.forth.setToolTip(tr("Later version (Alt+Right)"))
        self.back.clicked.connect(lambda: self.step(-1))
        self.forth.clicked.connect(lambda: self.step(1))

    def step(self, by: int) -> None:
        """Choose an earlier or a later one, where there is one."""
        if 0 <= self._at + by < len(self._ids):
            announce(self, tr("Version {number} of {n}", number=self._at + by + 1, n=len(self._ids)))
            self.chosen.emit(self._ids[self._at + by])


class MessageView(QWidget):
    """One message. Subclasses put their text into ``column`` and their buttons into ``footer``."""

    chosen = Signal(object)  # another version of this message
    edited = Signal(object, str)  # message id, the new text
    written = Signal()  # what is ``unsent`` is another text now
    link_chosen = Signal(str)
    unfolded = Signal(bool)  # something in it, or folded

    def __init__(self, message: Message, versions: list[int], tools: TextTools) -> None:
        super().__init__()
        self.message = message
        self._tools = tools
        self._is_last = False
        self._has_attention = False
        self._find: Find | None = None
        self.editor: MessageEditor | None = None
        self.column = fill(QVBoxLayout(self), spacing=Space.XS, margins=0)
        self.footer = fill(QHBoxLayout(), spacing=2)
        self.copy = IconButton("copy", tr("Copy message"), size=16)
        self.copy.clicked.connect(self._on_copy)
        self.versions = Versions(versions, message.id) if len(versions) > 1 else None
        if self.versions is not None:
            self.versions.chosen.connect(self.chosen)
        self.edit = IconButton("edit", "", size=16)
        self.edit.clicked.connect(self.begin_edit)
        self.buttons: list[IconButton] = [self.edit, self.copy]
        self._keeps_room = False

    @property
    def text_views(self) -> list[TextView]:
        """Where the text is shown."""
        raise NotImplementedError

    @property
    def text(self) -> str:
        """The text as it was written."""
        return self.message.content

    def mark(self, find: Find | None) -> None:
        """Mark the pieces of its texts that ``find`` returns; None marks nothing."""
        self._find = find
        for view in self.text_views:
            view.mark(find)

    # While it is edited.

    @property
    def unsent(self) -> str:
        """What was written in its place and not sent, "" where that is nothing new."""
        text = "" if self.editor is None else self.editor.field.toPlainText()
        return text if text.strip() and text != self.message.content else ""

    def begin_edit(self) -> QWidget:
        """Let the message be changed; return the field, which has the keyboard."""
        field = self.go_on_editing(self.message.content) if self.editor is None else self.editor.field
        field.setFocus()
        return field

    def go_on_editing(self, text: str) -> QWidget:
        """Open an edit as it was left, with ``text``; return its field."""
        self.editor = self._made_editor(text)
        self.editor.sent.connect(self._on_edited)
        self.editor.left.connect(self.leave_editor)
        self.editor.field.textChanged.connect(self.written)
        self._show_text()
        self._show_buttons()
        return self.editor.field

    def leave_editor(self) -> None:
        """Show the message as it is."""
        if self.editor is None:
            return
        self.editor.deleteLater()
        self.editor = None
        self._show_text()
        self.set_attention(True)
        self.edit.setFocus()
        self.written.emit()

    def _made_editor(self, text: str) -> MessageEditor:
        """Put an editor into the column."""
        raise NotImplementedError

    def _on_edited(self, text: str) -> None:
        self.edited.emit(self.message.id, text)

    def _show_text(self) -> None:
        """Show the text, unless it is edited."""
        raise NotImplementedError

    def set_last(self, is_last: bool) -> None:
        """The last message keeps its buttons in view."""
        self._is_last = is_last
        self._show_buttons()

    def set_attention(self, has_attention: bool) -> None:
        """Pointer or keyboard are here, or left."""
        self._has_attention = has_attention
        self._show_buttons()

    def restyle(self) -> None:
        """Follow a change of ``tools``."""
        raise NotImplementedError

    def enterEvent(self, event: QEnterEvent) -> None:
        """Show the buttons under the pointer."""
        self.set_attention(True)
        super().enterEvent(event)

    def leaveEvent(self, event: QEvent) -> None:
        """Hide them again, unless the keyboard is here."""
        focused = self.window().focusWidget()
        self.set_attention(focused is not None and self.isAncestorOf(focused))
        super().leaveEvent(event)

    def _can_show_buttons(self) -> bool:
        return self.editor is None and (self._is_last or self._has_attention)

    def _offers(self, button: IconButton) -> bool:
        """Return whether a button can do anything for this message."""
        return True

    def _show_buttons(self) -> None:
        for button in self.buttons:
            offered = self._offers(button)
            policy = button.sizePolicy()
            policy.setRetainSizeWhenHidden(self._keeps_room and offered)
            button.setSizePolicy(policy)
            button.setVisible(offered and self._can_show_buttons())

    def _keep_button_room(self, keeps: bool = True) -> None:
        """Say whether hidden buttons keep their place, so that nothing moves when they show."""
        self._keeps_room = keeps
        self._show_buttons()

    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText(self.text)
        self.copy.say_done(tr("Copied"))
