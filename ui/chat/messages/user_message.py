"""What the user said, in a bubble on the right; can be edited and sent again."""

from __future__ import annotations

import math

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent, QTextBlockFormat, QTextOption
from PySide6.QtWidgets import QFrame, QSizePolicy, QVBoxLayout

from ui.chat.attachments.sent_files import SentFiles
from ui.chat.markdown.text_tools import TextTools
from ui.chat.markdown.text_view import TextView
from ui.chat.messages.message_editor import MessageEditor
from ui.chat.messages.message_view import MessageView, opening
from ui.client.chat_records import Message
from ui.language import tr
from ui.theme.tokens import Space
from ui.widgets.icon_button import TextButton

# For each line Qt reads on to the end of the word that does not fit: a word of 200,000 characters takes a second, and
# again at each width and each key.
LONGEST_WORD = 10_000


def wrap_mode(text: str) -> QTextOption.WrapMode:
    """Return how to wrap ``text``: with a word of many pages, as an encoded file is one, lines break anywhere."""
    if len(text) > LONGEST_WORD and max(map(len, text.split()), default=0) > LONGEST_WORD:
        return QTextOption.WrapMode.WrapAnywhere
    return QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere


WIDEST = 0.8  # of the column
LINE = 130  # percent
MOST_SHOWN = 12_000  # characters at once: lines of a pasted megabyte take seconds to lay out, again at each width
_NEAR = 200  # characters before which a cut looks for the end of a line or a word


class UserMessage(MessageView):
    """A bubble with plain text."""

    def __init__(self, message: Message, versions: list[int], tools: TextTools) -> None:
        super().__init__(message, versions, tools)
        self.setAccessibleName(tr("You said"))
        self.view = _BubbleText()
        self.view.setAccessibleName(tr("Your message: {beginning}", beginning=opening(message.content)))
        self.bubble = QFrame()
        self.bubble.setObjectName("bubble")
        inside = QVBoxLayout(self.bubble)
        # The line height leaves its room below the text: the smaller margin there makes both look the same.
        inside.setContentsMargins(Space.L, Space.S + 2, Space.L, Space.S - 3)
        self.bubble.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        inside.addWidget(self.view)
        self.more: TextButton | None = None
        if len(message.content) > MOST_SHOWN:
            self.more = TextButton(tr("Show all {n_content:,} characters", n_content=len(message.content)))
            self.more.clicked.connect(self._show_all)
            inside.addWidget(self.more, 0, Qt.AlignmentFlag.AlignLeft)
        self.edit.show_as("edit", tr("Edit and send again"))
        self.edit.setToolTip(tr("Edit and send again (Ctrl+E)"))
        self._keep_button_room()
        self.footer.addStretch()
        for widget in (self.versions, self.edit, self.copy):
            if widget is not None:
                self.footer.addWidget(widget, 0, Qt.AlignmentFlag.AlignBottom)
        self.footer.addSpacing(Space.XS)
        self.footer.addWidget(self.bubble)
        self.files = SentFiles(message.attachments)
        self.files.unfolded.connect(self.unfolded)
        self.column.addWidget(self.files)
        self.column.addLayout(self.footer)
        self._show_text()
        self._fill()
        self.restyle()

    @property
    def text_views(self) -> list[TextView]:
        """Where the text is shown."""
        return [self.view]

    def restyle(self) -> None:
        """Follow the style of the tools."""
        self.view.fit_tabs()
        self._fill()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Give the bubble the width that its text needs, up to a part of the column."""
        super().resizeEvent(event)
        self._fit()

    def _fill(self) -> None:
        self.view.clear()
        cursor = self.view.textCursor()
        form = QTextBlockFormat()
        form.setLineHeight(LINE, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
        cursor.setBlockFormat(form)
        is_cut = self.more is not None and not self.more.isHidden()
        text = beginning(self.message.content) if is_cut else self.message.content
        self.view.setWordWrapMode(wrap_mode(text))
        cursor.insertText(text, self._tools.style.body)
        self.view.mark_again()
        self._fit()

    def _fit(self) -> None:
        self.view.set_widest(int(self.width() * WIDEST) - 2 * Space.L)

    def _show_all(self) -> None:
        if self.more is not None:
            self.more.hide()
        self.view.setFocus()
        self._fill()
        self.unfolded.emit(True)

    def _made_editor(self, text: str) -> MessageEditor:
        editor = MessageEditor(text, tr("Edit your message"), tr("Send again"))
        self.column.insertWidget(self.column.indexOf(self.files) + 1, editor)
        return editor

    def _show_text(self) -> None:
        self.bubble.setVisible(bool(self.message.content) and self.editor is None)


def beginning(text: str) -> str:
    """Return what is shown first of a long text, cut behind a line or a word where one ends near."""
    cut = text[:MOST_SHOWN]
    for end in "\n", " ":
        at = cut.rfind(end, MOST_SHOWN - _NEAR)
        if at >= 0:
            return f"{cut[:at]} …"
    return f"{cut}…"


class _BubbleText(TextView):
    """Text as wide as its longest line, up to a limit."""

    def __init__(self) -> None:
        super().__init__()
        self._widest = 0
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)

    def set_widest(self, width: int) -> None:
        """Wrap lines that are longer than this."""
        if width != self._widest:
            self._widest = width
            self.updateGeometry()

    def sizeHint(self) -> QSize:
        """Ask for the longest line's width."""
        copy = self.document().clone()
        copy.setTextWidth(-1)
        # Room for a pixel more, or the last word of a line that just fits would wrap.
        return QSize(max(12, min(math.ceil(copy.idealWidth()) + 2, self._widest)), self.height())

    def minimumSizeHint(self) -> QSize:
        """Wrap rather than make the window wider."""
        return QSize(12, self.height())
