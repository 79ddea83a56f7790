"""Which model is loaded, and the change to another one when a request names it.

Calls take the model in the order they came: those that name the loaded model run side by side; one that names
another waits until they have ended, then the engine loads it, and calls that came later wait behind it. A model that
was unloaded, on request or since nobody used it for long, is loaded again by the next call.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from app.pairing.chosen_draft import ChosenDraft
from app.server.calls.engine_bridge import EngineBridge, EngineHandle
from app.server.calls.model_keeper import ModelPreferences, NoPreferences
from app.server.calls.side_thread import BackgroundThread
from app.server.http.errors import ModelNotFound
from app.settings.server_settings import ServerSettings
from core.values.engine_options import EngineOptions
from core.values.errors import BadOption, BadRequest, EngineUnavailable, LoadFailed
from core.values.messages import EnginePhase, EngineState, LoadedModel
from core.values.model_settings import ModelSettings
from models.facts.projector import projector_beside

if TYPE_CHECKING:
    from app.server.calls.schemas import LoraScale  # pydantic takes its time
    from models.facts.model_facts import ModelFacts

_log = logging.getLogger("slipstream.server")
_NOTE_SECONDS = 60.0
_LEAVE_SECONDS = 1.0
_MOST_ALIASES = 100  # names that are not looked up again; clients could make up any number
LEAVING = "The server is shutting down."
_COUNT_AT_LOAD = ("ctx", "kv_type", "gpu_layers", "threads", "draft")  # the settings of a model that are the engine's


class Entry(Protocol):
    """What the server reads of a catalogue's entry."""

    @property
    def name(self) -> str:
        """The name in requests."""

    @property
    def path(self) -> Path:
        """The GGUF file."""

    @property
    def is_toy(self) -> bool:
        """True for the bundled pair."""

    @property
    def problem(self) -> str | None:
        """Why the file cannot be used, as a sentence, or None."""

    @property
    def facts(self) -> ModelFacts | None:
        """What its header says; None where it was not read."""


@dataclass(frozen=True, slots=True)
class GivenModel:
    """A model that is known without a catalogue."""

    name: str
    path: Path
    is_toy: bool = False
    problem: str | None = None
    facts: ModelFacts | None = None


class ModelCatalog(Protocol):
    """The models there are."""

    def entries(self) -> Sequence[Entry]:
        """List them; can read files."""

    def find(self, name: str) -> Entry | None:
        """Return the one of this name, title or path."""


