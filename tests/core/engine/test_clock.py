"""A clock that jumps (sleep, suspend, a virtual machine that was moved) costs no text, no end and no judgement."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.engines import open_engine, run, submit
from tests.support.near_ties import GREEDY_WITH_LOGPROBS, assert_same_up_to_a_near_tie, greedy_tokens
from tests.support.prompts import EMBER, EMBER_DRAFT, SURE, chat
from tools.model_factory import gguf_factory, head_factory, hybrid_factory

PROMPTS = (SURE, chat("Count to five."), chat("Who are you?"))


class JumpyClock:
    """Real seconds, with jumps of up to three days. Forward: the engine's clock is a monotonic one."""

    def __init__(self) -> None:
        self._random = random.Random(1)
        self._offset = 0.0

    def __call__(self) -> float:
        if self._random.random() < 0.2:
            self._offset += 10 ** self._random.uniform(-3, 5.4)
        return time.perf_counter() + self._offset


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
def test_a_jumping_clock_changes_no_text_and_leaves_every_figure_finite(proposer: str) -> None:
    make, options = SETTINGS[proposer]
    path = make()
    with open_engine(path, speculation="off") as engine:
        for index, prompt in enumerate(PROMPTS):
            submit(engine, str(index), prompt, max_tokens=60, sampling=GREEDY_WITH_LOGPROBS)
        expected = run(engine)
    with open_engine(path, clock=JumpyClock(), **options) as engine:
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
