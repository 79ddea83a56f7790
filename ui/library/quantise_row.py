"""A smaller copy being made: how far it is, and a way to end it."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QProgressBar, QVBoxLayout, QWidget

from models.library.values import Quantising
from ui.library.labels import quantise_line, quantise_share
from ui.theme.tokens import Palette, Space
from ui.widgets.elided_label import ElidedLabel
from ui.widgets.icon_button import IconButton
from ui.widgets.plain_words import in_tip


class QuantiseRow(QFrame):
    """Shows one copy; its button ends it, or takes it off the list when it has ended."""

    cancel_wanted = Signal(int)

    def __init__(self, quantising: Quantising, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.quantising = quantising
        self.setObjectName("downloadCard")
        self.title, self.line, self.problem = ElidedLabel(), ElidedLabel(), QLabel()
        self.title.setProperty("tone", "strong")
        self.line.setProperty("tone", "caption")
        self.problem.setWordWrap(True)
        self.bar = QProgressBar()
        self.bar.setObjectName("downloadBar")
        self.bar.setRange(0, 1_000)
        self.bar.setTextVisible(False)
        self.cancel = IconButton("close", "Cancel", size=16)
        self.cancel.clicked.connect(lambda: self.cancel_wanted.emit(self.quantising.number))
        head = QHBoxLayout()
        head.setSpacing(0)
        head.addWidget(self.title, 1)
        head.addWidget(self.cancel)
        inner = QVBoxLayout()
        inner.setContentsMargins(0, 0, Space.S, 0)
        inner.setSpacing(Space.XS + 2)
        for widget in (self.bar, self.line, self.problem):
            inner.addWidget(widget)
        column = QVBoxLayout(self)
        column.setContentsMargins(Space.L, Space.S, Space.S, Space.M)
        column.setSpacing(Space.XS + 2)
        column.addLayout(head)
        column.addLayout(inner)
        self.show_quantising(quantising)

    def show_quantising(self, quantising: Quantising) -> None:
        """Show where it stands now."""
        self.quantising = quantising
        self.title.setText(quantising.name)
        self.title.setToolTip(in_tip(quantising.name))
        self.setAccessibleName(quantising.name)
        self.line.setText(quantise_line(quantising))
        self.bar.setValue(round(quantise_share(quantising) * 1_000))
        self.bar.setProperty("tone", "calm" if quantising.phase == Quantising.QUEUED else "busy")
        self.bar.style().polish(self.bar)
        self.bar.setVisible(not quantising.is_over)
        self.problem.setProperty("tone", "problem" if quantising.problem else "caption")
        self.problem.style().polish(self.problem)
        words = quantising.problem or quantising.notice or ""
        self.problem.setText(words)
        self.problem.setVisible(bool(words))
        self.cancel.show_as("close", "Take off the list" if quantising.is_over else "Cancel; nothing of it stays")

    def set_palette(self, palette: Palette) -> None:
        """Draw the icon for another palette."""
        self.cancel.set_palette(palette)
