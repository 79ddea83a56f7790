"""Bars that are painted: memory by kind in one line, and a list of labelled bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from ui.theme.colours import colours
from ui.theme.layouts import visual_rect
from ui.theme.text_size import scaled
from ui.theme.tokens import Space, Type
from ui.widgets.elided_label import draw_line

_HEIGHT = 12  # pixels of a bar
_KEY = 8  # pixels of the coloured square before a word


@dataclass(frozen=True, slots=True)
class BarPart:
    """A part of a whole: its ``colour`` is a name in the palette."""

    name: str
    value: float
    text: str
    colour: str


class _PaintedBars(QWidget):
    """What both kinds of bars have in common."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._name = name
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def _place(self, left: float, top: float, width: float, height: float) -> QRectF:
        """Return where something is painted that is given from left to right."""
        return visual_rect(self.layoutDirection(), QRectF(self.rect()), QRectF(left, top, width, height))

    @property
    def _line_height(self) -> int:
        return scaled(Type.CAPTION) + Space.S


class StackedBar(_PaintedBars):
    """Parts of a whole in one line, with their names below."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.parts: tuple[BarPart, ...] = ()
        self._placed: dict[object, list[tuple[int, int]]] = {}  # by width and font

    def show_parts(self, parts: Sequence[BarPart]) -> None:
        """Show other parts."""
        if tuple(parts) == self.parts:
            return
        self.parts = tuple(parts)
        self._placed.clear()
        words = ", ".join(f"{part.name} {part.text}" for part in parts)
        self.setAccessibleDescription(words)
        self.setToolTip(f"{self._name}: {words}")
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        """Ask for the bar and the lines of its key."""
        return QSize(120, self.heightForWidth(self.width()))

    def hasHeightForWidth(self) -> bool:
        """In a narrow window the key takes more lines."""
        return True

    def heightForWidth(self, width: int) -> int:
        """Return how many pixels bar and key take."""
        lines = self._places(width)
        n_lines = 1 + max((line for line, _ in lines), default=0)
        return scaled(_HEIGHT) + Space.S + n_lines * self._line_height

    def _places(self, width: int) -> list[tuple[int, int]]:
        """Return the line and the x of each word of the key; each new figure of the page asks for that."""
        asked = width, scaled(Type.CAPTION), self.font().key()
        if asked in self._placed:
            return self._placed[asked]
        places: list[tuple[int, int]] = []
        line = x = 0
        for part in self.parts:
            needed = _KEY + Space.XS + _advance(self, f"{part.name} {part.text}") + Space.L
            if x and x + needed > width:
                line, x = line + 1, 0
            places.append((line, x))
            x += needed
        self._placed[asked] = places
        return places

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint bar and key."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        total = sum(part.value for part in self.parts) or 1.0
        height = scaled(_HEIGHT)
        path = QPainterPath()
        path.addRoundedRect(QRectF(0, 0, self.width(), height), 4, 4)
        painter.setClipPath(path)
        x = 0.0
        for part in self.parts:
            width = self.width() * part.value / total
            painter.fillRect(self._place(x, 0, width, height), QColor(getattr(colours(), part.colour)))
            x += width
        painter.setClipping(False)
        font = painter.font()
        font.setPixelSize(scaled(Type.CAPTION))
        painter.setFont(font)
        for part, (line, left) in zip(self.parts, self._places(self.width()), strict=True):
            top = height + Space.S + line * self._line_height
            middle = top + self._line_height / 2
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(getattr(colours(), part.colour)))
            painter.drawRoundedRect(self._place(left, middle - _KEY / 2, _KEY, _KEY), 2, 2)
            painter.setPen(QColor(colours().muted))
            room = self._place(left + _KEY + Space.XS, top, self.width(), self._line_height)
            draw_line(painter, room, f"{part.name} {part.text}")


@dataclass(frozen=True, slots=True)
class Bar:
    """A labelled bar filled to ``share``, from 0 to 1; ``text`` stands at its end."""

    label: str
    share: float
    text: str


class BarList(_PaintedBars):
    """Bars below each other; hidden while there are none."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.bars: tuple[Bar, ...] = ()
        self.hide()

    def show_bars(self, bars: Sequence[Bar]) -> None:
        """Show other bars."""
        if tuple(bars) == self.bars:
            return
        self.bars = tuple(bars)
        words = "\n".join(f"{bar.label}: {bar.text}" for bar in bars)
        self.setAccessibleDescription(words)
        self.setToolTip(words)
        self.setVisible(bool(bars))
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        """Ask for a line for each bar."""
        return QSize(120, len(self.bars) * self._line_height)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint label, bar and figure of each."""
        if not self.bars:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        font = painter.font()
        font.setPixelSize(scaled(Type.CAPTION))
        painter.setFont(font)
        metrics = painter.fontMetrics()
        # Words are measured in whole pixels and drawn in parts of them.
        widest = max(metrics.horizontalAdvance(bar.label) for bar in self.bars) + 1
        left = min(self.width() // 3, widest) + Space.M
        right = max(metrics.horizontalAdvance(bar.text) for bar in self.bars) + Space.M
        height = self._line_height
        for number, bar in enumerate(self.bars):
            top, middle = number * height, number * height + height / 2
            painter.setPen(QColor(colours().muted))
            label = metrics.elidedText(bar.label, Qt.TextElideMode.ElideMiddle, left - Space.M)
            draw_line(painter, self._place(0, top, left, height), label)
            room = max(0.0, self.width() - left - right)
            draw_line(painter, self._place(self.width() - right + Space.M, top, right, height), bar.text)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(colours().pressed))
            painter.drawRoundedRect(self._place(left, middle - 3, room, 6), 3, 3)
            painter.setBrush(QColor(colours().accent))
            painter.drawRoundedRect(self._place(left, middle - 3, room * min(1.0, max(0.0, bar.share)), 6), 3, 3)


def _advance(widget: QWidget, text: str) -> int:
    font = widget.font()
    font.setPixelSize(scaled(Type.CAPTION))
    return QFontMetrics(font).horizontalAdvance(text)
