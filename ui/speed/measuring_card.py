"""What can be measured here: the machine, who drafts best, and whether drafting changes a text. One at a time."""

from __future__ import annotations

from statistics import median
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from models.formatting.figures import in_marks, size
from models.library import requests as ask
from models.library.values import MachineFacts, MeasuringStep, PairStep, Partners, Trouble, TroubleKind
from ui.client.library_link import LibraryLink
from ui.client.speeds import tokens_of
from ui.language import tr
from ui.speed.bars import Bar, BarList
from ui.speed.sentences import SHOW
from ui.theme.tokens import Space
from ui.widgets.flow_layout import FlowLayout
from ui.widgets.page_layout import ThinProgressBar, announce, plain_label, style_as

MEASURE, PAIR, VERIFY = tr("Measure this machine"), tr("Test this pair"), tr("Is it the same model?")
HINTS = {
    MEASURE: tr("How fast memory and processor are, in some ten seconds: speeds are predicted from it"),
    PAIR: tr("Measures who drafts best for this model, a minute for each, and keeps the fastest"),
    VERIFY: tr("Answers the same questions with drafts and without, and compares the texts; takes some minutes"),
}
WAITS = {
    "replies": tr("Waits for a reply that is being written…"),
    "a load": tr("Waits for a model that is being loaded…"),
}
# Of a test of pairs; ``{name}`` is who drafts.
STAGES = {"loading": tr("Loading {name}…"), "measuring": tr("Measuring {name}…")}
# What is answered when drafts are verified.
KINDS = {"story": tr("Stories"), "code": tr("Code"), "rename": tr("Renaming"), "copy": tr("Copying")}
NO_MODEL = tr("Load a model first: choose one above the chat.")
STOPPED = tr("Stopped.")


class MeasuringCard(QWidget):
    """Three buttons, what runs with its progress and a button to stop, and the result with bars."""

    measured = Signal()  # more is known than before
    grew = Signal()  # there is more to see
    library_wanted = Signal(str)  # the name of a model

    def __init__(self, link: LibraryLink) -> None:
        super().__init__()
        self._link, self._model = link, ""
        self._running, self._results = "", ""
        self._was_stopped = False
        self.buttons = {name: QPushButton(name) for name in HINTS}
        row = FlowLayout(spacing=Space.S)  # large text in a narrow window has no room for them beside each other
        for name, button in self.buttons.items():
            button.setToolTip(HINTS[name])
            button.clicked.connect(lambda checked=False, name=name: self.begin(name))
            row.addWidget(button)
        self.stage = plain_label(tone="caption")
        self.bar = ThinProgressBar(tr("Progress of the measurement"))
        self.stop = QPushButton(tr("Stop"))
        self.stop.setToolTip(tr("End the measurement; what is known already is kept"))
        self.stop.clicked.connect(self._on_stop)
        self.anyway = QPushButton(tr("Test anyway"))
        self.anyway.setToolTip(tr("Do not wait: figures measured beside other work may be wrong"))
        self.anyway.clicked.connect(lambda: self._link.ask(ask.BeginPairTest()))
        self.library = QPushButton(SHOW)
        self.library.clicked.connect(lambda: self.library_wanted.emit(self._model))
        going = QHBoxLayout()
        going.addWidget(self.bar, 1)
        going.addWidget(self.anyway)
        going.addWidget(self.stop)
        going.addStretch()
        self.result, self.bars = plain_label(tone=""), BarList(tr("Result"))
        self.bars_label = plain_label(tr("How fast replies are with drafts, against plain decoding"), "caption")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(Space.S)
        self.bars_label.hide()
        column.addLayout(row)
        column.addWidget(self.stage)
        column.addLayout(going)
        column.addWidget(self.result)
        column.addWidget(self.library, 0, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self.bars_label)
        column.addWidget(self.bars)
        self._show()

    def set_model(self, name: str) -> None:
        """Measure this model from now on."""
        self._model = name

    def begin(self, name: str) -> None:
        """Begin one of the measurements."""
        if name != MEASURE and not self._model:
            self._say(NO_MODEL, "muted")
            return
        request: Any = ask.MeasureMachine()
        if name == PAIR:
            request = ask.TestPair(self._model)
        elif name == VERIFY:
            request = ask.Verify(self._model)
        had_keyboard = self.buttons[name].hasFocus()
        self._running, self._was_stopped, self._results = name, False, ""
        self._show_bars({})
        self.stage.setText(tr("Measuring this machine…") if name == MEASURE else tr("Starting…"))
        self.bar.show_share(None if name == MEASURE else 0.0)
        self._link.ask(request, lambda value: self._on_end(), self._on_trouble, self._on_step)
        self._show()
        if had_keyboard:
            self.stop.setFocus()

    def _on_stop(self) -> None:
        self._was_stopped = True
        self._show_waiting(False)
        self.stage.setText(tr("Stopping…"))
        if self._running == PAIR:
            self._link.ask(ask.StopPairTest())
        else:
            self._link.ask(ask.StopMeasuring())

    def _on_step(self, step: PairStep | MeasuringStep) -> None:
        is_loading = step.stage.lower().startswith("loading")
        if isinstance(step, PairStep):
            if step.results:
                self._results = "\n".join(step.results)
                return
            self._show_waiting(step.stage in WAITS)
            words = WAITS.get(step.stage) or STAGES.get(step.stage, "{name}…").format(name=step.partner)
        elif step.report is not None:
            self._show_report(step.report)
            return
        else:
            words = tr("Loading the model…") if is_loading else tr("Comparing replies with drafts and without…")
        if not self._was_stopped:  # what comes later is of before
            self.stage.setText(words)
        self.bar.show_share(step.share, is_loading=is_loading)

    def _show_report(self, report: dict[str, Any]) -> None:
        self._results = verdict(report)
        self._show_bars({KINDS.get(kind, kind): gain for kind, gain in gains(report).items()})

    def _show_bars(self, found: dict[str, float]) -> None:
        """Show what drafts gain, by what it was gained with; none is longer than the best."""
        most = max([1.0, *found.values()])
        self.bars.show_bars([Bar(name, gain / most, in_marks(f"{gain:.2f}×")) for name, gain in found.items()])
        self.bars_label.setVisible(bool(found))
        self.grew.emit()

    def _on_end(self) -> None:
        was = self._running
        self._end(self._results or tr("Measured. Predictions use these figures from now on."), "")
        if was == PAIR:
            self._link.ask(ask.ShowPartners(self._model), self._on_partners, lambda trouble: None)
        elif was == MEASURE:
            self._link.ask(ask.ShowMachine(), self._on_machine, lambda trouble: None)
        self.measured.emit()

    def _on_machine(self, found: MachineFacts) -> None:
        if found.bandwidth and not self._running:
            words = tr(
                "Measured: memory reads {bandwidth} a second. Predictions use the new figures from now on.",
                bandwidth=size(found.bandwidth),
            )
            self._say(words, "")

    def _on_partners(self, found: Partners) -> None:
        self._show_bars({one.name: one.measured for one in found.partners if one.measured and not one.drafted_nothing})

    def _on_trouble(self, trouble: Trouble) -> None:
        if self._was_stopped:
            self._end(STOPPED, "muted")
            return
        lacks_pair = self._running == PAIR and trouble.kind is TroubleKind.UNUSABLE
        self._end(trouble.sentence, "" if lacks_pair else "problem")
        self.library.setVisible(lacks_pair)  # there it says who could draft

    def _end(self, words: str, tone: str) -> None:
        was, self._running = self._running, ""
        had_keyboard = self.stop.hasFocus() or self.anyway.hasFocus()
        self._say(words, tone)
        announce(self, words)
        if had_keyboard:
            self.buttons[was].setFocus()

    def _say(self, words: str, tone: str) -> None:
        style_as(self.result, "tone", tone)
        self.result.setText(words)
        self._show()

    def _show(self) -> None:
        is_going = bool(self._running)
        for button in self.buttons.values():
            button.setEnabled(not is_going)
        for part in (self.stage, self.stop):
            part.setVisible(is_going)
        self._show_waiting(False)
        self.result.setVisible(not is_going and bool(self.result.text()))
        self.library.hide()
        self.grew.emit()

    def _show_waiting(self, waits: bool) -> None:
        """A test that waits for other work does not go on, but may be begun all the same."""
        is_going, waits = bool(self._running), waits and not self._was_stopped
        self.bar.setVisible(is_going and not waits)
        self.anyway.setVisible(is_going and waits)


