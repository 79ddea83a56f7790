"""A race: the same prompt twice, plain and with drafts or by two models, in turns or at once, and measured.

In turns neither takes the machine from the other: that is how fast each one is. At once shows two models at work side
by side; what is measured then is what each got of a machine that both shared, and the picture says so. Two that memory
does not hold together take turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QPixmap, QShowEvent
from PySide6.QtWidgets import (
    QFileDialog,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from models.formatting.figures import rate
from ui.chat.conversation import TokenRate
from ui.chat.markdown.markdown_view import MarkdownView
from ui.chat.markdown.text_tools import TextTools
from ui.chat.messages.receipts import receipt_facts, why_failed
from ui.client.api import Api
from ui.client.chat_records import Timings
from ui.client.reply_stream import ReplyEnd, ReplyStream
from ui.client.speeds import tokens_of
from ui.language import dotted, tr
from ui.theme.layouts import STRETCH, fill
from ui.theme.tokens import Space
from ui.widgets.dialogs import Dialog, primary
from ui.widgets.elided_label import ElidedLabel, on_button
from ui.widgets.fields import ChoiceField
from ui.widgets.icon_button import TextButton
from ui.widgets.page_layout import ProblemLabel, ScrollColumn, announce, file_dialog, plain_label

SIZE = (900, 600)
MOST_TOKENS = 256  # of each reply: enough to measure, and over in a minute on slow machines
SEED = 1
EXAMPLE = tr("Explain in a few paragraphs how a suspension bridge carries its load.")
MEASURED = tr(
    "Same prompt, same seed, and up to {MOST_TOKENS} tokens. What counts is how fast they "
    "write, as the engine measures it.",
    MOST_TOKENS=MOST_TOKENS,
)
IN_TURNS = tr("One after the other, so that neither takes the machine from the other. {MEASURED}", MEASURED=MEASURED)
AT_ONCE = tr("At once: both share the machine, so this is not how fast each is alone. {MEASURED}", MEASURED=MEASURED)
NOT_TOGETHER = tr("They did not write at once: one had ended before the other began. {MEASURED}", MEASURED=MEASURED)
ONE_IN_MEMORY = tr(
    "Only one of these models can be in memory at a time, so they take turns: each is measured alone. {MEASURED}",
    MEASURED=MEASURED,
)
READYING = tr("Getting ready…")
SAME_MODEL = tr("At once two different models can race. To compare one model's two ways, let them take turns.")
DISTURBED = tr(
    "Something else used this machine meanwhile: drafts alone cannot make such a difference. Race again when it is "
    "quiet. {MEASURED}",
    MEASURED=MEASURED,
)
COMPANY = tr(
    "Other replies were written meanwhile, which alone may have made the difference. Race again when they have ended. "
    "{MEASURED}",
    MEASURED=MEASURED,
)
NO_DRAFTS = tr(
    "Nothing was drafted, so both ways were the same, and a difference is chance. {MEASURED}", MEASURED=MEASURED
)
CLOSE = 0.03  # shares of speed that are within the spread of measurements
SPREAD = 0.1  # the same of what drafts can bring at most: a larger gain is not theirs
MOST_LOSS = 1.5  # times as long as plainly: where drafts lose more, the engine has stopped drafting before


@dataclass(frozen=True, slots=True)
class Racer:
    """A model, with or without drafts."""

    model: str
    drafts: bool

    @property
    def name(self) -> str:
        """As it is shown."""
        return dotted(self.model, tr("with drafts") if self.drafts else tr("plain"))


def racers(models: Sequence[str]) -> list[Racer]:
    """Return who can race, the first model's two ways first."""
    return [Racer(model, drafts) for model in models for drafts in (False, True)]


def together(first: tuple[float, float], second: tuple[float, float]) -> float:
    """Return for how many seconds two were at work together, each from and to a time in seconds."""
    return max(0.0, min(first[1], second[1]) - max(first[0], second[0]))


def verdict(first: float, second: float) -> tuple[str, str]:
    """Return what is said of each of two speeds in tokens per second: of the faster one, by how much."""
    if min(first, second) <= 0:
        return "", ""
    if abs(first - second) <= CLOSE * max(first, second):
        return tr("As fast as the other"), tr("As fast as the other")
    words = tr("{first:.2f}× as fast", first=max(first, second) / min(first, second))
    return (words, "") if first > second else ("", words)


