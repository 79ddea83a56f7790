"""The texts behind a deep answer: its drafts, and the notes that were made of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from ui.chat.markdown.markdown_view import MarkdownView
from ui.chat.markdown.text_tools import TextTools
from ui.language import tr
from ui.theme.layouts import fill
from ui.theme.tokens import Space
from ui.widgets.dialogs import ReadingDialog

SIZE = (680, 640)


class DraftsDialog(ReadingDialog):
    """Shows each text under its name, one below the other."""

    def __init__(self, question: str, texts: list[tuple[str, str]], tools: TextTools, parent: QWidget) -> None:
        super().__init__(tr("Drafts"), question, SIZE, parent)
        inside = fill(QVBoxLayout(self.form), spacing=Space.S, margins=(Space.XL, Space.M, Space.XL, Space.M))
        self.views: list[MarkdownView] = []
        for name, text in texts:
            label, view = QLabel(name), MarkdownView(tools)
            label.setProperty("tone", "section")
            view.setAccessibleName(name)
            view.set_text(text)
            fill(inside, label, view, Space.L)
            self.views.append(view)
        inside.addStretch()


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
