"""A clock that jumps (sleep, suspend, a virtual machine that was moved) costs no text, no end and no judgement."""

from __future__ import annotations

import math
import random
import time

import pytest

from core.engine import Engine
from core.runner import Runner
from tests.support.engines import EMBER_DRAFT, SURE, chat, open_engine, run, submit

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


def use_clock(engine: Engine, clock: JumpyClock) -> None:
    runner = engine._runner
    assert isinstance(runner, Runner)
    engine._clock = runner._clock = engine._drafting._clock = clock
    speculator = engine._speculator
    assert speculator is not None
    speculator._clock = speculator._growth.clock = clock


@pytest.mark.parametrize("seed", range(3))
def test_a_jumping_clock_changes_no_text_and_leaves_every_figure_finite(seed: int) -> None:
    with open_engine(speculation="off") as engine:
        for index, prompt in enumerate(PROMPTS):
            submit(engine, str(index), prompt, max_tokens=60)
        expected = run(engine).text
    with open_engine(draft_path=str(EMBER_DRAFT)) as engine:
        use_clock(engine, JumpyClock(seed))
        for index, prompt in enumerate(PROMPTS):
            submit(engine, str(index), prompt, max_tokens=60)
        ledger = run(engine)
        assert ledger.text == expected
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
            for value in (snapshot.decode_rate, snapshot.prefill_rate, snapshot.bytes_per_second, snapshot.speedup)
        )