def most_gain(timings: Timings) -> float:
    """Return how many times as fast as plain decoding drafts can have been: as many as tokens came in a step."""
    return timings.decode_tokens / max(1, timings.decode_tokens - timings.accepted_tokens)


class RaceDialog(Dialog):
    """Two columns that write, one after the other or both at once."""

    def __init__(self, api: Api, tools: TextTools, models: Sequence[str], prompt: str, parent: QWidget) -> None:
        super().__init__(tr("Race"), SIZE, parent)
        self._api = api
        self._streams: dict[int, ReplyStream] = {}  # by number of the lane
        self._in_turns: list[int] = []  # lanes that are still to run, one after the other
        self._asked: object | None = None  # which models are in memory
        self._race = object()  # the one that runs, or ran last
        self._has_result = False
        self.prompt = QLineEdit(prompt or EXAMPLE)
        self.prompt.setAccessibleName(tr("Prompt of the race"))
        # Typing replaces what is offered. The cursor at the front leaves the beginning in sight.
        self.prompt.setSelection(len(self.prompt.text()), -len(self.prompt.text()))
        self.order = ChoiceField(tr("In turns or at once"))
        self.order.addItems([tr("In turns"), tr("At once")])
        self._can_be_at_once = len(models) > 1
        self.order.setToolTip("" if self._can_be_at_once else tr("Two models are needed to race at once"))
        self.order.currentIndexChanged.connect(lambda index: self._on_order())
        self.start, self.copy, self.save = (
            primary(tr("Start")),
            TextButton(tr("Copy picture")),
            TextButton(tr("Save picture…")),
        )
        self.start.clicked.connect(self._on_start)
        self.copy.clicked.connect(self._on_copy)
        self.save.clicked.connect(self._on_save)
        choices = racers(models)
        self.lanes = [_Lane(tools, choices, min(at, len(choices) - 1)) for at in (0, 1)]
        self.problem = ProblemLabel()
        for lane in self.lanes:
            lane.choice.currentIndexChanged.connect(lambda index: self._on_choice())
        self._lay_out()
        self._show_state()

    def _lay_out(self) -> None:
        self.picture = QFrame()
        self.picture.setObjectName("racePicture")
        title = ElidedLabel()
        title.setProperty("tone", "title")
        self._title = title
        self.note = plain_label(IN_TURNS, "caption")
        row = fill(QHBoxLayout(), spacing=Space.XL)
        for lane in self.lanes:
            row.addWidget(lane, 1)
        inside = QVBoxLayout(self.picture)
        inside.setContentsMargins(Space.XL, Space.L, Space.XL, Space.L)
        inside.setSpacing(Space.M)
        inside.addWidget(title)
        inside.addLayout(row, 1)
        inside.addWidget(self.note)
        # Flat buttons have an edge that is not seen.
        close = QPushButton(tr("Close"))
        close.clicked.connect(self.accept)
        foot = fill(QHBoxLayout(), self.copy, self.save, STRETCH, close, margins=(Space.L, 0, Space.XL, 0))
        head = fill(QHBoxLayout(), (self.prompt, 1), self.order, self.start, margins=(Space.XL, 0, Space.XL, 0))
        trouble = fill(QHBoxLayout(), self.problem, margins=(Space.XL, 0, Space.XL, 0))
        fill(
            QVBoxLayout(self), head, trouble, (self.picture, 1), foot, spacing=Space.S, margins=(0, Space.L, 0, Space.L)
        )
        self.prompt.textChanged.connect(lambda text: self._show_state())

    @property
    def is_running(self) -> bool:
        """True until both have ended."""
        return bool(self._streams) or self._asked is not None

    @property
    def is_at_once(self) -> bool:
        """Whether both write at once."""
        return self.order.currentIndex() == 1

    def done(self, result: int) -> None:
        """Stop when the dialog closes."""
        self._leave()
        super().done(result)

    def showEvent(self, event: QShowEvent) -> None:
        """Give Start and Stop one width: what stands beside them stays where it is."""
        super().showEvent(event)
        widths = []
        for words in (tr("Stop"), tr("Start")):
            self.start.setText(words)
            widths.append(self.start.sizeHint().width())
        self.start.setMinimumWidth(max(widths))
        self._show_state()

    def _on_order(self) -> None:
        first, second = self.lanes
        if self.is_at_once and first.racer.model == second.racer.model:
            second.choose_other_than(first.racer.model)
        self._on_choice()

    def _on_choice(self) -> None:
        """Forget figures that others or another order gave."""
        for lane in self.lanes:
            lane.clear()
        self._has_result = False
        self.note.setText(AT_ONCE if self.is_at_once else IN_TURNS)
        self._show_state()

    def _on_start(self) -> None:
        if self.is_running:
            self._leave()
            return
        self.problem.hide()
        self._race = object()
        self._on_choice()
        if self.is_at_once:
            self._make_ready(0)
        else:
            self._run_in_turns(range(len(self.lanes)))

    def _leave(self) -> None:
        self._asked, self._in_turns = None, []
        streams, self._streams = self._streams, {}
        for stream in streams.values():
            stream.cancel()
            stream.deleteLater()
        for lane in self.lanes:
            if lane.details.text() == READYING:
                lane.details.setText("")
        self._show_state()

    def _make_ready(self, number: int) -> None:
        """Let both be loaded before they start, so that they do start together."""
        if number == len(self.lanes):
            self._look_into_memory()
            return
        self.lanes[number].details.setText(READYING)
        self._ask(number, 1, lambda end: self._make_ready(number + 1))

    def _look_into_memory(self) -> None:
        """Let both start, unless the second took the place of the first."""
        asked = self._asked = object()

        def on_state(found: dict[str, Any]) -> None:
            if asked is not self._asked:
                return
            self._asked = None
            there = {one.get("model") for one in found.get("models") or () if one.get("phase") == "ready"}
            absent = [number for number, lane in enumerate(self.lanes) if lane.racer.model not in there]
            if absent:
                self.note.setText(ONE_IN_MEMORY)
                for lane in self.lanes:
                    lane.clear()
                self._run_in_turns(sorted(range(len(self.lanes)), key=absent.__contains__))
            else:
                for number in range(len(self.lanes)):
                    self._run(number)

        def on_problem(sentence: str) -> None:
            if asked is self._asked:
                self._on_failed(1, sentence)

        self._api.ask("GET", "/slipstream/state", None, on_state, on_problem)

    def _run_in_turns(self, lanes: Sequence[int]) -> None:
        self._in_turns = list(lanes)
        self._run(self._in_turns.pop(0))

    def _run(self, number: int) -> None:
        lane = self.lanes[number]
        lane.clear()
        lane.details.setText(READYING)  # it may have to be loaded
        stream = self._ask(number, MOST_TOKENS, lambda end: self._on_finished(number, end))

        def grow(text: str, n_tokens: int) -> None:
            if int(time.monotonic()) > int(lane.wrote[1]):  # once in each second
                self._look_for_company(lane)
            lane.grow(text, n_tokens)

        stream.thought.connect(grow)
        stream.text.connect(grow)

    def _look_for_company(self, lane: _Lane) -> None:
        """Find out whether others are answered too: a chat that was left, a job, or another program."""
        race, n_ours = self._race, len(self._streams)

        def on_state(found: dict[str, Any]) -> None:
            n_active = sum(int(one.get("active") or 0) for one in found.get("models") or ())
            if race is not self._race:
                return
            lane.looks.append(n_active > n_ours)
            if lane.looks[-1] and self._has_result:
                self._show_result()

        self._api.ask("GET", "/slipstream/state", None, on_state, lambda sentence: None)

    def _ask(self, number: int, n_tokens: int, then: Callable[[ReplyEnd], object]) -> ReplyStream:
        racer = self.lanes[number].racer
        body: dict[str, Any] = {
            "model": racer.model,
            "messages": [{"role": "user", "content": self.prompt.text().strip()}],
            "max_tokens": n_tokens,
            "temperature": 0,
            "seed": SEED,
            "speculation": racer.drafts,
            "timings_per_token": True,
        }
        stream = self._streams[number] = self._api.chat(body)
        stream.finished.connect(lambda end: self._on_ended(number, stream, lambda: then(end)))
        stream.failed.connect(
            lambda problem, code: self._on_ended(
                number, stream, lambda: self._on_failed(number, why_failed(problem, code))
            )
        )
        self._show_state()
        return stream

    def _on_ended(self, number: int, stream: ReplyStream, then: Callable[[], object]) -> None:
        if self._streams.get(number) is stream:
            del self._streams[number]
            stream.deleteLater()
            then()
            self._show_state()

    def _on_finished(self, number: int, end: ReplyEnd) -> None:
        self.lanes[number].show_end(end.timings)
        if self.is_running:
            return
        if self._in_turns:
            self._run(self._in_turns.pop(0))
            return
        first, second = self.lanes
        self._has_result = first.speed > 0 and second.speed > 0
        if self.is_at_once and self.note.text() == AT_ONCE:
            self.note.setText(self._how_shared())
        self._show_result()
        ends = (f"{lane.racer.name}: {lane.figure.text()}, {lane.words.text()}" for lane in self.lanes)
        announce(self, ". ".join(ends))

    def _show_result(self) -> None:
        first, second = self.lanes
        doubt = self._doubt()
        for lane, words in zip(self.lanes, ("", "") if doubt else verdict(first.speed, second.speed), strict=True):
            lane.show_verdict(words)
            lane.show_company()
        if doubt:
            self.note.setText(doubt)

    def _doubt(self) -> str:
        """Return why the figures do not say which is faster, "" where they do."""
        slower, faster = sorted(self.lanes, key=lambda lane: lane.speed)
        # Others only make a reply slower. The faster one has won where the other would lose without them too: as if
        # nothing of it had been written while others were answered.
        has_company = max(slower.company, faster.company) > CLOSE
        if has_company and slower.speed >= (1 - CLOSE) * (1 - slower.company) * faster.speed:
            return COMPANY
        if slower.racer.model != faster.racer.model or slower.racer.drafts == faster.racer.drafts:
            return ""
        if not any(lane.has_drafted for lane in self.lanes):
            return NO_DRAFTS
        # A model's drafts seem to have brought more, or to have cost more, than they can.
        most = faster.most_gain * (1 + SPREAD) if faster.racer.drafts else MOST_LOSS
        return "" if faster.speed <= slower.speed * most else COMPANY if has_company else DISTURBED

    def _how_shared(self) -> str:
        """Return what is said of a race at once: how long they shared the machine, as it was seen."""
        first, second = (lane.wrote for lane in self.lanes)
        shared, whole = together(first, second), max(first[1], second[1]) - min(first[0], second[0])
        if shared <= 0:
            return NOT_TOGETHER
        return tr(
            "{AT_ONCE} They wrote together for {shared:.2f} of {whole:.2f} seconds.",
            AT_ONCE=AT_ONCE,
            shared=shared,
            whole=whole,
        )

    def _on_failed(self, number: int, problem: str) -> None:
        self._leave()
        lane = self.lanes[number]
        model = lane.racer.model
        self.problem.say(
            tr("{model} did not get to the end: {problem}", model=model, problem=problem)
            if lane.wrote[0]
            else tr("{model} did not answer: {problem}", model=model, problem=problem)
        )

    def _show_state(self) -> None:
        first, second = self.lanes
        is_same = self.is_at_once and first.racer.model == second.racer.model
        if not self.is_running and (is_same or self.problem.text() == SAME_MODEL):
            self.problem.setText(SAME_MODEL if is_same else "")
            self.problem.setVisible(is_same)
        self._title.setText(self.prompt.text())
        self.start.setText(tr("Stop") if self.is_running else tr("Start"))
        self.start.setEnabled(self.is_running or (bool(self.prompt.text().strip()) and not is_same))
        self.prompt.setEnabled(not self.is_running)
        self.order.setEnabled(not self.is_running and self._can_be_at_once)
        for lane in self.lanes:
            lane.choice.setEnabled(not self.is_running)
        self.copy.setEnabled(self._has_result and not self.is_running)
        self.save.setEnabled(self._has_result and not self.is_running)

    # The result as a picture.

    def taken(self) -> QPixmap:
        """Return the picture of the race."""
        return self.picture.grab()

    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setPixmap(self.taken())
        self.copy.say(tr("Copied"))

    def _on_save(self) -> None:
        dialog = file_dialog(self, tr("Save the picture"), tr("Pictures (*.png)"))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix("png")
        dialog.selectFile("race.png")
        dialog.fileSelected.connect(self.save_to)
        dialog.open()

    def save_to(self, path: str) -> None:
        """Write the picture to a file, or say that it cannot be written."""
        if self.taken().save(path, "PNG"):
            self.problem.hide()
            self.save.say(tr("Saved"))
        else:
            self.problem.say(tr("The picture cannot be saved as {path}: choose another folder.", path=path))


