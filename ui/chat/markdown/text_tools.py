"""What every message needs to show its text."""

from __future__ import annotations

from dataclasses import dataclass

from ui.chat.markdown.code_colours import CodeColours
from ui.chat.markdown.formulas import Formulas
from ui.chat.markdown.markdown import Markdown
from ui.theme.text_style import TextStyle
from ui.theme.tokens import Palette


@dataclass(slots=True)
class TextTools:
    """One parser, one colourer, the drawings of formulas and the style in use, shared by all messages."""

    markdown: Markdown
    colours: CodeColours
    style: TextStyle
    formulas: Formulas

    @property
    def palette(self) -> Palette:
        """The palette in use."""
        return self.style.palette

    def set_style(self, style: TextStyle) -> None:
        """Use another style for what is written from now on."""
        self.style = style
        self.colours.set_palette(style.palette)
