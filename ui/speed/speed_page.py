"""The speed page: how fast replies are, what limits them, what memory holds, and what would help."""

from __future__ import annotations

import gc
import os
import threading
import time
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from core.values.messages import Snapshot
from models.formatting.figures import in_marks, rate, size
from models.formatting.safe_text import one_line
from models.library import requests as ask
from models.library.values import Choosing, ModelFitReport, Partners, QuantiseOffer, Trouble
from ui.client.api import Api, ServerState
from ui.client.library_link import LibraryLink
from ui.client.live_events import LiveEvents
from ui.client.server_watch import ServerWatch
from ui.language import dotted, tr
from ui.speed import sentences
from ui.speed.bars import Bar, BarList, BarPart, StackedBar
from ui.speed.history import History
from ui.speed.measuring_card import MeasuringCard
from ui.theme.colours import Dressed
from ui.theme.text_size import scaled
from ui.theme.tokens import Space
from ui.widgets.facts_grid import FactsGrid
from ui.widgets.page_layout import PageColumn, ProblemLabel, plain_label, style_as

if TYPE_CHECKING:
    from ui.speed.plots import LinePlot

WIDTH = 1_040  # pixels: two plots side by side
PLOT_HEIGHT = 150  # pixels, also before what draws them is there
PLOTS = (tr("Tokens per second"), tr("tokens per second")), (tr("Memory read"), tr("GB per second"))
SHOW_MS = 500  # what changes more often cannot be read, and each change lays the page out anew
DRAW_MS = 1_000  # while no figures come: points are of a second. With them the lines are drawn too
MAKE_MS = 50  # between two looks whether a plot can be made
MACHINE_MS = 2_000
MOST_DEPTHS = 6
DASH = "–"
NOTHING, NOT_YET = tr("Nothing runs. Figures come with the next reply."), tr("The next reply will show it.")
BYTES, PEAK = tr("Memory read, GB per second"), tr("Memory read, GB per second; dashed is the most that was measured")


