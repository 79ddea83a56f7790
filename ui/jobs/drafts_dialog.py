"""The texts behind a deep answer: its drafts, and the notes that were made of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QFrame, QLabel, QPushButton, QScrollArea, QVBoxLayout, QWidget

from ui.chat.markdown.markdown_view import MarkdownView
from ui.chat.markdown.text_tools import TextTools
from ui.language import tr
from ui.theme.text_size import scaled
from ui.theme.tokens import Space

WIDTH, HEIGHT = 680, 640


class DraftsDialog(QDialog):
    """Shows each text under its name, one below the other."""

    def __init__(self, question: str, texts: list[tuple[str, str]], tools: TextTools, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Drafts"))
        room = parent.window().size()
        self.resize(min(scaled(WIDTH), room.width() - 2 * Space.L), min(scaled(HEIGHT), room.height() - 2 * Space.L))
        form = QWidget()
        form.setObjectName("dialogForm")
        inside = QVBoxLayout(form)
        inside.setContentsMargins(Space.XL, Space.M, Space.XL, Space.M)
        inside.setSpacing(Space.S)
        self.views: list[MarkdownView] = []
        for name, text in texts:
            label, view = QLabel(name), MarkdownView(tools)
            label.setProperty("tone", "section")
            view.setAccessibleName(name)
            view.set_text(text)
            inside.addWidget(label)
            inside.addWidget(view)
            inside.addSpacing(Space.L)
            self.views.append(view)
        inside.addStretch()
        area = QScrollArea()
        area.setObjectName("dialogArea")
        area.setAccessibleName(tr("Drafts"))
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(form)
        title, close = QLabel(question), QPushButton(tr("Close"))
        title.setTextFormat(Qt.TextFormat.PlainText)
        title.setWordWrap(True)
        title.setProperty("tone", "title")
        close.clicked.connect(self.accept)
        close.setDefault(True)
        head, foot = QVBoxLayout(), QVBoxLayout()
        head.setContentsMargins(Space.XL, 0, Space.XL, 0)
        foot.setContentsMargins(Space.XL, 0, Space.XL, 0)
        head.addWidget(title)
        foot.addWidget(close, 0, Qt.AlignmentFlag.AlignRight)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, Space.L, 0, Space.L)
        column.addLayout(head)
        column.addWidget(area, 1)
        column.addLayout(foot)
        close.setFocus()


def texts_behind(answer: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the texts behind a deep answer of the server, each with its name; none where it was answered directly."""
    deep = (answer.get("timings") or {}).get("deep") or {}
    stages = [stage for stage in deep.get("stages") or () if isinstance(stage, dict)]
    return [text for stage in stages for text in _texts_of(stage)]


def _texts_of(stage: dict[str, Any]) -> Iterator[tuple[str, str]]:
    texts = [text for text in stage.get("texts") or () if isinstance(text, str) and text]
    for number, text in enumerate(texts, 1):
        name = tr("Notes on the drafts") if stage.get("stage") != "drafting" else tr("Draft {number}", number=number)
        yield name, text
