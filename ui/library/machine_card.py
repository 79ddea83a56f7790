"""What a model is on this machine: whether it fits, and how fast it is."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton, QVBoxLayout, QWidget

from models.estimate.fit.summary import FitVerdict
from models.library import requests as ask
from models.library.values import ModelFitReport, ModelRow, Trouble
from ui.client.library_link import LibraryLink
from ui.language import tr
from ui.library.labels import machine_facts
from ui.theme.tokens import Space
from ui.widgets.facts_grid import FactsGrid
from ui.widgets.page_layout import ProblemLabel, ThinProgressBar, plain_label, style_as

MEASURE, AGAIN = tr("Measure this machine"), tr("Measure this machine again")
STOP = tr("Stop measuring")
TONES = {FitVerdict.GREEN: "muted", FitVerdict.TIGHT: "warning"}


class MachineCard(QWidget):
    """Asks for a judgement of the model that is shown, and shows it."""

    def __init__(self, link: LibraryLink) -> None:
        super().__init__()
        self._link, self._asked = link, 0
        self._name = ""
        self._is_measuring = self._was_stopped = False
        title = QLabel(tr("On this machine"))
        title.setProperty("tone", "section")
        self.sentence, self.facts = plain_label(can_select=True), FactsGrid()
        self.measure, self.problem = QPushButton(MEASURE), ProblemLabel()
        self.measure.setToolTip(
            tr("How fast memory and processor are, in about ten seconds: speeds are predicted from it")
        )
        self.measure.clicked.connect(self._on_measure)
        self.stage = plain_label(tone="caption")
        self.bar = ThinProgressBar(tr("Progress of the measurement"))
        self.bar.show_share(None)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(Space.XS)
        column.addWidget(title)
        column.addWidget(self.sentence)
        column.addSpacing(Space.XS)
        column.addWidget(self.facts)
        column.addSpacing(Space.XS)
        column.addWidget(self.measure, 0, Qt.AlignmentFlag.AlignLeft)
        for part in (self.stage, self.bar):
            column.addWidget(part)
            part.hide()
        column.addWidget(self.problem)

    def show_model(self, row: ModelRow) -> None:
        """Judge a model; one that cannot be used is not."""
        self.setVisible(row.problem is None)
        if row.problem is not None:
            self._link.forget(self._asked)
            self._name = ""
            return
        if row.name != self._name:
            self.facts.hide()
            self._say(tr("Judging it…"), "muted")
        self._name = row.name
        self.look()

    def look(self) -> None:
        """Judge again: who drafts has changed."""
        self._link.forget(self._asked)
        if self._name:
            self._asked = self._link.ask(ask.GetModelFit(self._name), self._on_judged, self._on_trouble)

    def _on_judged(self, judged: ModelFitReport) -> None:
        fit = judged.fit
        why = [tr("The speed is not known yet: “{MEASURE}” finds it out.", MEASURE=MEASURE)] if fit.lacks_speed else []
        self._say(" ".join((fit.sentence, *fit.notes, *why)), TONES.get(fit.verdict, "problem"))
        self.facts.show_facts(machine_facts(judged))
        self.facts.show()
        if not self._is_measuring:
            self.measure.setText(MEASURE if fit.lacks_speed else AGAIN)

    def _on_trouble(self, trouble: Trouble) -> None:
        self.facts.hide()
        self._say(trouble.sentence, "problem")

    def _on_measure(self) -> None:
        if self._is_measuring:
            self._was_stopped = True
            self.stage.setText(tr("Stopping…"))
            self._link.ask(ask.StopMeasuring())
            return
        self._was_stopped = False
        self.stage.setText(tr("Measuring this machine…"))
        self._show_measuring(True)
        self.problem.hide()
        self._link.ask(ask.MeasureMachine(), lambda done: self._on_measured(), self._on_not_measured)

    def _on_measured(self) -> None:
        self._show_measuring(False)
        self.look()

    def _on_not_measured(self, trouble: Trouble) -> None:
        self._show_measuring(False)
        self.look()
        if not self._was_stopped:
            self.problem.say(trouble.sentence)

    def _show_measuring(self, is_measuring: bool) -> None:
        self._is_measuring = is_measuring
        self.measure.setText(STOP if is_measuring else AGAIN)
        for part in (self.stage, self.bar):
            part.setVisible(is_measuring)

    def _say(self, words: str, tone: str) -> None:
        self.sentence.setText(words)
        style_as(self.sentence, "tone", tone)