class _Lane(QWidget):
    """One of the two: who it is, how fast, and what it writes."""

    def __init__(self, tools: TextTools, choices: Sequence[Racer], at: int) -> None:
        super().__init__()
        self._choices, self._rate, self.speed = choices, TokenRate(), 0.0
        self.most_gain, self.has_drafted, self._details = 1.0, False, ""
        self.wrote = (0.0, 0.0)  # when the first and the last text came
        self.looks: list[bool] = []  # whether others were answered too, each time that it was asked
        self.choice = ChoiceField(tr("Who races"))
        self.choice.setMinimumWidth(0)
        self.choice.setSizeAdjustPolicy(ChoiceField.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.choice.addItems([on_button(racer.name) for racer in choices])
        self.choice.setCurrentIndex(at)
        self.figure, self.words, self.details = QLabel("–"), QLabel(), ElidedLabel()
        self.figure.setProperty("tone", "hero")
        self.words.setProperty("tone", "accent")
        self.words.setWordWrap(True)
        self.words.setContentsMargins(0, 0, 0, Space.XS)  # on the line of the figure
        self.details.setProperty("tone", "caption")
        self.view = MarkdownView(tools)
        self.view.setAccessibleName(tr("Reply"))
        inner = QWidget()
        fill(QVBoxLayout(inner), self.view, STRETCH, margins=(0, 0, Space.S, 0))
        head = fill(QHBoxLayout(), self.figure, (self.words, 1, Qt.AlignmentFlag.AlignBottom), STRETCH, spacing=Space.M)
        self.words.hide()
        fill(QVBoxLayout(self), self.choice, head, self.details, (ScrollColumn(inner), 1), spacing=Space.S, margins=0)

    @property
    def racer(self) -> Racer:
        return self._choices[self.choice.currentIndex()]

    @property
    def company(self) -> float:
        """The share of its time in which others were answered too."""
        return sum(self.looks) / max(1, len(self.looks))

    def choose_other_than(self, model: str) -> None:
        other = (at for at, racer in enumerate(self._choices) if racer.model != model and racer.drafts)
        self.choice.setCurrentIndex(next(other, self.choice.currentIndex()))

    def clear(self) -> None:
        self._rate, self.speed, self.wrote, self.looks = TokenRate(), 0.0, (0.0, 0.0), []
        self.view.set_text("")
        self.figure.setText("–")
        self.details.setText("")
        self.show_verdict("")

    def grow(self, text: str, n_tokens: int) -> None:
        now = time.monotonic()
        self._rate.add(n_tokens, now)
        self.wrote = self.wrote[0] or now, now
        self.details.setText("")
        self.view.append(text)
        if (live := self._rate.per_second(now)) > 0:
            self.figure.setText(f"{rate(live)} tok/s")

    def show_end(self, timings: Timings | None) -> None:
        self.view.finish()
        self.speed = timings.decode_per_second if timings is not None else 0.0
        if timings is not None:
            # On a busy machine much of it may have come to the window at one moment.
            began, ended = self.wrote
            self.wrote = min(began, ended - timings.decode_ms / 1_000), ended
        self.most_gain = most_gain(timings) if timings is not None else 1.0
        self.has_drafted = timings is not None and timings.drafted_tokens > 0
        self.figure.setText(f"{rate(self.speed)} tok/s" if self.speed > 0 else "–")
        self._details = _details(timings) if timings is not None else ""
        self.details.setText(self._details)

    def show_company(self) -> None:
        """Say below the figure whether others were answered for more of the time than measurements spread."""
        words = tr("others were answered for {share:.0%} of the time", share=self.company)
        self.details.setText(dotted(words if self.company > CLOSE else "", self._details))

    def show_verdict(self, words: str) -> None:
        self.words.setText(words)
        self.words.setVisible(bool(words))


def _details(timings: Timings) -> str:
    facts = dict(receipt_facts(timings))
    accepted = facts.get(tr("Drafts"))
    drafts = tr("drafts: {accepted}", accepted=accepted) if accepted else tr("no drafts")
    return dotted(tokens_of(timings.decode_tokens), drafts)
