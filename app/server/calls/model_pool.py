"""The models that are loaded, each in an engine of its own, and which of them answers a call.

A call that names a model goes to the engine that has it. Where none has, the model is loaded beside the others if
memory holds it as well as alone; else those that nobody uses leave, the one first that was used longest ago. Where
none can leave, the call waits in the line of an engine until the calls before it have ended.
"""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from app.server.calls.engine_bridge import LiveRequest
from app.server.calls.model_host import ModelHost, leaving
from app.server.calls.request_totals import RequestTotals
from app.server.http.errors import ModelNotFound
from app.settings.server_settings import ServerSettings
from core.values.errors import BadRequest, EngineUnavailable, LoadFailed
from core.values.messages import EnginePhase, LoadedModel
from models.formatting.sentence import Sentence

if TYPE_CHECKING:
    from fastapi import Request as HttpRequest

    from models.catalog.catalog import Catalog, ModelEntry

T = TypeVar("T")
_MOST_PARTS = 4  # of a name: each is looked up
_MOST_NAMES = 100  # names that are not looked up again; clients could make up any number
_FRESH_SECONDS = 5.0  # a name is looked up again after so long: a model may have come
# A model beside the chosen one holds memory that other programs could use. Editors and retrieval come back sooner.
_BESIDE_SECONDS = 900.0


