"""Fonts and colours of a document."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtGui import QColor, QTextCharFormat, QTextFormat

from ui.theme.tokens import Palette, Type, sized


@dataclass(frozen=True, slots=True)
class TextStyle:
    """Fonts and colours of a document."""

    palette: Palette
    family: str
    mono_family: str
    percent: int = 100  # of the design's sizes
    tints_drafts: bool = False

    def pixels(self, size: int) -> int:
        """Return a size of the design as it is shown."""
        return sized(size, self.percent)

    @property
    def body(self) -> QTextCharFormat:
        """Plain text."""
        form = QTextCharFormat()
        form.setFontFamilies([self.family])
        form.setProperty(QTextFormat.Property.FontPixelSize, self.pixels(Type.LARGE))
        form.setForeground(QColor(self.palette.text))
        return form

    @property
    def code(self) -> QTextCharFormat:
        """Text of a code block."""
        form = QTextCharFormat()
        form.setFontFamilies([self.mono_family])
        form.setFontFixedPitch(True)
        form.setProperty(QTextFormat.Property.FontPixelSize, self.pixels(Type.LABEL))
        form.setForeground(QColor(self.palette.code_text))
        return form