class SpeedPage(Dressed, PageColumn):
    """Follows the server while it is seen; before, it only takes in what the window asks for anyway."""

    library_wanted = Signal(str)  # the name of a model

    def __init__(self, api: Api, link: LibraryLink, watch: ServerWatch, history: History) -> None:
        super().__init__(width=WIDTH)
        self._api, self._link, self._watch, self._history = api, link, watch, history
        self._snapshot, self._is_last, self._why, self._drafter = Snapshot(), False, "", ""
        self._reply: Snapshot | None = None  # the model's last one
        self._fit: ModelFitReport | None = None
        self._partners: Partners | None = None
        self._copies: QuantiseOffer | None = None
        self._model: str | None = None
        self.setAccessibleName(tr("Speed"))
        self._add_now()
        self._add_reasons()
        self._add_machine()
        self._add_measuring()
        self._events = LiveEvents(api, watch, self)
        self._events.came.connect(self._on_event)
        self._latest: Snapshot | None = None
        self._soon = QTimer(self, singleShot=True, interval=SHOW_MS)
        self._soon.timeout.connect(self._show_latest)
        self._draw = QTimer(self, interval=MAKE_MS)
        self._draw.timeout.connect(self._draw_lines)
        self._ask_machine = QTimer(self, interval=MACHINE_MS)
        self._ask_machine.timeout.connect(self._look_at_machine)
        watch.state_changed.connect(self._on_state)
        watch.looked.connect(self._on_look)

    def _add_now(self) -> None:
        section = self.add_section(tr("Speed"))
        self.rate, self.unit, self.limit = QLabel(DASH), QLabel(tr("tokens per second")), plain_label(NOTHING)
        self.rate.setProperty("tone", "hero")
        self.unit.setProperty("tone", "muted")
        row = QHBoxLayout()
        row.setSpacing(Space.S)
        row.addWidget(self.rate, 0, Qt.AlignmentFlag.AlignBaseline)
        row.addWidget(self.unit, 0, Qt.AlignmentFlag.AlignBaseline)
        row.addStretch()
        section.addLayout(row)
        section.addWidget(self.limit)
        section.addSpacing(Space.XS)
        self.rate_label = plain_label(tr("Tokens written per second, the last three minutes"), "caption")
        self.bytes_label = plain_label(BYTES, "caption")
        for label in (self.rate_label, self.bytes_label):
            label.setAlignment(Qt.AlignmentFlag.AlignBottom)  # in a narrow window one of them takes two lines
        self.plots: list[LinePlot] = []
        # What draws them, or why nothing does, once a thread has imported it.
        self._drawing: threading.Thread | None = None
        self._drawn_by: list[type[LinePlot] | Exception] = []
        self._plots = QGridLayout()
        self._plots.setHorizontalSpacing(Space.XL)
        for at, label in enumerate((self.rate_label, self.bytes_label)):
            self._plots.setColumnStretch(at, 1)
            self._plots.addWidget(label, 0, at)
        section.addLayout(self._plots)
        self.no_lines = ProblemLabel()
        section.addWidget(self.no_lines)

    def _add_reasons(self) -> None:
        row = QHBoxLayout()
        row.setSpacing(Space.XL)
        why, helps = QVBoxLayout(), QVBoxLayout()
        for column, words in ((why, tr("Why")), (helps, tr("What would help"))):
            column.addWidget(plain_label(words, "title"))
            column.setSpacing(Space.S)
            row.addLayout(column, 1)
        self.why = plain_label(NOT_YET)
        self.depths_label, self.depths = (
            plain_label(tr("Guessed tokens that were right since the model was loaded, by place"), "caption"),
            BarList(tr("Acceptance by depth")),
        )
        self.depths_label.hide()
        for widget in (self.why, self.depths_label, self.depths):
            why.addWidget(widget)
        why.addStretch()
        self._helps = QVBoxLayout()
        self._helps.setSpacing(Space.S)
        self._help_rows: list[QWidget] = []
        self._shown_helps: tuple[object, ...] = ()
        helps.addLayout(self._helps)
        self.estimate = plain_label(tr("Gains are estimates."), "caption")
        self.not_done = ProblemLabel()
        helps.addWidget(self.estimate)
        helps.addWidget(self.not_done)
        helps.addStretch()
        self.column.insertLayout(self.column.count() - 1, row)

    def _add_machine(self) -> None:
        section = self.add_section(tr("This machine"))
        self.memory = StackedBar(tr("Memory"))
        self.facts = FactsGrid(can_halve=True)
        self.memory.hide()
        self.no_machine = plain_label(tr("Asking…"))
        section.addWidget(self.no_machine)
        section.addWidget(self.memory)
        section.addWidget(self.facts)

    def _add_measuring(self) -> None:
        section = self.add_section(
            tr("Measure"),
            tr("How fast this machine is, who drafts best, and whether drafts leave replies as they are."),
        )
        self.measuring = MeasuringCard(self._link)
        self.measuring.measured.connect(self._look_at_model)
        self.measuring.library_wanted.connect(self.library_wanted)
        # In a small window it is below what is seen.
        self.measuring.grew.connect(
            lambda: QTimer.singleShot(0, self, lambda: self.ensureWidgetVisible(self.measuring))
        )
        section.addWidget(self.measuring)

    # Seen or not.

    def showEvent(self, event: QShowEvent) -> None:
        """Follow the server."""
        super().showEvent(event)
        self._events.start()
        self._draw.start()
        self._ask_machine.start()
        self._look_at_machine()
        self._on_look(self._watch.state)
        self._on_state(self._watch.state)
        self._look_at_model()
        self._show_latest()

    def hideEvent(self, event: QHideEvent) -> None:
        """Let it be."""
        super().hideEvent(event)
        self._events.stop()
        self._soon.stop()
        self._draw.stop()
        self._ask_machine.stop()

    # What came.

    def _on_event(self, found: dict[str, Any]) -> None:
        draft, before = found.get("draft"), self._drafter
        self._why, self._drafter = (
            (str(draft.get(name) or "") for name in ("why", "name")) if isinstance(draft, dict) else ("", "")
        )
        if self._drafter != before:  # news come ten times a second
            self._show_helps()

    def _on_look(self, state: ServerState) -> None:
        if not self.isVisible():
            return
        now, last = state.snapshot, state.last_reply
        self._is_last = now is not None and now.is_idle and last is not None
        self._latest = now or Snapshot()
        if self._is_last and last is not None:
            # Depths are counted since the model was loaded, not for a reply.
            self._latest = replace(last, drafted_at=self._latest.drafted_at, accepted_at=self._latest.accepted_at)
            self._reply = last
        if not self._soon.isActive():
            self._soon.start()

    def _show_latest(self) -> None:
        if self._latest is not None:
            self._show(self._latest)
            self._draw_lines()  # painted with the figures in one go
            self._draw.start()

    def _show(self, shown: Snapshot) -> None:
        self._snapshot = shown
        if self._is_last:
            self._show_helps()
        reads = shown.prefill_rate > shown.decode_rate
        speed = max(shown.prefill_rate, shown.decode_rate)
        self.rate.setText(rate(speed) if speed > 0 else DASH)
        self._fit_rate()
        what = tr("tokens per second, reading the prompt") if reads else tr("tokens per second")
        is_average = self._is_last and speed > 0 and not reads  # else it was stopped before it wrote
        self.unit.setText(tr("{what}, average of the last reply", what=what) if is_average else what)
        # A line would also break behind the slash of a unit.
        self.limit.setText(self._limit(shown).replace("/", "/\N{WORD JOINER}") if speed > 0 else NOTHING)
        why = sentences.decision(shown, self._why, self._is_last, self._drafter)
        style_as(self.why, "tone", "" if why else "muted")
        self.why.setText(why or NOT_YET)
        self.bytes_label.setText(BYTES if self._peak is None else PEAK)
        pairs = list(zip(shown.drafted_at, shown.accepted_at, strict=False))[:MOST_DEPTHS]
        bars = [
            Bar(
                tr("Token {depth}", depth=depth),
                right / guessed,
                tr("{right:.0%} of {guessed:,}", right=right / guessed, guessed=guessed),
            )
            for depth, (guessed, right) in enumerate(pairs, 1)
            if guessed
        ]
        self.depths.show_bars(bars)
        self.depths_label.setVisible(bool(bars))

    def dress(self) -> None:
        """Leave room for the text."""
        self._plots.setRowMinimumHeight(1, scaled(PLOT_HEIGHT))
        self._fit_rate()

    def _fit_rate(self) -> None:
        """Keep the figure's size while it has room: each new size would lay the page out anew."""
        self.rate.ensurePolished()
        metrics = self.rate.fontMetrics()
        needed, spare = metrics.horizontalAdvance(self.rate.text()), metrics.horizontalAdvance("8")
        if not needed <= self.rate.width() <= needed + spare or self.rate.height() != metrics.height():
            self.rate.setFixedSize(needed, metrics.height())

    def _limit(self, shown: Snapshot) -> str:
        read = in_marks(f"{shown.bytes_per_second / 1e9:,.1f}")
        of_peak = (
            tr("{read} of {peak:,.1f} GB/s measured", read=read, peak=shown.peak / 1000000000.0)
            if shown.peak
            else tr("{read} GB/s", read=read)
        )
        if shown.is_in_cache:
            of_peak = tr("{read} GB/s from the processor's cache", read=read)
        share = (
            tr(", {peak_share:.0%} of what memory can", peak_share=shown.peak_share)
            if shown.peak_share and not shown.is_in_cache
            else ""
        )
        limit = sentences.LIMITS[shown.limited_by]
        return tr(
            "{limit}: it reads {of_peak}{share}.", limit=limit[0].upper() + limit[1:], of_peak=of_peak, share=share
        )

    def _draw_lines(self) -> None:
        now = time.monotonic()
        if self._snapshot.is_idle or self._is_last:
            self._history.add(now)
        if self._draw.interval() == MAKE_MS:
            self._add_plot()
        times, rates, gigabytes = self._history.lines(now)
        for plot, (values, peak) in zip(self.plots, ((rates, None), (gigabytes, self._peak)), strict=False):
            plot.show_line(now, times, values, peak)

    def _add_plot(self) -> None:
        """Make one plot, once what draws it is imported on a thread: on this one, the window would stand still."""
        if self._drawing is None:
            self._drawing = threading.Thread(target=_import_plots, args=(self._drawn_by,), name="plots", daemon=True)
            self._drawing.start()
        if not self._drawn_by:
            return
        (drawn_by,) = self._drawn_by
        if isinstance(drawn_by, Exception):
            reason = one_line(str(drawn_by))
            self.no_lines.say(tr("The lines cannot be drawn: {reason}. All else goes on.", reason=reason))
            self._draw.setInterval(DRAW_MS)
            return
        plot = drawn_by(*PLOTS[len(self.plots)])
        self._plots.addWidget(plot, 1, len(self.plots))
        self.plots.append(plot)
        if len(self.plots) == len(PLOTS):
            self._draw.setInterval(DRAW_MS)

    @property
    def _peak(self) -> float | None:
        """The most gigabytes per second that the plot could show; None where it is not known, or is not the limit."""
        shown = self._snapshot
        return shown.peak / 1e9 if shown.peak and not shown.is_in_cache else None

    def _look_at_machine(self) -> None:
        if self._api.is_connected:
            self._api.ask("GET", "/slipstream/machine", None, self._on_machine, lambda sentence: None)

    def _on_machine(self, found: dict[str, Any]) -> None:
        kinds = (
            (tr("Weights"), "weights", "accent"),
            (tr("KV cache"), "kv", "warning"),
            (tr("Kept prompts"), "kept", "code_name"),
            (tr("Other programs"), "other", "muted"),
            (tr("Free"), "free", "pressed"),
        )
        sizes = [(name, int(found.get(key) or 0), colour) for name, key, colour in kinds]
        self.no_machine.hide()
        self.memory.show()
        self.memory.show_parts([BarPart(name, n, size(n) if n else "0", colour) for name, n, colour in sizes])
        self.facts.show_facts(load_facts(found))

    # The model.

    def _on_state(self, state: ServerState) -> None:
        if state.model != self._model:
            self._model = state.model
            self._fit = self._partners = self._copies = self._reply = None
            self.measuring.set_model(state.model or "")
            if self.isVisible():
                self._look_at_model()

    def _look_at_model(self) -> None:
        self._show_helps()
        model = self._model
        if model is None or not self.isVisible():
            return

        def keep(name: str) -> Any:
            def take(value: Any) -> None:
                if self._model == model:
                    setattr(self, name, value)
                    self._show_helps()

            return take

        for name, request in (
            ("_fit", ask.GetModelFit(model)),
            ("_partners", ask.ShowPartners(model)),
            ("_copies", ask.OfferQuantise(model)),
        ):
            self._link.ask(request, keep(name), lambda trouble: None)

    def _show_helps(self) -> None:
        helps = sentences.helps(self._fit, self._partners, self._copies, self._reply, self._drafter)
        found = (tuple(helps), self._model is None, self._fit is None, self._reply is None)
        if found == self._shown_helps:
            return
        self._shown_helps = found
        for widget in self._help_rows:
            self._helps.removeWidget(widget)
            widget.hide()
            widget.deleteLater()
        self._help_rows = []
        for one in helps:
            self._add_help(one)
        if not helps:
            known = tr("Nothing that Slipstream knows of.") if self._reply else NOT_YET
            words = known if self._fit is not None else tr("Asking…")
            self._add_row(plain_label(words if self._model else tr("Load a model first.")))
        self.estimate.setVisible(any(one.gain is not None for one in helps))

    def _add_help(self, one: sentences.Help) -> None:
        words = one.words if one.gain is None else f"{one.words} ≈\N{NO-BREAK SPACE}{in_marks(f'{one.gain:.1f}')}×"
        holder = QWidget()
        column = QVBoxLayout(holder)
        column.setContentsMargins(0, 0, 0, Space.XS)
        column.setSpacing(Space.XS)
        column.addWidget(plain_label(words, ""))
        if one.action:
            button = QPushButton(one.action)
            button.setAccessibleName(f"{one.action}: {one.words}")
            button.clicked.connect(lambda: self._act(one))
            column.addWidget(button, 0, Qt.AlignmentFlag.AlignLeft)
        self._add_row(holder)

    def _add_row(self, widget: QWidget) -> None:
        self._help_rows.append(widget)
        self._helps.addWidget(widget)

    def _act(self, one: sentences.Help) -> None:
        model = self._model
        if model is None:
            return
        if one.target:
            request = ask.ChoosePartner(model, Choosing.NAMED.value, one.target)
            self.not_done.hide()
            self._link.ask(request, lambda found: self._watch.load(model, self._look_at_model), self._say_not_done)
        else:
            self.library_wanted.emit(model)

    def _say_not_done(self, trouble: Trouble) -> None:
        self.not_done.say(trouble.sentence)


