"""Engines in this process, for tests that look inside."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from core.engine.engine import Engine
from core.llama.context import Batch, DecodeStatus, EmbeddingBatch
from core.loading.load_engine import load_engine
from core.loading.memory_fit import wants_mtp
from core.loading.memory_need import fit_request_of
from core.machine.known_machine import Measurements
from core.values.engine_options import EngineOptions
from core.values.messages import Ended, LoadedModel, RequestEvent, Started, Token
from core.values.request import Request, SamplingParams
from models.estimate.fit.memory import MemoryNeed
from models.facts.model_facts import ModelFacts, read_model
from tests.support.integrity import check_slots
from tests.support.prompts import EMBER, FOX

# What was measured in this process: a model is calibrated once for all tests, not at each load.
_REMEMBERED = Measurements(None)


def load(
    options: EngineOptions,
    *,
    cache_folder: Path | None = None,
    measured: Measurements = _REMEMBERED,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[Engine, LoadedModel]:
    """Load a model in this process; it is calibrated only if no test has done that before."""
    return load_engine(options, cache_folder=cache_folder, measured=measured, clock=clock)


def need_of(facts: ModelFacts, options: EngineOptions, n_cells: int) -> MemoryNeed:
    """Estimate the memory of an engine with ``n_cells`` KV cells, with its draft model and heads."""
    path = options.draft_path if options.speculation != "off" else None
    draft = read_model(Path(path)) if path is not None else None
    wanted = fit_request_of(facts, options, draft, uses_heads=wants_mtp(facts, options))
    return wanted.shape.need(facts, n_cells, options.cache_type, draft)


@contextmanager
def open_engine(
    path: Path = EMBER,
    *,
    cache_folder: Path | None = None,
    clock: Callable[[], float] = time.perf_counter,
    **options: Any,
) -> Iterator[Engine]:
    """Load a model in this process and close it afterwards; its cache is looked through after each step.

    Step times are assumed: to measure them takes longer than most tests. Which attention is faster here is not asked:
    what the model says at near-ties depends on it.
    """
    from core.llama.library import silence_log

    silence_log()
    chosen = EngineOptions(str(path), **{"n_threads": 1, "flash_attention": "on", "calibrates": False, **options})
    engine, _ = load(chosen, cache_folder=cache_folder, measured=Measurements(None), clock=clock)
    step = engine.step

    def checked_step() -> list[RequestEvent]:
        events = step()
        check_slots(engine.slots)
        return events

    engine.step = checked_step
    try:
        yield engine
    finally:
        engine.close()


def note_rows(engine: Engine) -> list[int]:
    """Return a list that will have the rows of each decode from now on."""
    noted: list[int] = []
    decode = engine.context.decode

    def noting(batch: Batch | EmbeddingBatch, **options: Any) -> DecodeStatus:
        noted.append(batch.n_tokens)
        return decode(batch, **options)

    engine.context.decode = noting
    return noted


class Ledger:
    """Collects what an engine says and holds it to its promise: each request ends exactly once."""

    def __init__(self) -> None:
        self.text: dict[str, str] = {}
        self.n_tokens: dict[str, int] = {}
        self.tokens: dict[str, list[Token]] = {}
        self.started: dict[str, Started] = {}
        self.ended: dict[str, Ended] = {}

    def add(self, events: list[RequestEvent] | tuple[RequestEvent, ...]) -> None:
        """Take events in order."""
        for event in events:
            assert event.request_id not in self.ended, f"{event} came after the end"
            match event:
                case Started(request_id):
                    assert request_id not in self.started
                    self.started[request_id] = event
                case Token(request_id, text, n, _):
                    self.text[request_id] = self.text.get(request_id, "") + text
                    self.n_tokens[request_id] = self.n_tokens.get(request_id, 0) + n
                    self.tokens.setdefault(request_id, []).append(event)
                case Ended(request_id, _, text):
                    self.text[request_id] = self.text.get(request_id, "") + text
                    self.ended[request_id] = event


def submit(engine: Engine, request_id: str, prompt: str | tuple[int, ...] = FOX, **fields: Any) -> None:
    """Submit a request; greedy unless ``sampling`` says otherwise."""
    fields.setdefault("sampling", SamplingParams(temperature=0))
    request = Request(request_id, prompt, **fields)
    engine.submit(engine.prepare(request))


def run(engine: Engine, ledger: Ledger | None = None, *, limit: int = 20_000) -> Ledger:
    """Step until nothing is left to do."""
    ledger = ledger or Ledger()
    for _ in range(limit):
        if engine.is_idle:
            return ledger
        ledger.add(engine.step())
    raise AssertionError(f"not idle after {limit} steps")


def complete(engine: Engine, prompt: str | tuple[int, ...] = FOX, **fields: Any) -> tuple[str, Ended, Ledger]:
    """Run one request alone; return its text, its end and the ledger."""
    submit(engine, "only", prompt, **fields)
    ledger = run(engine)
    return ledger.text["only"], ledger.ended["only"], ledger


def cached(engine: Engine, prompt: str | tuple[int, ...] = FOX, **fields: Any) -> int:
    """Run a request; return how many of its tokens were in the cache."""
    _, ended, _ = complete(engine, prompt, **{"max_tokens": 2, **fields})
    return ended.receipt.n_cached


def settle(engine: Engine) -> None:
    """Let an idle engine bring its texts to RAM and disk."""
    while (pause := engine.write_back()) is not None:
        check_slots(engine.slots)
        time.sleep(pause)