def gains(report: dict[str, Any]) -> dict[str, float]:
    """Return the median gain of each kind of text in a verification; none where nothing was drafted: that is noise."""
    found: dict[str, list[float]] = {}
    if (report.get("summary") or {}).get("drafted"):
        for row in report.get("rows") or ():
            if row.get("speedup") and row.get("mode") == "greedy":
                found.setdefault(str(row["kind"]), []).append(float(row["speedup"]))
    return {kind: median(of_kind) for kind, of_kind in found.items()}


def verdict(report: dict[str, Any]) -> str:
    """Return what a verification found, from the figures of its report."""
    found, n_all = report.get("summary") or {}, len(report.get("rows") or ())
    n_different, n_wrong = int(found.get("differences") or 0), int(found.get("beyond_near_tie") or 0)
    n_drafted, n_accepted = int(found.get("drafted") or 0), int(found.get("accepted") or 0)
    if not n_drafted and not n_different:
        return tr("Nothing was drafted, since plain decoding is faster here: there was nothing to compare.")
    if not n_different:
        said = tr("Drafting changed nothing: all {n_all:,} replies are the same, token for token.", n_all=n_all)
    elif not n_wrong:
        said = tr(
            "{n_same:,} of {n_all:,} replies are the same. Where the others part, two tokens were about equally "
            "likely, so rounding decided.",
            n_same=n_all - n_different,
            n_all=n_all,
        )
    else:
        said = tr(
            "Drafting CHANGED what the model says: {n_wrong:,} of {n_all:,} replies have a token that plain decoding "
            "was far from choosing.",
            n_wrong=n_wrong,
            n_all=n_all,
        )
    gain = tr("Guessing was right for {n_accepted:,} of {tokens}.", n_accepted=n_accepted, tokens=tokens_of(n_drafted))
    middle = found.get("speedup_median")
    if not middle:
        return f"{said} {gain}"
    speed = tr(
        "The median of {n_timed:,} timed replies, sampled ones too, is {median:.2f} times as fast as plain decoding. "
        "Each bar is the median of one kind, without sampled ones.",
        n_timed=sum(row.get("speedup") is not None for row in report.get("rows") or ()),
        median=middle,
    )
    return f"{said} {gain} {speed}"
