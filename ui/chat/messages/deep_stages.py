"""The stages of a deep reply in their order, the one at work marked."""

from __future__ import annotations

from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from ui.client.speeds import STAGES, DeepProgress
from ui.language import tr
from ui.theme.colours import Dressed, colours
from ui.theme.icons import pixmap
from ui.theme.layouts import fill
from ui.theme.tokens import Space
from ui.widgets.flow_layout import FlowLayout
from ui.widgets.page_layout import style_as

ICON = 14


class DeepStages(Dressed, QWidget):
    """Hidden until a deep reply says how far it is."""

    def __init__(self) -> None:
        super().__init__()
        self._stage = ""
        self._marks = {name: QLabel() for name in STAGES}
        self._names = {name: QLabel(words) for name, words in STAGES.items()}
        row = FlowLayout(spacing=Space.L)  # large text in a narrow chat has no room for all in one line
        for name in STAGES:
            part = QWidget()
            fill(QHBoxLayout(part), self._marks[name], self._names[name], spacing=Space.XS, margins=0)
            row.addWidget(part)
        fill(QVBoxLayout(self), row, margins=(0, Space.XS, 0, Space.XS))
        self.dress()
        self.hide()

    @property
    def stage(self) -> str:
        """The stage that is shown at work, "" while hidden."""
        return "" if self.isHidden() else self._stage

    def show_progress(self, progress: DeepProgress | None) -> None:
        """Show how far it is; nothing where the reply has no stages."""
        stage = progress.stage if progress is not None else ""
        self.setVisible(stage in STAGES)
        if stage != self._stage:
            self._stage = stage
            self.setAccessibleName(tr("Stage: {name}", name=STAGES.get(stage, "")))
            self.dress()

    def dress(self) -> None:
        """Draw the marks."""
        palette, names = colours(), list(STAGES)
        at = names.index(self._stage) if self._stage in STAGES else -1
        for number, name in enumerate(names):
            is_done = number < at
            mark, colour = ("check", palette.accent) if is_done else ("dot", palette.border_strong)
            if number == at:
                colour = palette.accent
            self._marks[name].setPixmap(pixmap(mark, colour, ICON, self.devicePixelRatioF()))
            style_as(self._names[name], "tone", "strong" if number == at else "muted")