class ModelPool:
    """The engines, and the names of models.

    ``main`` is the engine of the model that was chosen last, at the start, in the window or by a request to load it,
    where a call has not taken that out of memory. The chosen model answers calls that name none or one that nobody has,
    whichever others are loaded: what a call gets must not depend on what others asked for. Call everything from the
    server's event loop, once ``attach`` has been.
    """

    def __init__(
        self,
        make: Callable[[], ModelHost],
        catalog: Catalog,
        settings: ServerSettings,
        fits_beside: Callable[[ModelEntry, Sequence[LoadedModel]], bool] = lambda entry, loaded: True,
    ) -> None:
        """``make`` returns another engine without a model; all have one ``totals``. ``fits_beside`` can read files."""
        self._make, self._catalog, self.settings, self._fits_beside = make, catalog, settings, fits_beside
        self.main = make()
        self.hosts = [self.main]
        self._first = ""  # name of the model of the start
        self._chosen: ModelEntry | None = None  # which a call may have taken out of the only engine
        # Names under which requests have asked for models, and those that no model had, each with when it was looked
        # up: a look into the catalogue reads folders. Forgotten when another model is chosen.
        self._known: dict[str, tuple[Path, float]] = {}
        self._unknown: dict[str, float] = {}
        self._on_engine: Callable[[ModelHost], None] = lambda host: None
        # Engines are chosen one after the other, since each choice depends on the memory that the earlier ones left.
        self._choosing = asyncio.Lock()

    def load(self, entry: ModelEntry) -> None:
        """Begin to load the first model, or only choose it; may be called before ``attach``."""
        self._first, self._chosen = entry.name, entry
        if self.settings.on_demand:
            self.main.choose(entry)
        else:
            self.main.load(entry)

    def on_engine(self, call: Callable[[ModelHost], None]) -> None:
        """Call ``call`` with each engine: those that are there, and those that will be made."""
        self._on_engine = call
        for host in self.hosts:
            call(host)

    def attach(self) -> None:
        """Follow the engines on the running loop."""
        for host in self.hosts:
            host.attach()

    def close(self) -> None:
        """Let nobody in any more, and end every call: the server is leaving."""
        for host in self.hosts:
            host.close()

    def end(self) -> None:
        """Stop the engines for good."""
        for host in self.hosts:
            host.end()

    @property
    def is_closing(self) -> bool:
        """Whether the server is leaving."""
        return self.main.is_closing

    @property
    def totals(self) -> RequestTotals:
        """What all requests to all engines add up to."""
        return self.main.bridge.totals

    @property
    def live(self) -> Iterator[tuple[ModelHost, LiveRequest]]:
        """The requests that generate and have not ended, each with its engine."""
        return ((host, live) for host in self.hosts for live in host.bridge.live)

    @property
    def aliases(self) -> dict[str, str]:
        """Other names that the server's options give to models; "" stands for the model of the start."""
        return {alias: name or self._first for alias, name in self.settings.aliases}

    def names(self) -> tuple[str, ...]:
        """Names of the models that can be used."""
        return tuple(entry.name for entry in self.entries() if entry.problem is None)

    def entries(self) -> tuple[ModelEntry, ...]:
        """List the catalogue, and models of engines that lie outside of it and are loaded or can be."""
        listed = tuple(self._catalog.entries())
        known = {entry.name for entry in listed}
        outside = ((host, host.entry) for host in self.hosts if host.entry is not None and host.entry.name not in known)
        # A model that was just removed can be used no more, though its engine has not let go of it yet.
        outside = ((host, entry) for host, entry in outside if host.model is not None or entry.path.exists())
        return tuple(entry for entry in (*(entry for _, entry in outside), *listed) if not self._is_lost(entry))

    def find(self, name: str) -> ModelEntry:
        """Return the model that a request names; raises ModelNotFound, or LoadFailed for a broken file."""
        # A request may name models, not files. Clients put a provider before the name: where no model has the whole
        # name, what follows its slashes counts. Of several with the last part, a folder before it may tell which.
        whole = name.replace("\\", "/")
        while whole.lower().endswith(".gguf"):
            whole = whole[: -len(".gguf")]
        *before, last = whole.split("/")[-_MOST_PARTS:]
        entry = self._named(self.aliases.get(whole, whole)) if whole else None
        for n_gone, folder in enumerate(before, start=1):
            if entry is None and folder and last:
                tail = "/".join((*before[n_gone:], last))
                entry = self._in_folder(folder, last) or self._named(self.aliases.get(tail, tail))
        if entry is None:
            raise ModelNotFound(name, self.names())
        if entry.problem is not None:
            raise LoadFailed("The model {name} cannot be used: {problem}", name=entry.name, problem=entry.problem)
        return entry

    def _in_folder(self, folder: str, last: str) -> ModelEntry | None:
        """Return the one of several models with this last part of the name that lies in a folder, or one below it."""
        alike = [one for one in self.entries() if one.name.rpartition("/")[2].casefold() == last.casefold()]
        there = [one for one in alike if folder.casefold() in (up.name.casefold() for up in one.path.parents[:2])]
        return there[0] if len(alike) > len(there) == 1 else None

    def _is_lost(self, entry: ModelEntry) -> bool:
        """Return whether a model could not be loaded, as its file is there no more."""
        failed = (host.entry for host in self.hosts if host.state.phase is EnginePhase.FAILED)
        return any(one is not None and one.path == entry.path for one in failed) and not os.path.exists(entry.path)

    def _named(self, name: str) -> ModelEntry | None:
        def found() -> Iterator[ModelEntry | None]:
            yield from (host.entry for host in self.hosts if host.name == name)
            yield self._catalog.find(name, takes_paths=False)  # it may be in another folder now

        return next((one for one in found() if one is not None and not self._is_lost(one)), None)

    def of(self, entry: ModelEntry) -> ModelHost | None:
        """Return the engine that has a model, or will have when the calls before have ended, or had it last."""
        return next((host for host in self.hosts if host.is_wanted(entry)), None)

    def load_progress(self, entry: ModelEntry) -> float | None:
        """Return how far a model is loaded, from 0 to 1; None where it is there."""
        host = next((host for host in self.hosts if host.entry is not None and host.entry.path == entry.path), None)
        if host is None:
            return 0.0
        return None if host.model is not None else host.state.progress

    async def named(self, name: str | None) -> ModelHost:
        """Return the engine of the named model (None: the main one) without loading it.

        Raises ModelNotFound, EngineUnavailable, and BadRequest where that model is not loaded.
        """
        entry = await self._wanted(name)
        if name is None and self.main.entry is not None:
            return self.main
        host = self.of(entry)
        if host is None:
            raise BadRequest(f"The model {entry.name} is not loaded.", param="model")
        return host

    @asynccontextmanager
    async def lease(self, name: str | None) -> AsyncIterator[ModelHost]:
        """Hold the named model (None: the chosen one) while a call runs; waits until it is loaded.

        A name that nobody has means the chosen one, unless names are strict. The model of the engine that is given is
        loaded. Raises ModelNotFound, LoadFailed, or EngineUnavailable when it did not load.
        """
        entry = await self.answering(name)
        host = await self._host_for(entry)
        async with AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(host.lease(entry))
            except EngineUnavailable:
                if await asyncio.to_thread(os.path.exists, entry.path):
                    raise
                # To try again would not help: another one must be named.
                raise ModelNotFound(entry.name, await asyncio.to_thread(self.names)) from None
            yield host

    async def answering(self, name: str | None) -> ModelEntry:
        """Return the model that answers a call: for an unknown name, the chosen one.

        Raises ModelNotFound, LoadFailed, or EngineUnavailable where none is chosen.
        """
        try:
            return await self._wanted(name)
        except ModelNotFound:
            usual = self._usual
            if self.settings.strict_models or usual is None or name is None:
                raise
            _remember(self._unknown, name, time.monotonic())
            return usual

    def look_again(self) -> None:
        """Look names up again that were: there is a new model."""
        self._known.clear()
        self._unknown.clear()

    async def request_load(self, name: str) -> ModelEntry:
        """Choose a model, and load it once the calls that are in its way have ended; as ``ModelHost.request_load``."""
        self.look_again()
        entry = await self._wanted(name)
        host = await self._host_for(entry)
        self._chosen = entry
        host.request_load(entry)
        self._choose(host)
        return entry

    async def request_unload(self, name: str | None = None) -> ModelEntry:
        """Unload a model as soon as no call has it; the next call loads it again.

        Raises ModelNotFound, and BadRequest where ``name`` is not a model that is loaded.
        """
        host = await self.named(name)
        host.request_unload()
        assert host.entry is not None
        return host.entry

    @asynccontextmanager
    async def without(self, goes: Callable[[Path], bool]) -> AsyncIterator[None]:
        """Keep models out of memory while their files are removed or moved: calls that run are waited for."""
        async with AsyncExitStack() as stack:
            for host in self.hosts:
                if host.entry is not None and any(map(goes, host.files)):
                    await stack.enter_async_context(host.without(host.entry))
            try:
                yield
            finally:
                if self._chosen is not None and not self._chosen.path.exists():
                    self._chosen = None

    async def _wanted(self, name: str | None) -> ModelEntry:
        if self.is_closing:
            raise leaving()
        if not name or time.monotonic() - self._unknown.get(name, -math.inf) < _FRESH_SECONDS:
            if (usual := self._usual) is None:
                raise EngineUnavailable(Sentence("No model is loaded: name one in the field 'model'."))
            return usual
        path, looked_at = self._known.get(name, (None, -math.inf))
        for host in self.hosts:
            is_fresh = time.monotonic() - looked_at < _FRESH_SECONDS
            if host.entry is not None and host.entry.path == path and is_fresh:
                return host.entry
        entry = await asyncio.to_thread(self.find, name)
        if self.of(entry) is not None:
            _remember(self._known, name, (entry.path, time.monotonic()))
        return entry

    @property
    def _usual(self) -> ModelEntry | None:
        """The model of calls that name none; the bundled toy, which serves where none was chosen, gives way."""
        chosen, here = self._chosen, self.main.entry
        gives_way = chosen is None or (chosen.is_toy and self.main.state.phase is not EnginePhase.FAILED)
        return (here or chosen) if gives_way else chosen

    async def _host_for(self, entry: ModelEntry) -> ModelHost:
        """Return the engine whose line the call takes its place in, before it gives way to anything else.

        One that must load the model first needs room for that, though it had the model before.
        """
        host = self._holder(entry)
        if host is None:
            async with self._choosing:
                host = self._holder(entry) or await self._with_room(entry)
        return host

    def _holder(self, entry: ModelEntry) -> ModelHost | None:
        """Return the engine that has a model in memory or loads it, or will when the calls before have ended."""
        host = self.of(entry)
        return None if host is None or host.is_empty else host

    async def _with_room(self, entry: ModelEntry) -> ModelHost:
        """Return the engine that is to load a model, after others have left where memory needs that."""
        if self.settings.models_max == 1 or (len(self.hosts) == 1 and self.main.is_empty):
            return self.main
        for host in self.hosts:
            await host.until_loaded()  # what it takes is not known before
        fits = await self._fits(entry)
        while not fits and (unused := self._longest_unused(self._idle(EnginePhase.READY))) is not None:
            unused.request_unload()
            await unused.freed()
            fits = await self._fits(entry)
        own, free = self.of(entry), self._idle(EnginePhase.EMPTY, EnginePhase.FAILED)
        taken = [host for host in self.hosts if host not in free]
        if fits or not taken:
            # The one that had the model before knows how often it failed.
            empty = own or self._longest_unused(free)
            if empty is not None:
                return empty
            if len(self.hosts) < self.settings.models_max:
                return self._added()
        taken_over = self._longest_unused([host for host in taken if host.is_idle]) or self._longest_unused(taken)
        assert taken_over is not None
        if own in free:
            own.entry = None  # it goes on in the other engine
            if own is self.main:
                self._choose(taken_over)
        return taken_over

    async def _fits(self, entry: ModelEntry) -> bool:
        at_work = (host for host in self.hosts if host.state.phase is not EnginePhase.FAILED)
        loaded = [host.model for host in at_work if host.model is not None]
        return await asyncio.to_thread(self._fits_beside, entry, loaded)

    def _idle(self, *phases: EnginePhase) -> list[ModelHost]:
        return [host for host in self.hosts if host.is_idle and host.state.phase in phases]

    def _longest_unused(self, hosts: Sequence[ModelHost]) -> ModelHost | None:
        """Return the engine that was used longest ago; the chosen model's is the last."""
        return min(hosts, key=lambda host: (host is self.main, host.used_at), default=None)

    def _choose(self, host: ModelHost) -> None:
        self.main = host
        for one in self.hosts:
            one.leave_after(self._stay(one))

    def _added(self) -> ModelHost:
        host = self._make()
        self.hosts.append(host)
        self._on_engine(host)
        host.attach()
        host.leave_after(self._stay(host))
        return host

    def _stay(self, host: ModelHost) -> float | None:
        """Return for how many seconds an engine keeps a model that nobody uses."""
        seconds = self.settings.idle_unload
        return _BESIDE_SECONDS if seconds is None and host is not self.main else seconds


def pool_of(http: HttpRequest) -> ModelPool:
    """Return the pool of the server that a request came to."""
    pool: ModelPool = http.app.state.pool
    return pool


def _remember(names: dict[str, T], name: str, what: T) -> None:
    if len(names) >= _MOST_NAMES:
        names.clear()
    names[name] = what
