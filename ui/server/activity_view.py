"""What the server does: requests that run or wait, models in memory, and the end of its log."""

from __future__ import annotations

from functools import partial
from typing import Any

from PySide6.QtCore import QSignalBlocker, QTimer
from PySide6.QtGui import QHideEvent
from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit, QPushButton

from models.formatting.figures import duration, rate, size
from ui.client.api import Api
from ui.client.server_watch import ModelChoice, ServerWatch
from ui.client.speeds import CHOICE_OF, speed_of, tokens_of
from ui.language import dotted, tr
from ui.theme.colours import Dressed
from ui.theme.layouts import STRETCH, fill
from ui.theme.text_size import scaled
from ui.widgets.action_rows import ActionRow, ActionRows
from ui.widgets.fields import ChoiceField
from ui.widgets.icon_button import TextButton
from ui.widgets.page_layout import PageColumn, ProblemLabel

LOG_MS, LOG_LINES = 3_000, 100
PHASES = {
    "waiting": tr("waits"),
    "prefill": tr("reads the prompt"),
    "decode": tr("writes"),
    "embed": tr("makes vectors"),
}
MODEL_PHASES = {"ready": "", "loading": tr("loading"), "restarting": tr("starting again"), "failed": tr("did not load")}
LOADING = ("loading", "restarting")
TIPS = {
    "ready": tr("Use this model, and load it again if its settings have changed"),
    **dict.fromkeys(LOADING, tr("This model is being loaded")),
}
LOG_HEIGHT = 220  # pixels
CANCEL = tr("Cancel")


class ActivityView(Dressed, PageColumn):
    """Is fed with the server's events while it is seen; the log is asked for every few seconds."""

    def __init__(self, api: Api, watch: ServerWatch) -> None:
        super().__init__()
        self._api, self._watch = api, watch
        self.problem, self.model_problem = ProblemLabel(), ProblemLabel()
        section = self.add_section(tr("Now"), tr("Who asks, how urgent it is, and how fast the reply comes."))
        section.addWidget(self.problem)
        self.requests = ActionRows(tr("Requests"), tr("Nothing runs or waits."))
        self.requests.wanted.connect(
            lambda key, action: self._ask(self.problem, "DELETE", f"/slipstream/requests/{key}")
        )
        section.addWidget(self.requests)
        section = self.add_section(tr("Models in memory"), tr("A model is loaded as soon as a program asks for it."))
        self.models = ActionRows(tr("Models in memory"), tr("No model is loaded."))
        self.models.wanted.connect(self._on_model_wanted)
        section.addWidget(self.models)
        section.addWidget(self.model_problem)
        self.model = ChoiceField(tr("Model to load"))
        self.load = QPushButton(tr("Load"))
        self.load.clicked.connect(self._on_load)
        self.model.currentTextChanged.connect(lambda name: self._show_can_load())
        self._phases: dict[str, str] = {}  # of each model that is in memory or comes there
        row = fill(QHBoxLayout(), (self.model, 1), self.load)
        section.addLayout(row)
        section = self.add_section(tr("Log"), tr("What the server noted last, the newest below."))
        self.log = QPlainTextEdit(readOnly=True)
        self.log.setObjectName("snippet")
        self.log.setAccessibleName(tr("Log"))
        self.log.setTabChangesFocus(True)
        self.log.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.log.setPlaceholderText(tr("The log is empty."))
        self.copy = TextButton(tr("Copy the log"))
        self.copy.clicked.connect(self._on_copy)
        section.addWidget(self.log)
        foot = fill(QHBoxLayout(), STRETCH, self.copy)
        section.addLayout(foot)
        self._timer = QTimer(self, interval=LOG_MS)
        self._timer.timeout.connect(self._look_at_log)
        watch.models_changed.connect(self._show_choices)
        watch.load_failed.connect(lambda sentence, model: self._say(self.model_problem, sentence))
        self._show_choices(watch.models)
        self.dress()

    def look(self) -> None:
        """Follow the log while this is seen."""
        self._look_at_log()
        self._timer.start()

    def hideEvent(self, event: QHideEvent) -> None:
        """Let it be."""
        super().hideEvent(event)
        self._timer.stop()

    def show_state(self, found: dict[str, Any]) -> None:
        """Show an event of the server."""
        self.requests.show_rows([_request_row(one) for one in found.get("requests") or ()])
        models = [one for one in found.get("models") or () if one.get("phase") != "empty"]
        self.models.show_rows([_model_row(one, found) for one in models])
        self._phases = {str(one["model"]): str(one.get("phase")) for one in models}
        self._show_can_load()

    def dress(self) -> None:
        """Leave room for some lines of the log."""
        self.log.setFixedHeight(scaled(LOG_HEIGHT))

    def _ask(self, problem: ProblemLabel, method: str, path: str, body: dict[str, Any] | None = None) -> None:
        self._api.ask(method, path, body, lambda found: problem.hide(), partial(self._say, problem))

    def _say(self, problem: ProblemLabel, sentence: str) -> None:
        problem.say(sentence)
        self.ensureWidgetVisible(problem)

    def _show_choices(self, models: tuple[ModelChoice, ...]) -> None:
        chosen = self.model.currentText()
        with QSignalBlocker(self.model):
            self.model.clear()
            for model in models:
                if model.remote is None:
                    self.model.addItem(model.name, model.alias_of or model.name)
            self.model.setCurrentText(chosen or self._watch.state.model or "")
        self._show_can_load()

    def _show_can_load(self) -> None:
        phase = self._phases.get(str(self.model.currentData()))
        can_load = self.model.count() > 0 and phase not in LOADING
        if not can_load and self.window().focusWidget() is self.load:
            self.model.setFocus()
        self.load.setEnabled(can_load)
        self.load.setText(tr("Load again") if phase == "ready" else tr("Load"))
        self.load.setToolTip(TIPS.get(phase or "") or tr("Load this model now"))

    def _on_model_wanted(self, model: str, action: str) -> None:
        if action == CANCEL:
            self._watch.cancel_load()
        else:
            self._ask(self.model_problem, "POST", "/slipstream/unload", {"model": model})

    def _on_load(self) -> None:
        if self.model.currentText():
            self._watch.load(self.model.currentText(), self.model_problem.hide)

    def _look_at_log(self) -> None:
        if self._api.is_connected:
            self._api.ask("GET", f"/slipstream/log?lines={LOG_LINES}", None, self._on_log, lambda sentence: None)

    def _on_log(self, found: dict[str, Any]) -> None:
        text = "\n".join(str(line) for line in found.get("lines") or ())
        if text == self.log.toPlainText():
            return
        bar = self.log.verticalScrollBar()
        was_at_end, before = bar.value() >= bar.maximum(), bar.value()
        self.log.setPlainText(text)
        bar.setValue(bar.maximum() if was_at_end else before)

    def _on_copy(self) -> None:
        self.log.selectAll()
        self.log.copy()
        cursor = self.log.textCursor()
        cursor.clearSelection()
        self.log.setTextCursor(cursor)
        self.copy.say(tr("Copied"))


