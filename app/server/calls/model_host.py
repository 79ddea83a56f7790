"""The model that one engine has loaded, and the change to another one when a call wants it.

Calls take the model in the order they came: those that want the loaded model run side by side; one that wants
another waits until they have ended, then the engine loads it, and calls that came later wait behind it. A model that
was unloaded, on request or since nobody used it for long, is loaded again by the next call.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from app.pairing.chosen_draft import ChosenDraft
from app.server.calls.background_thread import BackgroundThread
from app.server.calls.engine_bridge import EngineBridge
from app.server.http.errors import RequestFailed
from app.settings.model_settings_store import note_use, user_settings
from app.settings.server_settings import ServerSettings
from core.values.engine_options import EngineOptions
from core.values.errors import BadOption, BadRequest, EngineUnavailable
from core.values.messages import EnginePhase, EngineState, Failure, FailureKind, LoadedModel
from core.values.model_settings import ModelSettings
from models.facts.projector import projector_beside
from models.formatting.sentence import Sentence, joined

if TYPE_CHECKING:
    from app.server.calls.schemas import LoraScale  # pydantic takes its time
    from core.process.supervisor import Supervisor
    from models.catalog.catalog import ModelEntry

_log = logging.getLogger("slipstream.server")
_NOTE_SECONDS = 60.0
_LEAVE_SECONDS = 1.0
LEAVING = Sentence("The server is shutting down.")
# The settings of a model that take effect when it is loaded.
_COUNT_AT_LOAD = ("ctx", "kv_type", "gpu_layers", "threads", "draft", "worker")


@dataclass(frozen=True, slots=True)
class NamedParts:
    """What the options of the server name for its model: who drafts for it, its projector; LoRA adapters are its too.

    Another model would have other words and sizes.
    """

    model: Path
    draft: Path | None = None
    mmproj: Path | None = None


def leaving() -> RequestFailed:
    """Return the error of calls that wait for a model, or come, while the server leaves."""
    return RequestFailed(Failure(FailureKind.SHUTDOWN, LEAVING))


class Change(Enum):
    """What happens to the model when a place in the line comes up."""

    NONE = "none"  # it is loaded if another model is there
    ANEW = "anew"  # it is loaded even if it is there
    OUT = "out"  # it leaves memory


class Place(NamedTuple):
    """A place in the line: who wants which model."""

    entry: ModelEntry
    turn: asyncio.Future[None]
    change: Change = Change.NONE


class ModelHost:
    """The loaded model of one engine and the line of calls that want one."""

    def __init__(
        self,
        engine: Supervisor,
        bridge: EngineBridge,
        settings: ServerSettings,
        draft_for: Callable[[ModelEntry], ChosenDraft] = lambda entry: ChosenDraft(),
        named: NamedParts | None = None,
    ) -> None:
        """``draft_for`` says who drafts for a model where nobody was named; it may read files, and does not raise."""
        self.engine, self.bridge = engine, bridge
        self._own_settings = user_settings()
        self._draft_for = draft_for
        self.draft = ChosenDraft()  # who drafts for the model, where that was decided here
        self._named = named
        # Models that have run here: if the file of a named draft is gone later, they are loaded without it.
        self._have_run: set[Path] = set()
        self.settings = settings
        # The scales for requests that give none.
        self.lora_scales = tuple(scale for _, scale in settings.lora)
        self.entry: ModelEntry | None = None  # of the catalogue: the model that is loaded or being loaded
        self._loaded_with = ModelSettings()
        self.model: LoadedModel | None = None  # kept while a dead engine is restarted
        self.asleep: LoadedModel | None = None  # as it was before it left memory; the next call wakes it
        self.state = EngineState(EnginePhase.EMPTY)  # where the engine stands with ``entry``
        # States of an earlier load are still on their way when another begins: those of the last one count.
        self._n_loads = 0
        self._line: deque[Place] = deque()
        self._is_kept_out = False  # the model, while its files are removed or moved
        self._unloads_next = False  # as soon as no call has the model
        self._idle_timer: asyncio.TimerHandle | None = None
        self._n_leases = 0
        self.used_at = time.monotonic()  # when a call began or ended last
        self._idle_seconds = settings.idle_unload
        self._changed = asyncio.Event()  # set when the state changes; then there is another one
        self._loader = BackgroundThread("model-loader")
        self.is_closing = False
        # A load that is late must not start an engine after the last one was stopped.
        self._starting = threading.Lock()
        self._note_next = 0.0

    def load(self, entry: ModelEntry, *, again: bool = False) -> None:
        """Begin to load a model at once, whatever runs; ``again`` where it failed and a request tries once more."""
        self.entry, self.model, self.asleep = entry, None, None
        self._unloads_next = False
        self._note_next = 0.0
        self._loaded_with = self.own
        self._n_loads += 1
        self.state = EngineState(EnginePhase.LOADING, load=self._n_loads)
        self.draft = ChosenDraft()
        # Not on the event loop: it reads headers, and waits until the memory of the model before is free.
        self._loader.submit(partial(self._load, entry, entry.path not in self._have_run, self._n_loads, again))

    def choose(self, entry: ModelEntry) -> None:
        """Take a model that the next call loads."""
        self.entry, self.asleep = entry, None

    @property
    def adapters(self) -> tuple[str, ...]:
        """The files of the LoRA adapters of the loaded model."""
        is_adapted = self.entry is not None and self._parts(self.entry) is not None
        return tuple(path for path, _ in self.settings.lora) if is_adapted else ()

    def lora_of(self, wanted: Sequence[LoraScale] | None) -> tuple[float, ...]:
        """Return the scale of each adapter: those ``wanted`` and 0 for the others, or those in effect.

        Raises BadRequest for an adapter that is not there.
        """
        n_adapters = len(self.adapters)
        if wanted is None:
            return self.lora_scales[:n_adapters]
        scales = [0.0] * n_adapters
        for one in wanted:
            if one.id >= n_adapters:
                known = f"0 to {n_adapters - 1}" if n_adapters else "none: start with --lora FILE"
                raise BadRequest(f"There is no LoRA adapter {one.id} here. There are {known}.", param="lora")
            scales[one.id] = one.scale
        return tuple(scales)

    @property
    def own(self) -> ModelSettings:
        """What the user has set for the loaded model."""
        return self._own_settings.of(self.entry.path) if self.entry is not None else ModelSettings()

    @property
    def sampling(self) -> dict[str, Any]:
        """What a request gets that does not say, by the fields of its body; the server's options go first."""
        return self.own.sampling | dict(self.settings.sampling)

    def _parts(self, entry: ModelEntry) -> NamedParts | None:
        return self._named if self._named is not None and self._named.model == entry.path else None

    def _load(self, entry: ModelEntry, must_draft: bool, number: int, again: bool) -> None:
        if number != self._n_loads:
            return  # another model was chosen meanwhile
        try:
            with self._starting:
                if not self.is_closing:
                    self.engine.prepare()
            options = self._options(entry, must_draft)
            with self._starting:
                if not self.is_closing and number == self._n_loads:
                    self.engine.load(options, number, again=again)
        except Exception as error:  # those who wait for the model must hear of it
            _log.exception("%s could not be loaded", entry.path)
            problem = Sentence("The engine could not be started: {error}", error=error)
            self.bridge.deliver((EngineState(EnginePhase.FAILED, problem=problem, load=number),))

    def _options(self, entry: ModelEntry, must_draft: bool) -> EngineOptions:
        """Return the engine's options. A draft that was found and not named must not cost the model."""
        own, uses_heads = self._own_settings.of(entry.path), True
        parts = self._parts(entry)
        named = parts.draft if parts is not None else None
        if named is None:
            draft = self._draft_for(entry)
            for notice in draft.notices:
                _log.warning("%s", notice)
            if self.entry is entry:
                self.draft = draft
            named, must_draft, uses_heads = draft.path, False, draft.uses_heads
        path = str(entry.path)
        fields = {
            "draft_path": str(named) if named is not None else None,
            "must_draft": must_draft,
            "uses_heads": uses_heads and self.settings.uses_draft,
            "lora": self.settings.lora if parts is not None else (),
            **self._sight(entry),
        }
        try:
            return replace(self.settings.engine_options(path, own), **fields)
        except BadOption as error:
            # The server's own options were checked at its start, so they are wrong only together with the model's.
            _log.warning("The settings of %s are not used with this server's options: %s", entry.name, error.message)
            return replace(self.settings.engine_options(path), **fields)

    def _sight(self, entry: ModelEntry) -> dict[str, Any]:
        """Return the options for the projector: one that was found and not named must not cost the model."""
        parts = self._parts(entry)
        if parts is not None and parts.mmproj is not None:
            return {"mmproj": str(parts.mmproj)}
        found = projector_beside(entry.path) if self.settings.uses_projector else None
        return {"mmproj": str(found) if found is not None else None, "must_see": False}

    def end(self) -> None:
        """Stop the engine for good. A load that still reads files, maybe of a slow disk, is not waited for."""
        self.is_closing = True
        self._loader.end(_LEAVE_SECONDS)
        with self._starting:
            self.engine.close()

    def close(self) -> None:
        """Let nobody in any more, and end every call: the server is leaving."""
        self.is_closing = True
        line, self._line = self._line, deque()
        for place in line:
            if not place.turn.done():
                place.turn.set_exception(leaving())
        self._wake()
        self.bridge.end_all(LEAVING)

    def attach(self) -> None:
        """Follow the engine on the running loop."""
        self.bridge.attach(self.engine, self._on_state)

    @property
    def files(self) -> tuple[Path, ...]:
        """The files behind what is loaded: the model's, and those of its draft and its projector."""
        if self.entry is None:
            return ()
        more = (self.model.draft_path, self.model.mmproj) if self.model is not None else ()
        return (self.entry.path, *(Path(one) for one in more if one))

    @property
    def name(self) -> str:
        """The name of that model, or ""."""
        return self.entry.name if self.entry is not None else ""

    @property
    def n_waiting(self) -> int:
        """How many calls wait for a model."""
        return len(self._line)

    @property
    def seconds_to_retry(self) -> float:
        """In how many seconds a request may try again to load a model that failed."""
        return max(self.state.retry_at - time.monotonic(), 0.0)

    @property
    def is_idle(self) -> bool:
        """Whether no call has the model or waits for one."""
        return not self._n_leases and not self._line

    def is_wanted(self, entry: ModelEntry) -> bool:
        """Whether this model will be the loaded one once the line is empty."""
        return self._line[-1].entry.path == entry.path if self._line else self._is_current(entry)

    @property
    def is_empty(self) -> bool:
        """Whether it has no model, and nobody waits for one: a call that comes now would have to load it."""
        return self.is_idle and (self._is_tried_again or self.state.phase is EnginePhase.EMPTY)

    @property
    def comes_back(self) -> bool:
        """Whether the next call loads the model again, which was lost with its engine; it asks the disk.

        One that has failed and has never run is tried again too, but hardly comes. One whose file is gone does not.
        """
        entry = self.entry if self._is_tried_again else None
        return entry is not None and entry.path in self._have_run and os.path.exists(entry.path)

    @property
    def _is_tried_again(self) -> bool:
        """Whether the next call tries to load a model that failed."""
        return self.state.phase is EnginePhase.FAILED and not self.seconds_to_retry

    @asynccontextmanager
    async def lease(self, entry: ModelEntry) -> AsyncIterator[LoadedModel]:
        """Hold a model while a call runs; waits until it is loaded.

        Its place in the line is taken before anything else happens. Raises EngineUnavailable when it did not load, and
        RequestFailed where the server leaves.
        """
        await self._enter(entry)
        try:
            self.used_at = time.monotonic()
            yield await self._ready()
        finally:
            self._n_leases -= 1
            self.used_at = time.monotonic()
            self._note_use()
            self._advance()

    def request_load(self, entry: ModelEntry) -> None:
        """Load a model once running calls have ended.

        A model that failed is tried again. A model that is loaded with something left out, or with other settings than
        are set for it now, is loaded anew.
        """
        self.used_at = time.monotonic()
        self._unloads_next = False
        phase = self.state.phase
        leaves_out = phase is EnginePhase.READY and bool(self.state.left_out)
        anew = self._is_current(entry) and (leaves_out or not self._has_its_settings())
        is_gone = phase in (EnginePhase.FAILED, EnginePhase.EMPTY)
        if self._is_current(entry) and is_gone and not self._is_kept_out:
            # What may have killed the engine stays left out until it has come up.
            self.load(entry, again=phase is EnginePhase.FAILED)
        elif not self._is_current(entry) or anew or self._line or self._is_kept_out:
            turn = asyncio.get_running_loop().create_future()
            # Its only error is that the server is leaving, and nobody waits to hear that.
            turn.add_done_callback(lambda turn: self._leave() if turn.exception() is None else None)
            self._line.append(Place(entry, turn, Change.ANEW if anew else Change.NONE))
            self._advance()

    @asynccontextmanager
    async def without(self, entry: ModelEntry) -> AsyncIterator[None]:
        """Keep a model out of memory: calls before this have ended, those behind it wait until it is over.

        A model whose file is gone then is forgotten.
        """
        await self._in_turn(Place(entry, asyncio.get_running_loop().create_future(), Change.OUT))
        try:
            await self.freed()
            yield
        finally:
            self._is_kept_out = False
            if self._is_current(entry) and not self._line and not entry.path.exists():
                self.entry = self.asleep = None
            self._leave()

    def request_unload(self) -> None:
        """Unload the model as soon as no call has it; the next call loads it again."""
        self._unloads_next = True
        self._rest()

    def leave_after(self, seconds: float | None) -> None:
        """Unload the model once nobody has used it for so long; None keeps it."""
        self._idle_seconds = seconds
        self._rest()

    async def freed(self) -> None:
        """Wait until what was begun before, as unloading, is done."""
        loop, done = asyncio.get_running_loop(), asyncio.Event()
        self._loader.submit(lambda: loop.call_soon_threadsafe(done.set))
        await done.wait()

    async def until_loaded(self) -> None:
        """Wait while a model is being loaded."""
        while self.state.phase is EnginePhase.LOADING and not self.is_closing:
            await self._changed.wait()

    def _rest(self) -> None:
        """Unload the model where that was asked for and nobody uses it; else, begin to count its idle time."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        if self._n_leases or self._line or self.is_closing or self.state.phase is EnginePhase.EMPTY:
            return
        if self._unloads_next:
            self._unload()
        elif self._idle_seconds is not None and self.model is not None:
            loop = asyncio.get_running_loop()
            self._idle_timer = loop.call_later(self._idle_seconds, self._unload_idle)

    def _unload_idle(self) -> None:
        if not self._n_leases and not self._line:
            self._unload()

    def cancel_load(self) -> bool:
        """End a load that goes on, with the calls that wait for it; return whether there was one.

        No model is loaded then, and the next call begins anew.
        """
        if self.state.phase not in (EnginePhase.LOADING, EnginePhase.RESTARTING):
            return False
        self._unload("its load was cancelled")
        self._wake()
        return True

    def _unload(self, why: str = "nobody uses it") -> None:
        _log.info("%s leaves memory: %s", self.name, why)
        self._unloads_next, self.model, self.asleep = False, None, self.model
        self._n_loads += 1
        self.state = EngineState(EnginePhase.EMPTY, load=self._n_loads)
        self._loader.submit(partial(self._free, self._n_loads))

    def _free(self, number: int) -> None:
        with self._starting:
            if number == self._n_loads and not self.is_closing:
                self.engine.unload(number)

    async def _enter(self, entry: ModelEntry) -> None:
        if not self._line and self._is_current(entry) and not self._is_kept_out:
            self._n_leases += 1
            return
        await self._in_turn(Place(entry, asyncio.get_running_loop().create_future()))

    async def _in_turn(self, place: Place) -> None:
        """Wait in the line."""
        self._line.append(place)
        self._advance()
        try:
            await place.turn
        except asyncio.CancelledError:
            if place.turn.done() and not place.turn.cancelled():
                self._is_kept_out = self._is_kept_out and place.change is not Change.OUT
                self._leave()
            else:
                self._line = deque(one for one in self._line if one is not place)
                self._advance()
            raise

    def _leave(self) -> None:
        self._n_leases -= 1
        self._advance()

    def _advance(self) -> None:
        """Let calls at the head of the line in, changing the model where nobody uses it any more."""
        while self._line and not self._is_kept_out:
            entry, turn, change = self._line[0]
            if turn.done():
                self._line.popleft()
                continue
            if change is not Change.NONE or not self._is_current(entry):
                if self._n_leases:
                    return
                if change is not Change.OUT:
                    self.load(entry)
                elif self._is_current(entry) and self.state.phase is not EnginePhase.EMPTY:
                    self._unload()
            self._is_kept_out = change is Change.OUT
            self._line.popleft()
            self._n_leases += 1
            turn.set_result(None)
        self._rest()

    def _has_its_settings(self) -> bool:
        now, then = self.own, self._loaded_with
        return all(getattr(now, name) == getattr(then, name) for name in _COUNT_AT_LOAD)

    def _is_current(self, entry: ModelEntry) -> bool:
        return self.entry is not None and self.entry.path == entry.path

    async def _ready(self) -> LoadedModel:
        if self.entry is not None:
            if self.state.phase is EnginePhase.EMPTY:
                self.load(self.entry)
            elif self.state.phase is EnginePhase.FAILED and not self.seconds_to_retry:
                self.load(self.entry, again=True)
        while self.model is None or self.state.phase is EnginePhase.FAILED:
            if self.state.phase is EnginePhase.EMPTY:
                raise EngineUnavailable(Sentence("The load of the model was cancelled."))
            if self.state.phase is EnginePhase.FAILED:
                # A model that does not fit now hardly fits in a second: a client shall not try it again by itself. But
                # its user may have mended what was wrong.
                problem = self.state.problem or Sentence("The model could not be loaded.")
                left = self.seconds_to_retry
                if left and not self.state.n_deaths:
                    again = Sentence("A request tries it again in {seconds} s.", seconds=math.ceil(left))
                    raise EngineUnavailable(joined((problem, again)))
                raise EngineUnavailable(problem, left if self.state.n_deaths else None)
            if self.is_closing:
                raise leaving()
            await self._changed.wait()
        return self.model

    def _on_state(self, state: EngineState) -> None:
        if state.load != self._n_loads:
            return
        self.state = state
        if state.model is not None:
            if state.model != self.model:  # a restart of the engine does not count as a use of the model
                for notice in state.model.notices:
                    _log.warning("%s", notice)
                self._note_use()
            self.model = state.model
            if self.entry is not None:
                self._have_run.add(self.entry.path)
        self._wake()
        self._rest()
        if state.phase is EnginePhase.FAILED:
            _log.error("%s could not be loaded: %s", self.name, state.problem)

    def _note_use(self) -> None:
        """Remember that the model is in use, now and then and not on the event loop."""
        now = time.monotonic()
        if self.entry is not None and now >= self._note_next and not self.is_closing:
            self._note_next = now + _NOTE_SECONDS
            self._loader.submit(partial(note_use, self.entry.path))

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
