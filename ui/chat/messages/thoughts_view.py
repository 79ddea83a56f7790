"""What a model thought before it answered: one line with the time it took, which unfolds."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QToolButton, QVBoxLayout, QWidget

from models.formatting.figures import milliseconds
from ui.chat.markdown.markdown_view import MarkdownView
from ui.chat.markdown.text_tools import TextTools
from ui.language import tr
from ui.theme.colours import Dressed, colours
from ui.theme.icons import set_icon
from ui.theme.layouts import fill
from ui.theme.text_size import scaled
from ui.theme.text_style import TextStyle
from ui.theme.tokens import Space, Type

ICON = 16
THINKING = tr("Thinking…")
INDENT = 5  # puts the line beside the thoughts below the middle of the arrow
# Thoughts are read less than answers: smaller and paler than these.
SHARE = Type.BODY / Type.LARGE


class ThoughtsView(Dressed, QWidget):
    """Hidden while there are no thoughts; folded until it is clicked, also while they grow."""

    def __init__(self, tools: TextTools) -> None:
        super().__init__()
        self._tools = tools
        self._pieces: list[str] = []
        self.head = QToolButton()
        self.head.setObjectName("thoughtsHead")
        self.head.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.head.setCursor(Qt.CursorShape.PointingHandCursor)
        self.head.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.head.setCheckable(True)
        self.head.toggled.connect(self._on_toggled)
        self._view: MarkdownView | None = None
        self._body = QFrame()
        self._body.setObjectName("thoughtsBody")
        self._inner = fill(QHBoxLayout(self._body), margins=(Space.S + 2, 0, 0, 0))
        self._body.hide()
        column = fill(
            QVBoxLayout(self), (self.head, 0, Qt.AlignmentFlag.AlignLeft), spacing=Space.XS, margins=(0, 0, 0, Space.S)
        )
        self._inset = fill(QHBoxLayout(), self._body)
        column.addLayout(self._inset)
        self.dress()
        self.hide()

    @property
    def view(self) -> MarkdownView:
        """Where unfolded thoughts are. Made when it is wanted: most replies have none, or are never unfolded."""
        if self._view is None:
            self._view = MarkdownView(self._tools, _style(self._tools))
            self._view.setAccessibleName(tr("Thoughts"))
            self._inner.addWidget(self._view)
        return self._view

    @property
    def text(self) -> str:
        """All thoughts so far."""
        return "".join(self._pieces)

    @property
    def is_open(self) -> bool:
        """Whether the thoughts are shown."""
        return self.head.isChecked()

    def append(self, text: str) -> None:
        """Add to growing thoughts; a folded view writes nothing."""
        self._pieces.append(text)
        if self.is_open:
            self.view.append(text)

    def show_time(self, seconds: float, *, is_over: bool) -> None:
        """Say that the model thinks, and for how long by now, or for how long it did."""
        if is_over:
            self._say(_over(seconds * 1_000))
        else:
            self._say(tr("Thinking…  {seconds:.0f} s", seconds=seconds) if seconds >= 1 else THINKING)

    def show_ended(self, text: str, ms: float | None) -> None:
        """Show thoughts that are over; nothing where there were none."""
        if text != self.text:
            self._pieces = [text]
            if self.is_open:
                self.view.set_text(text)
        elif self.is_open:
            self.view.finish()
        if text:
            self._say(_over(ms))
        self.setVisible(bool(text))

    def restyle(self) -> None:
        """Follow a change of the tools' style."""
        if self._view is not None:
            self._view.set_style(_style(self._tools))

    def _say(self, words: str) -> None:
        self.head.setText(words)
        self.head.setAccessibleName(words)
        self.setVisible(True)

    def _on_toggled(self, is_open: bool) -> None:
        if is_open:
            self.view.set_text(self.text)
        self._body.setVisible(is_open)
        self.dress()

    def dress(self) -> None:
        """Draw the arrow, and place what is below it."""
        fill(self._inset, margins=(scaled(ICON) // 2 + INDENT, 0, 0, 0))
        set_icon(self.head, "down" if self.is_open else "right", colours().muted, colours().disabled, ICON)
        self.head.setAccessibleDescription(tr("Shown") if self.is_open else tr("Folded"))


def _over(ms: float | None) -> str:
    return tr("Thoughts") if ms is None else tr("Thought for {ms}", ms=milliseconds(ms))


def _style(tools: TextTools) -> TextStyle:
    palette = replace(tools.style.palette, text=tools.style.palette.muted)
    return replace(tools.style, palette=palette, percent=round(tools.style.percent * SHARE))
