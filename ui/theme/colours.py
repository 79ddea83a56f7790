"""The colours in use, and how widgets learn that they, or the size of text, are others now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent

from ui.theme.tokens import LIGHT, Palette

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget as _Widget
else:
    _Widget = object  # a class that is put before a widget's class brings no Qt class of its own
_in_use = LIGHT


def colours() -> Palette:
    """Return the palette to draw in. What is painted is painted again when it changes."""
    return _in_use


def use_colours(palette: Palette) -> None:
    """Let ``colours`` return another palette from now on."""
    global _in_use
    _in_use = palette


class Dressed(_Widget):
    """Stands before a widget's class. Calls ``dress`` when the style sheet has changed, or the size of text with it.

    A widget out of sight is dressed when it is shown. Qt goes through all widgets meanwhile: ``dress`` deletes none,
    and does not rely on another widget being dressed already.
    """

    def dress(self) -> None:
        """Draw icons in the colours in use, and set sizes for the text in use."""
        raise NotImplementedError

    def changeEvent(self, event: QEvent) -> None:
        """Dress anew."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.StyleChange:
            self.dress()
