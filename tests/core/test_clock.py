"""A clock that jumps (sleep, suspend, a virtual machine that was moved) costs no text, no end and no judgement."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.engine.engine import Engine
from core.engine.model_runner import ModelRunner
from core.kv_cache.memory import CheckpointMemory
from core.speculation.proposers.autoregressive_head import AutoregressiveHead
from core.speculation.proposers.draft_model import DraftModelProposer
from core.values.request import SamplingParams
from tests.support.engines import (
    EMBER,
    EMBER_DRAFT,
    GREEDY_WITH_LOGPROBS,
    SURE,
    assert_same_up_to_a_near_tie,
    chat,
    complete,
    greedy_tokens,
    open_engine,
    run,
    submit,
)
from tests.support.proposers import price
from tools.model_factory import gguf_factory, head_factory, hybrid_factory

PROMPTS = (SURE, chat("Count to five."), chat("Who are you?"))


class JumpyClock:
    """Real seconds, with jumps of up to three days. Forward: the engine's clock is a monotonic one."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._offset = 0.0

    def __call__(self) -> float:
        if self._random.random() < 0.1:
            self._offset += 10 ** self._random.uniform(-3, 5.4)
        return time.perf_counter() + self._offset


def use_clock(engine: Engine, clock: Callable[[], float]) -> None:
    runner = engine._runner
    assert isinstance(runner, ModelRunner)
    engine._clock = runner._clock = engine._drafting._clock = engine.slots._clock = clock
    speculator, memory = engine._speculator, engine.slots.memory
    assert speculator is not None
    speculator._clock = speculator._growth._clock = clock
    for proposer in speculator.paid:
        assert isinstance(proposer, DraftModelProposer | AutoregressiveHead)
        proposer._clock = clock
    if isinstance(memory, CheckpointMemory):
        memory._clock = clock


def with_head() -> Path:
    return gguf_factory.cached_file("mtp-random.gguf", head_factory.mtp_ember)


def with_state() -> Path:
    """A model whose way back from rejected drafts are checkpoints."""
    name = "hybrid-qwen3next-counts.gguf"
    return gguf_factory.cached_file(name, lambda path: hybrid_factory.qwen3next(path, "counts"))


# What is loaded, by who drafts.
SETTINGS: dict[str, tuple[Callable[[], Path], dict[str, Any]]] = {
    "draft model": (lambda: EMBER, {"draft_path": str(EMBER_DRAFT)}),
    "head": (with_head, {"draft_depth": 2}),
    "head beside a state": (with_state, {"draft_depth": 2}),
}


@pytest.mark.parametrize("proposer", SETTINGS)
@pytest.mark.parametrize("seed", range(3))
def test_a_jumping_clock_changes_no_text_and_leaves_every_figure_finite(proposer: str, seed: int) -> None:
    make, options = SETTINGS[proposer]
    path = make()
    with open_engine(path, speculation="off") as engine:
        for index, prompt in enumerate(PROMPTS):
            submit(engine, str(index), prompt, max_tokens=60, sampling=GREEDY_WITH_LOGPROBS)
        expected = run(engine)
    with open_engine(path, **options) as engine:
        use_clock(engine, JumpyClock(seed))
        for index, prompt in enumerate(PROMPTS):
            submit(engine, str(index), prompt, max_tokens=60, sampling=GREEDY_WITH_LOGPROBS)
        ledger = run(engine)
        for name in expected.ended:
            assert_same_up_to_a_near_tie(greedy_tokens(ledger, name), greedy_tokens(expected, name))
        for rows in (1, 2, 8, 64, 512):
            assert 0 < engine.cost.time(rows, 100) < 3600
        for ended in ledger.ended.values():
            receipt = ended.receipt
            assert receipt is not None
            for seconds in (receipt.queued, receipt.ttft, receipt.prefill, receipt.decode, receipt.total):
                assert math.isfinite(seconds)
                assert seconds >= 0
        snapshot = engine.take_snapshot()
        assert snapshot is None or all(
            math.isfinite(value) and value >= 0
            for value in (snapshot.decode_rate, snapshot.prefill_rate, snapshot.bytes_per_second)
        )
        assert snapshot is None or snapshot.speedup is None or 0 < snapshot.speedup < math.inf


class Leap:
    """Real seconds, and three days between the first look and the second."""

    def __init__(self) -> None:
        self._n_looks = 0

    def __call__(self) -> float:
        self._n_looks += 1
        return time.perf_counter() + (3 * 86_400.0 if self._n_looks > 1 else 0.0)


def test_a_machine_that_slept_while_a_state_was_saved_still_drafts() -> None:
    with open_engine(with_state(), n_slots=1, n_ctx=512) as engine:
        speculator = price(engine, {1: 0.010, 2: 0.012, 4: 0.016, 16: 0.040}, 0.001)
        memory = engine.slots.memory
        assert isinstance(memory, CheckpointMemory)
        memory._clock, memory._cost = Leap(), speculator.cost
        _, ended, _ = complete(engine, max_tokens=120, sampling=SamplingParams(temperature=0, ignore_eos=True))
    assert ended.receipt.n_accepted > 40, "of 120 tokens"
