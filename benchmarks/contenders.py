"""Ways to decode, compared on one loaded model. Each has its own learnt state, as a separate server would."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from core.cost.calibration import MeasuredContext
from core.cost.cost_model import CostModel, ReadCost
from core.engine.engine import Engine
from core.engine.meter import Meter
from core.kv_cache.memory import AttentionMemory
from core.kv_cache.slot_table import SlotTable
from core.llama.library import silence_log
from core.loading.load_engine import load_engine
from core.scheduler.input_processor import InputProcessor
from core.speculation.proposers.draft_model import DraftModelProposer
from core.speculation.proposers.free_proposers import NgramProposer
from core.speculation.proposers.proposer import CostlyProposer
from core.speculation.speculator import Speculator
from core.values.engine_options import EngineOptions
from core.values.messages import Ended, FinishReason, Receipt, Token
from core.values.request import Request, SamplingParams
from models.facts.model_facts import read_model

GREEDY = SamplingParams(temperature=0)


@dataclass(frozen=True)
class Way:
    """A way to decode. ``depth`` fixes the number of drafted tokens; None decides in each step."""

    name: str
    with_draft: bool = False
    with_lookup: bool = False
    depth: int | None = None

    @property
    def is_plain(self) -> bool:
        """True where nothing is drafted."""
        return not (self.with_draft or self.with_lookup)


PLAIN = Way("plain")
# Plain decoding again: how far it is from plain decoding is noise.
CONTROL = Way("control")
ADAPTIVE = Way("adaptive", with_draft=True)
LOOKUP = Way("lookup", with_lookup=True)
AUTO = Way("auto", with_draft=True, with_lookup=True)


def fixed(depth: int) -> Way:
    """Return the way that always drafts ``depth`` tokens."""
    return Way(f"depth {depth}", with_draft=True, depth=depth)


@dataclass
class ReplyOutcome:
    """One reply: its text, its receipt, and the seconds between the arrivals of its pieces."""

    text: str = ""
    receipt: Receipt = field(default_factory=Receipt)
    gaps: list[float] = field(default_factory=list)
    arrived: float = 0.0


@dataclass(frozen=True)
class ContenderRun:
    """Requests that ran at once, and the seconds they took together."""

    outcomes: tuple[ReplyOutcome, ...]
    seconds: float

    @property
    def rate(self) -> float:
        """Tokens per second of all together, prefill included."""
        return sum(outcome.receipt.n_generated for outcome in self.outcomes) / self.seconds


class Contender:
    """One way to decode, with its own cost model, acceptance and lookup table; the model belongs to its maker."""

    def __init__(self, way: Way, engine: Engine, draft: CostlyProposer | None) -> None:
        self.way = way
        self._engine = engine
        self._draft = draft

    def run(self, prompts: Sequence[str], n_tokens: int, sampling: SamplingParams = GREEDY) -> ContenderRun:
        """Run all prompts at once, from an empty cache, until the last reply has ended."""
        self._take_over()
        engine, outcomes = self._engine, [ReplyOutcome() for _ in prompts]
        began = time.perf_counter()
        for index, prompt in enumerate(prompts):
            request = Request(str(index), prompt, n_tokens, sampling=sampling)
            engine.submit(engine.prepare(request))
        while not engine.is_idle:
            events = engine.step()
            now = time.perf_counter()
            for event in events:
                outcome = outcomes[int(event.request_id)]
                if isinstance(event, Token):
                    _arrive(outcome, event, now)
                elif isinstance(event, Ended):
                    assert event.reason is not FinishReason.FAILED, event.failure
                    outcome.text += event.text
                    outcome.receipt = event.receipt
        return ContenderRun(tuple(outcomes), time.perf_counter() - began)

    def _take_over(self) -> None:
        """Empty the KV cache that other contenders have used."""
        self._engine.slots.forget_idle()
        self._engine.context.clear()
        if self._draft is not None:
            self._draft.clear()


def _arrive(outcome: ReplyOutcome, event: Token, now: float) -> None:
    outcome.text += event.text
    # Tokens that were accepted together arrive together: one gap for all of them.
    if outcome.arrived and now > outcome.arrived:
        outcome.gaps.append(now - outcome.arrived)
    outcome.arrived = now


class DecodingStage:
    """A loaded target and, where ``draft`` is given, a loaded draft model, lent to contenders in turns."""

    def __init__(self, target: Path, draft: Path | None, *, n_slots: int, n_ctx: int, n_threads: int) -> None:
        silence_log()
        options = EngineOptions(
            str(target),
            n_slots=n_slots,
            n_ctx=n_ctx,
            n_threads=n_threads,
            speculation="auto",
            draft_path=str(draft) if draft else None,
        )
        self._engine, _ = load_engine(options, cache_folder=None)
        self._n_slots = n_slots
        self._facts = read_model(target)
        self._draft_facts = read_model(draft) if draft else None

    def contender(self, way: Way) -> Contender:
        """Return a contender in the state of a new server: calibrated only. Call it before any contender runs."""
        base = self._engine
        cost = CostModel(base.cost.snapshot())
        draft = self._fresh_draft() if way.with_draft else None
        speculator = None
        if not way.is_plain:
            ngram = NgramProposer() if way.with_lookup else None
            paid = (draft,) if draft is not None else ()
            speculator = Speculator(
                cost,
                n_ctx=base.n_ctx,
                memory=AttentionMemory(base.context),
                ngram=ngram,
                paid=paid,
                fixed_depth=way.depth,
                end_tokens=base.vocab.end_tokens,
            )
        own = MeasuredContext(base.context, cost, self._n_slots, ReadCost.of(self._facts, "f16"))
        slots = SlotTable(AttentionMemory(base.context), self._n_slots)
        intake = InputProcessor(base.model, base.n_ctx)
        engine = Engine(own, intake, slots, Meter(cost, own.reads), speculator)
        return Contender(way, engine, draft)

    def _fresh_draft(self) -> DraftModelProposer:
        speculator = self._engine.speculator
        assert speculator is not None
        draft = speculator.paid[0]
        assert isinstance(draft, DraftModelProposer)
        assert self._draft_facts is not None
        own = MeasuredContext(
            draft._context, CostModel(draft.cost.snapshot()), self._n_slots, ReadCost.of(self._draft_facts, "f16")
        )
        return DraftModelProposer(draft.model, own, self._engine.context.n_vocab)

    def close(self) -> None:
        self._engine.close()


class PlainAndDrafting:
    """Plain decoding and drafting on separate engines, for models that contain their proposer (MTP).

    A target that exports hidden states for a head would slow down plain decoding on the same engine.
    """

    def __init__(self, target: Path, *, n_slots: int, n_ctx: int, n_threads: int) -> None:
        silence_log()
        options = EngineOptions(str(target), n_slots=n_slots, n_ctx=n_ctx, n_threads=n_threads, cache_ram=0)
        drafting, _ = load_engine(options, cache_folder=None)
        plain, _ = load_engine(replace(options, speculation="off"), cache_folder=None)
        self._engines = {PLAIN: plain, AUTO: drafting}

    def contender(self, way: Way) -> Contender:
        """Return plain decoding, or drafting with all proposers of the engine."""
        engine = self._engines[way]
        paid = engine.speculator.paid if engine.speculator is not None else ()
        assert len(paid) == way.with_draft, "the model has one head"
        return Contender(way, engine, paid[0] if paid else None)

    @property
    def way_back(self) -> str:
        """How rejected drafts are rolled back."""
        return type(self._engines[AUTO].slots.memory).__name__

    def close(self) -> None:
        for engine in self._engines.values():
            engine.close()
