"""Engines in this process, for tests that look inside."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from app.jobs.verify.near_tie import NEAR_TIE
from core.engine.engine import Engine
from core.loading.fit_request import fit_request_of
from core.loading.load_engine import load_engine
from core.loading.load_heads import wants_mtp
from core.machine.measurements import Measurements
from core.values.engine_options import EngineOptions
from core.values.messages import Ended, LoadedModel, RequestEvent, Started, Token
from core.values.request import Request, SamplingParams
from models.estimate.fit.memory import MemoryNeed
from models.facts.model_facts import ModelFacts, read_model
from tests.support.integrity import check_slots

STARTER = Path(__file__).resolve().parent.parent.parent / "models" / "starter"
EMBER = STARTER / "ember-q8_0.gguf"
EMBER_DRAFT = STARTER / "ember-draft-q8_0.gguf"


def chat(text: str) -> str:
    """Return a user's turn in Ember's chat format."""
    return f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"


FOX = chat("Tell me a story about a fox.")
# Stories have near-ties from their first word on, which steps of other widths decide otherwise. Of this answer, each
# of the first sixty tokens is e^5 times as likely as the next best one: for tests that compare whole texts.
SURE = chat("What is speculative decoding?")
PROMPTS = (FOX, chat("Who are you?"), chat("List the planets."), "def add(a, b):\n", chat("Count to five."))
GREEDY = SamplingParams(temperature=0)
ENDLESS = SamplingParams(temperature=0, ignore_eos=True)


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

    Which attention is faster here is not asked: what the model says at near-ties depends on it.
    """
    from core.llama import log

    log.silence()
    chosen = EngineOptions(str(path), **{"n_threads": 1, "flash_attention": "on", **options})
    engine, _ = load(chosen, cache_folder=cache_folder, clock=clock)
    step = engine.step

    def checked_step() -> list[RequestEvent]:
        events = step()
        check_slots(engine.slots)
        return events

    engine.step = checked_step  # type: ignore[method-assign]
    try:
        yield engine
    finally:
        engine.close()


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


GREEDY_WITH_LOGPROBS = SamplingParams(temperature=0, logprobs=True, top_logprobs=2)


def greedy(engine: Engine, prompt: str | tuple[int, ...] = FOX, **fields: Any) -> tuple[list[tuple[int, float]], Ended]:
    """Run one request alone, greedily; return what ``greedy_tokens`` says of it, and its end."""
    _, ended, ledger = complete(engine, prompt, sampling=GREEDY_WITH_LOGPROBS, **fields)
    return greedy_tokens(ledger, "only"), ended


_MOST_EXPECTED = 40
_said: WeakKeyDictionary[Engine, dict[str, list[tuple[int, float]]]] = WeakKeyDictionary()


def expected(plain: Engine, prompt: str, n: int) -> list[tuple[int, float]]:
    """Return the first ``n`` of ``greedy_tokens`` of a plain run of ``prompt``, which is made once for each engine."""
    assert n <= _MOST_EXPECTED
    said = _said.setdefault(plain, {})
    if prompt not in said:
        said[prompt], _ = greedy(plain, prompt, max_tokens=_MOST_EXPECTED)
    return said[prompt][:n]


def words(n: int, seed: int = 0) -> tuple[int, ...]:
    """Return token ids that look like nothing else."""
    return tuple(np.random.default_rng(seed).integers(20, 4000, n).tolist())


def settle(engine: Engine) -> None:
    """Let an idle engine bring its texts to RAM and disk."""
    while (pause := engine.write_back()) is not None:
        check_slots(engine.slots)
        time.sleep(pause)


def greedy_tokens(ledger: Ledger, request_id: str) -> list[tuple[int, float]]:
    """Return (token, distance in log probability to the second choice) of a run with ``GREEDY_WITH_LOGPROBS``."""
    entries = [entry for token in ledger.tokens[request_id] for entry in token.logprobs]
    return [(entry.chosen.token, entry.top[0].logprob - entry.top[1].logprob) for entry in entries]


def assert_same_up_to_a_near_tie(found: list[tuple[int, float]], expected: list[tuple[int, float]]) -> None:
    """Hold that two greedy runs agree, or first differ where two tokens are nearly equally likely."""
    for (token, _), (other, gap) in zip(found, expected, strict=False):
        if token != other:
            assert gap < NEAR_TIE, f"token {token} instead of {other}, which was ahead by {gap:.3f}"
            return
    assert len(found) == len(expected)