def _amount(one: dict[str, Any]) -> str:
    n_generated, n_inputs = one.get("n_generated") or 0, one.get("n_inputs")
    if n_inputs is not None:
        return tr("{n_inputs:,} texts", n_inputs=n_inputs) if n_inputs != 1 else tr("1 text")
    if not n_generated:
        return tr("{tokens} of prompt", tokens=tokens_of(one.get("n_prompt") or 0))
    return tokens_of(n_generated)


def _request_row(one: dict[str, Any]) -> ActionRow:
    speed = one.get("tokens_per_second")
    parts = [
        CHOICE_OF[speed_of(one.get("lane"))].name,
        PHASES.get(str(one.get("phase")), str(one.get("phase"))),
        _amount(one),
        f"{rate(speed)} tok/s" if speed else "",
        duration(float(one.get("seconds") or 0)),
    ]
    who = str(one.get("who") or tr("This window"))
    return ActionRow(str(one["id"]), dotted(who, str(one.get("model"))), dotted(*parts), (CANCEL,))


def _model_row(one: dict[str, Any], state: dict[str, Any]) -> ActionRow:
    """Return how a model is shown. The ``state`` tells more of the chosen one, whose load can be ended too."""
    phase, n_bytes, n_active = str(one.get("phase")), one.get("n_bytes"), int(one.get("active") or 0)
    work = tr("{n_active} at work", n_active=n_active) if n_active else tr("idle")
    said = MODEL_PHASES.get(phase, phase) or work
    share = float(one.get("progress") or 0.0) if phase == "loading" else None
    line = dotted(size(n_bytes) if n_bytes else "", said)
    is_chosen = one["model"] == state.get("model")
    ends_load = (CANCEL,) if is_chosen and phase in LOADING else ()
    actions = (tr("Unload"),) if phase == "ready" else ends_load
    problem = str(state.get("problem") or "") if is_chosen and phase == "failed" else ""
    return ActionRow(str(one["model"]), str(one["model"]), line, actions, share, problem=problem)
