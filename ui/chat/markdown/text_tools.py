"""What every message needs to show its text."""

from __future__ import annotations

from dataclasses import dataclass

from ui.chat.markdown.code_colours import CodeColours
from ui.chat.markdown.formulas import Formulas
from ui.chat.markdown.markdown import Markdown
from ui.theme.text_style import TextStyle


@dataclass(slots=True)
class TextTools:
    """One parser, one colourer, the drawings of formulas and the style in use, shared by all messages."""

    markdown: Markdown
    colours: CodeColours
    style: TextStyle
    formulas: Formulas
