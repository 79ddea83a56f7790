"""Watches the server: the state of its model, and which models there are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from ui.client.api import Api, ServerState
from ui.client.problems import MODEL_GONE

BUSY_MS = 250  # while a model loads
CALM_MS = 3_000
LIVE_MS = 250  # while a reply is on its way, for the gauges


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model that can be chosen; one of a ``remote`` server needs no loading."""

    name: str
    is_toy: bool = False
    remote: str | None = None
    can: tuple[str, ...] | None = None  # completion, vision, embedding, …; None where that is not known
    alias_of: str | None = None  # the model that has this other name

    @property
    def calls_tools(self) -> bool:
        """False where it is known that its template has no place for tools."""
        return self.can is None or "tools" in self.can


class ServerWatch(QObject):
    """Asks for the state again and again, faster while it is about to change."""

    state_changed = Signal(object)  # ServerState
    looked = Signal(object, object)  # ServerState, each time, and the Snapshot of what ran since the last time, or None
    models_changed = Signal(object)  # tuple[ModelChoice, ...]
    load_failed = Signal(str, str, bool)  # a sentence, the model that was wanted, and whether it is here
    load_cancelled = Signal(str, str)  # the model that was being loaded, and the one that was there before, "" none

    def __init__(self, api: Api, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._api = api
        self.state = ServerState()
        self.models: tuple[ModelChoice, ...] = ()
        self._asked: object | None = None  # which answer is still to come
        self._asked_models: object | None = None  # the latest question for them
        self._is_live = False
        self._told = ServerState()  # what was looked at last
        self._was_loaded = ""  # the last model that was ready
        self._timer = QTimer(self, interval=BUSY_MS)
        self._timer.timeout.connect(self.look)
        api.before_reply = self._revive

    def start(self) -> None:
        """A server is there: look at it from now on."""
        self._asked = None
        self._timer.start(BUSY_MS)
        self.look()

    def stop(self, is_gone: bool = False) -> None:
        """There is no server to look at; ``is_gone`` says that none will come by itself."""
        self._timer.stop()
        self._asked = None  # what it still answers is of before
        self._tell(ServerState())
        self._take(ServerState(phase="gone" if is_gone else "unknown"))

    def set_live(self, is_live: bool) -> None:
        """Ask often while replies are on their way, and once when they have ended: for the figures of the last one."""
        self._is_live = is_live
        self._keep_pace()
        if is_live or self._asked is None:
            self.look()
        else:
            QTimer.singleShot(LIVE_MS, self, self.look)  # the answer to come may be older than the end

    def look(self) -> None:
        """Ask now, unless an answer is still to come."""
        if self._asked is None and self._api.is_connected:
            asked = self._asked = object()
            self._api.state(partial(self._on_state, asked), lambda problem: self._on_failure(asked))

    def look_at_models(self) -> None:
        """Ask which models there are; the answer to an earlier question may come later, and counts no more."""
        asked = self._asked_models = object()
        self._api.models(partial(self._on_models, asked), lambda problem: None)

    def calls_tools(self, model: str | None) -> bool:
        """Return False where it is known that a model cannot call tools; None is the one that is loaded."""
        name = model or self.state.model
        return all(one.calls_tools for one in self.models if one.name == name)

    def load(
        self, model: str, began: Callable[[], object] = lambda: None, failed: Callable[[], object] | None = None
    ) -> None:
        """Ask for another model, or for the same one with what was set for it since.

        ``failed`` is called in place of ``load_failed``.
        """

        def on_began() -> None:
            self._timer.start(BUSY_MS)
            self.look()
            began()

        def on_failed(sentence: str) -> None:
            if failed is None:
                self.load_failed.emit(sentence, model, MODEL_GONE not in codes)
            else:
                failed()

        codes = list[str]()
        self._api.load(
            model,
            on_began,
            on_failed,
            lambda error: codes.append(str(error.get("code"))),
        )

    def _revive(self, model: str | None, then: Callable[[], object]) -> None:
        """An engine that died again and again refuses for seconds: who asks it for a reply has it started now."""
        if self.state.phase == "failed" and self.state.model and model in (None, self.state.model):
            self.load(self.state.model, then, then)
        else:
            then()

    def unload(self, model: str, failed: Callable[[str], object]) -> None:
        """Free the memory of a model until it is asked for again; ``failed`` takes a sentence."""
        self._api.ask("POST", "/slipstream/unload", {"model": model}, lambda found: self.look(), failed)

    def cancel_load(self) -> None:
        """End the load of the model."""
        model = self.state.model or ""

        def on_answer(was_loading: bool) -> None:
            if was_loading:
                self.load_cancelled.emit(model, self._was_loaded if self._was_loaded != model else "")
            self.look()

        self._api.cancel_load(on_answer)

    def take(self, state: ServerState) -> None:
        """Take in a state that the server told by itself: it need not be asked for a while."""
        self._asked = None  # what is still to come is older
        self._take(state)
        self._tell(state)
        self.state = state
        if self._timer.isActive():
            self._timer.start(self._pace())

    def _tell(self, state: ServerState) -> None:
        seen, self._told = state.figures_since(self._told), state
        self.looked.emit(state, seen)

    def _on_state(self, asked: object, state: ServerState) -> None:
        if asked is not self._asked:
            return
        self._asked = None
        self._take(state)
        self._tell(state)
        self.state = state
        self._keep_pace()

    def _keep_pace(self) -> None:
        pace = self._pace()
        if self._timer.isActive() and self._timer.interval() != pace:
            self._timer.start(pace)

    def _pace(self) -> int:
        if self.state.phase not in ("ready", "failed", "empty"):
            return BUSY_MS
        is_working = self.state.snapshot is not None and not self.state.snapshot.is_idle
        return LIVE_MS if self._is_live or is_working else CALM_MS

    def _on_failure(self, asked: object) -> None:
        # The process is watched elsewhere; a missed answer only means to ask again, and that the figures are old.
        if asked is self._asked:
            self._asked = None
            self.state = replace(self.state, snapshot=None)
            self._tell(replace(self.state, phase="unknown"))

    def _take(self, state: ServerState) -> None:
        if state == self.state:
            return
        if state.phase == "ready" and state.model:
            self._was_loaded = state.model
        is_new_phase = (state.phase, state.model) != (self.state.phase, self.state.model)
        self.state = state
        self.state_changed.emit(state)
        if is_new_phase and state.phase not in ("unknown", "gone"):
            self.look_at_models()

    def _on_models(self, asked: object, found: list[dict[str, Any]]) -> None:
        if asked is not self._asked_models:
            return
        models = tuple(_choice(m) for m in found if m.get("id"))
        if models != self.models:
            self.models = models
            self.models_changed.emit(models)


def _choice(found: dict[str, Any]) -> ModelChoice:
    can = found.get("capabilities")
    names = tuple(str(one) for one in can) if isinstance(can, list) else None
    return ModelChoice(str(found["id"]), bool(found.get("is_toy")), found.get("remote"), names, found.get("alias_of"))
