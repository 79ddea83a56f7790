"""What every message needs to show its text."""

from __future__ import annotations

from dataclasses import dataclass

from ui.chat.code_colours import CodeColours
from ui.chat.document_writer import TextStyle
from ui.chat.markdown import Markdown
from ui.theme import Palette


@dataclass(slots=True)
class TextTools:
    """One parser, one colourer and the style in use, shared by all messages."""

    markdown: Markdown
    colours: CodeColours
    style: TextStyle

    @property
    def palette(self) -> Palette:
        """The palette in use."""
        return self.style.palette

    def set_style(self, style: TextStyle) -> None:
        """Use another style for what is written from now on."""
        self.style = style
        self.colours.set_palette(style.palette)