class ModelHost:
    """The loaded model of one engine and the line of calls that want one."""

    def __init__(
        self,
        engine: EngineHandle,
        bridge: EngineBridge,
        catalog: ModelCatalog,
        settings: ServerSettings,
        keeper: ModelPreferences | None = None,
        draft_for: Callable[[Entry], ChosenDraft] = lambda entry: ChosenDraft(),
    ) -> None:
        """``draft_for`` says who drafts for a model where nobody was named; it may read files, and does not raise."""
        self.engine, self.bridge, self.catalog = engine, bridge, catalog
        self._keeper = keeper or NoPreferences()
        self._draft_for = draft_for
        self._draft = ChosenDraft()
        # Draft models by the path of the model that they draft for: another vocabulary would not do.
        self._drafts: dict[Path, Path] = {}
        # Models that have run with theirs: a draft that is gone since must not cost the model.
        self._drafted: set[Path] = set()
        self._projectors: dict[Path, Path] = {}
        self.settings = settings
        # The model that the adapters of the settings are for, and the scales that requests get.
        self._adapted: Path | None = None
        self.lora_scales = tuple(scale for _, scale in settings.lora)
        self._entry: Entry | None = None
        # Names under which requests have asked for it: a look into the catalogue reads folders.
        self._aliases: set[str] = set()
        self._loaded_with = ModelSettings()
        self._model: LoadedModel | None = None
        self._state = EngineState(EnginePhase.EMPTY)
        # States of an earlier load are still on their way when another begins: those of the last one count.
        self._n_loads = 0
        # Who wants which model, and whether it is to be loaded anew although it is there.
        self._line: deque[tuple[Entry, asyncio.Future[None], bool]] = deque()
        self._unloads_next = False  # as soon as no call has the model
        self._idle_timer: asyncio.TimerHandle | None = None
        self._n_leases = 0
        self._state_waiters: list[asyncio.Future[None]] = []
        self._loader = BackgroundThread("model-loader")
        self.is_closing = False
        # A load that is late must not start an engine after the last one was stopped.
        self._starting = threading.Lock()
        self._note_next = 0.0

    def load(self, entry: Entry, *, again: bool = False) -> None:
        """Begin to load a model at once, whatever runs; ``again`` where it failed and a request tries once more."""
        self._entry, self._model, self._aliases = entry, None, {entry.name}
        self._unloads_next = False
        self._adapted = self._adapted or entry.path
        self._note_next = 0.0
        self._loaded_with = self.own
        self._n_loads += 1
        self._state = EngineState(EnginePhase.LOADING, load=self._n_loads)
        self._draft = ChosenDraft()
        # Not on the event loop: it reads headers, and waits until the memory of the model before is free.
        named, must_draft = self._drafts.get(entry.path), entry.path not in self._drafted
        self._loader.submit(partial(self._load, entry, named, must_draft, self._n_loads, again))

    @property
    def adapters(self) -> tuple[str, ...]:
        """The files of the LoRA adapters of the loaded model."""
        is_adapted = self._entry is not None and self._entry.path == self._adapted
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

    def pair(self, entry: Entry, draft: Entry) -> None:
        """Let ``draft`` draft for a model whenever that is loaded from now on."""
        self._drafts[entry.path] = draft.path

    def use_projector(self, entry: Entry, mmproj: Path) -> None:
        """Load this projector with a model whenever that is loaded from now on."""
        self._projectors[entry.path] = mmproj

    @property
    def own(self) -> ModelSettings:
        """What the user has set for the loaded model."""
        return self._keeper.settings_of(self._entry.path) if self._entry is not None else ModelSettings()

    def _load(self, entry: Entry, named: Path | None, must_draft: bool, number: int, again: bool) -> None:
        if number != self._n_loads:
            return  # another model was chosen meanwhile
        try:
            with self._starting:
                if not self.is_closing:
                    self.engine.prepare()
            options = self._options(entry, named, must_draft)
            with self._starting:
                if not self.is_closing:
                    self.engine.load(options, number, again=again)
        except Exception as error:  # those who wait for the model must hear of it
            _log.exception("%s could not be loaded", entry.path)
            problem = f"The engine could not be started: {error}"
            self.bridge.deliver((EngineState(EnginePhase.FAILED, problem=problem, load=number),))

    def _options(self, entry: Entry, named: Path | None, must_draft: bool) -> EngineOptions:
        """Return the engine's options. A draft that was found and not named must not cost the model."""
        own, uses_heads = self._keeper.settings_of(entry.path), True
        if named is None:
            draft = self._draft_for(entry)
            for notice in draft.notices:
                _log.warning("%s", notice)
            if self._entry is entry:
                self._draft = draft
            named, must_draft, uses_heads = draft.path, False, draft.uses_heads
        path, draft_path = str(entry.path), str(named) if named is not None else None
        fields = {"must_draft": must_draft, "uses_heads": uses_heads, **self._sight(entry)}
        fields["lora"] = self.settings.lora if entry.path == self._adapted else ()
        try:
            return self.settings.engine_options(path, draft_path, **fields, own=own)
        except BadOption as error:
            # The server's own options have been looked at when it started: together with the model's they are wrong.
            _log.warning("The settings of %s are not used with this server's options: %s", entry.name, error.message)
            return self.settings.engine_options(path, draft_path, **fields)

    def _sight(self, entry: Entry) -> dict[str, Any]:
        """Return the options for the projector: one that was found and not named must not cost the model."""
        named = self._projectors.get(entry.path)
        if named is None and self.settings.uses_projector:
            found = projector_beside(entry.path)
            return {"mmproj": str(found) if found is not None else None, "must_see": False}
        return {"mmproj": str(named) if named is not None else None}

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
        for _, turn, _ in line:
            if not turn.done():
                turn.set_exception(EngineUnavailable(LEAVING))
        self._wake()
        self.bridge.end_all(LEAVING)

    def attach(self) -> None:
        """Follow the engine on the running loop."""
        self.bridge.attach(self.engine, self._on_state)

    @property
    def entry(self) -> Entry | None:
        """The catalogue's entry of the model that is loaded or being loaded."""
        return self._entry

    @property
    def name(self) -> str:
        """The name of that model, or ""."""
        return self._entry.name if self._entry is not None else ""

    @property
    def n_waiting(self) -> int:
        """How many calls wait for a model."""
        return len(self._line)

    @property
    def state(self) -> EngineState:
        """Where the engine stands with ``entry``."""
        return self._state

    @property
    def seconds_to_retry(self) -> float:
        """In how many seconds a request may try again to load a model that failed."""
        return max(self._state.retry_at - time.monotonic(), 0.0)

    @property
    def model(self) -> LoadedModel | None:
        """Facts about the loaded model; kept while a dead engine is restarted."""
        return self._model

    @property
    def draft(self) -> ChosenDraft:
        """Who drafts for the model, where that was decided here; empty where the draft was named."""
        return self._draft

    def names(self) -> tuple[str, ...]:
        """Names of the models that can be used."""
        return tuple(entry.name for entry in self.entries() if entry.problem is None)

    def entries(self) -> tuple[Entry, ...]:
        """List the catalogue, and the loaded model where it lies outside of it."""
        listed = tuple(self.catalog.entries())
        if self._entry is None or any(entry.name == self._entry.name for entry in listed):
            return listed
        return (self._entry, *listed)

    def find(self, name: str) -> Entry:
        """Return the model that a request names; raises UnknownModel, or LoadFailed for a broken file."""
        # A request may name models, not files: of a path, what stands last counts. Clients put a provider before it.
        plain = name.replace("\\", "/").rpartition("/")[2]
        plain = plain[: -len(".gguf")] if plain.lower().endswith(".gguf") else plain
        entry = self.catalog.find(plain) if plain else None
        if entry is None:
            raise ModelNotFound(name, self.names())
        if entry.problem is not None:
            raise LoadFailed(f"The model {entry.name} cannot be used: {entry.problem}")
        return entry

    @asynccontextmanager
    async def lease(self, name: str | None) -> AsyncIterator[LoadedModel]:
        """Hold the named model (None: the loaded one) while a call runs; waits until it is loaded.

        A name that nobody has means the loaded one, unless names are strict.

        Raises UnknownModel, LoadFailed, or EngineUnavailable when it did not load.
        """
        await self._enter(await self._answering(name))
        try:
            yield await self._ready()
        finally:
            self._n_leases -= 1
            self._note_use()
            self._advance()

    async def request_load(self, name: str) -> Entry:
        """Load a model once running calls have ended.

        A model that failed is tried again. A model that is loaded with something left out, or with other settings than
        are set for it now, is loaded anew.
        """
        entry = await self._wanted(name)
        anew = self._is_current(entry) and (bool(self._state.left_out) or not self._has_its_settings())
        if self._is_current(entry) and self._state.phase in (EnginePhase.FAILED, EnginePhase.EMPTY):
            self.load(entry)
        elif not self._is_current(entry) or anew or self._line:
            turn = asyncio.get_running_loop().create_future()
            turn.add_done_callback(lambda _turn: self._leave())
            self._line.append((entry, turn, anew))
            self._advance()
        return entry

    async def request_unload(self, name: str | None = None) -> None:
        """Unload the model as soon as no call has it; the next call loads it again.

        Raises UnknownModel, or BadRequest where ``name`` is not the model that is loaded.
        """
        entry = await self._wanted(name)
        if not self._is_current(entry):
            raise BadRequest(f"The model {entry.name} is not loaded: {self.name} is.", param="model")
        self._unloads_next = True
        self._rest()

    def _rest(self) -> None:
        """Unload the model where that was asked for and nobody uses it; else, begin to count its idle time."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        if self._n_leases or self._line or self.is_closing or self._state.phase is EnginePhase.EMPTY:
            return
        if self._unloads_next:
            self._unload()
        elif self.settings.idle_unload is not None and self._model is not None:
            loop = asyncio.get_running_loop()
            self._idle_timer = loop.call_later(self.settings.idle_unload, self._unload_idle)

    def _unload_idle(self) -> None:
        if not self._n_leases and not self._line:
            self._unload()

    def _unload(self) -> None:
        _log.info("%s leaves memory: nobody uses it", self.name)
        self._unloads_next, self._model = False, None
        self._n_loads += 1
        self._state = EngineState(EnginePhase.EMPTY, load=self._n_loads)
        self._loader.submit(partial(self._free, self._n_loads))

    def _free(self, number: int) -> None:
        with self._starting:
            if number == self._n_loads and not self.is_closing:
                self.engine.unload(number)

    async def _answering(self, name: str | None) -> Entry:
        """Return the model that answers a call: for a name that nobody has, the one that is there."""
        try:
            return await self._wanted(name)
        except ModelNotFound:
            if self.settings.strict_models or self._entry is None or name is None:
                raise
            if len(self._aliases) < _MOST_ALIASES:
                self._aliases.add(name)
            return self._entry

    async def _wanted(self, name: str | None) -> Entry:
        if self.is_closing:
            raise EngineUnavailable(LEAVING)
        if self._entry is not None and (not name or name in self._aliases):
            return self._entry
        if not name:
            raise EngineUnavailable("No model is loaded: name one in the field 'model'.")
        entry = await asyncio.to_thread(self.find, name)
        if self._is_current(entry):
            self._aliases.add(name)
        return entry

    async def _enter(self, entry: Entry) -> None:
        if not self._line and self._is_current(entry):
            self._n_leases += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._line.append((entry, turn, False))
        self._advance()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave()
            else:
                self._line = deque(place for place in self._line if place[1] is not turn)
                self._advance()
            raise

    def _leave(self) -> None:
        self._n_leases -= 1
        self._advance()

    def _advance(self) -> None:
        """Let calls at the head of the line in, changing the model where nobody uses it any more."""
        while self._line:
            entry, turn, anew = self._line[0]
            if turn.done():
                self._line.popleft()
                continue
            if anew or not self._is_current(entry):
                if self._n_leases:
                    return
                self.load(entry)
            self._line.popleft()
            self._n_leases += 1
            turn.set_result(None)
        self._rest()

    def _has_its_settings(self) -> bool:
        now, then = self.own, self._loaded_with
        return all(getattr(now, name) == getattr(then, name) for name in _COUNT_AT_LOAD)

    def _is_current(self, entry: Entry) -> bool:
        return self._entry is not None and self._entry.path == entry.path

    async def _ready(self) -> LoadedModel:
        if self._entry is not None:
            if self._state.phase is EnginePhase.EMPTY:
                self.load(self._entry)
            elif self._state.phase is EnginePhase.FAILED and not self.seconds_to_retry:
                self.load(self._entry, again=True)
        while self._model is None or self._state.phase is EnginePhase.FAILED:
            if self._state.phase is EnginePhase.FAILED:
                # A model that does not fit now hardly fits in a second: a client shall not try it again by itself.
                retry_after = self.seconds_to_retry if self._state.n_deaths else None
                raise EngineUnavailable(self._state.problem or "The model could not be loaded.", retry_after)
            if self.is_closing:
                raise EngineUnavailable(LEAVING)
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._state_waiters.append(waiter)
            await waiter
        return self._model

    def _on_state(self, state: EngineState) -> None:
        if state.load != self._n_loads:
            return
        self._state = state
        if state.model is not None:
            if state.model != self._model:
                for notice in state.model.notices:
                    _log.warning("%s", notice)
            self._model = state.model
            if self._entry is not None:
                self._drafted.add(self._entry.path)
                self._note_use()
        self._wake()
        self._rest()
        if state.phase is EnginePhase.FAILED:
            _log.error("%s could not be loaded: %s", self.name, state.problem)

    def _note_use(self) -> None:
        """Remember that the model is in use, now and then and not on the event loop."""
        now = time.monotonic()
        if self._entry is not None and now >= self._note_next and not self.is_closing:
            self._note_next = now + _NOTE_SECONDS
            self._loader.submit(partial(self._keeper.note_use, self._entry.path))

    def _wake(self) -> None:
        waiters, self._state_waiters = self._state_waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