def _import_plots(drawn_by: list[type[LinePlot] | Exception]) -> None:
    os.environ["PYQTGRAPH_QT_LIB"] = "PySide6"  # another program's choice would go before the Qt that is there
    try:
        plot = import_module("ui.speed.plots").LinePlot
        gc.freeze()  # it stays: the collector would go through all of it each time, for some tens of milliseconds
    except Exception as error:
        plot = error
    drawn_by.append(plot)


def load_facts(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what the machine is busy with; what cannot be read is left out.

    How busy the processor is takes two looks: its line is there from the first, so that nothing moves with the second.
    """
    cpu = found.get("cpu")
    facts = [(tr("Processor"), tr("{cpu:.0%} busy", cpu=float(cpu)) if cpu is not None else DASH)]
    if found.get("watts") is not None:
        facts.append((tr("Power"), tr("{watts:.0f} W, the processor", watts=float(found["watts"]))))
    for gpu in found.get("gpus") or ():
        load, used, total, watts = (gpu.get(name) for name in ("load", "used", "total", "watts"))
        parts = (
            tr("{load:.0%} busy", load=load) if load is not None else "",
            tr("{used} of {total}", used=size(used), total=size(total)) if used is not None and total else "",
            f"{watts:.0f} W" if watts is not None else "",
        )
        facts.append((str(gpu.get("name")), dotted(*parts)))
    return facts
