"""Steps are entered one by one and learnt from in groups, in order and each once."""

from __future__ import annotations

import numpy as np
import pytest

from core.cost.cost_model import Calibration, CostModel, ReadCost
from core.engine.meter import Meter, StepFeedback, StepReading
from core.kv_cache.memory import AttentionMemory
from core.kv_cache.slot import TokenBuffer
from core.kv_cache.slot_table import SlotTable
from core.values.messages import Snapshot
from models.facts.model_facts import WeightBytes
from tests.support.engines import open_engine, run, submit
from tests.support.prompts import FOX

STEP = 0.004
NOBODY = Snapshot(is_idle=False, n_cells=100)


class Cells:
    """A KV cache of which nothing is asked here."""

    def remove(self, sequence: int, start: int, end: int = -1) -> bool:
        return True

    def copy(self, source: int, target: int, end: int, start: int = 0) -> None:
        """Nothing is held."""

    def last_position(self, sequence: int) -> int:
        return -1


class Watched:
    """Feedback with a real meter, cost model and slots, and what it passed on."""

    def __init__(self, kv_seconds: float = 0.0, seconds: float = STEP) -> None:
        self.cost = CostModel(Calibration({1: seconds, 64: seconds}, kv_seconds))
        self.meter = Meter(self.cost, ReadCost(WeightBytes(1_000, 0, 1, 0), cell=0))
        self.slots = SlotTable(AttentionMemory(Cells()), 2, prefill_seconds=lambda n_tokens: 1.0)
        self.seen: list[tuple[int, int, float]] = []
        self.feedback = StepFeedback(self.cost, lambda *step: self.seen.append(step), self.meter, self.slots)
        self.now, self.step = 0.0, seconds

    def enter(self, n_rows: int = 1, n_prefill: int = 0, n_sequences: int = 1, *, has_waited: bool = True) -> None:
        reading = StepReading(
            n_rows, n_prefill, n_sequences, n_rows * (1 + len(self.seen)), 1_000, self.step, self.step, self.step
        )
        reading.began, reading.ended, reading.n_sampled = self.now, self.now + self.step, 1
        reading.has_waited = has_waited
        self.feedback.add(reading)
        self.now += self.step


def test_plain_steps_are_learnt_from_together() -> None:
    watched = Watched()
    lengths = []
    for _ in range(40):
        watched.enter()
        lengths.append(len(watched.seen))
    changes = sorted(set(lengths))
    assert changes[0] == 0
    assert 2 <= len(changes) <= 6
    watched.feedback.flush()
    assert len(watched.seen) == 40
    assert watched.meter.snapshot(watched.now, NOBODY).decode_rate == pytest.approx(1 / STEP, rel=0.01)


def test_a_slow_step_is_learnt_from_at_once() -> None:
    watched = Watched(seconds=0.2)
    watched.enter()
    assert len(watched.seen) == 1


@pytest.mark.parametrize(("n_rows", "n_prefill", "n_sequences"), [(5, 0, 1), (20, 19, 1), (16, 16, 0)])
def test_steps_with_drafts_or_prompts_are_learnt_from_at_once_behind_those_before(
    n_rows: int, n_prefill: int, n_sequences: int
) -> None:
    watched = Watched()
    watched.enter()
    watched.enter(n_rows, n_prefill, n_sequences)
    assert [rows for rows, _, _ in watched.seen] == [1, n_rows]
    watched.feedback.flush()
    assert len(watched.seen) == 2, "each once"


def test_steps_that_a_gpu_has_not_ended_share_the_time_until_it_has() -> None:
    watched = Watched()
    watched.step = 0.001
    for _ in range(2):
        watched.enter(64, 64, 0, has_waited=False)
    watched.feedback.flush()
    assert watched.seen == []
    watched.step = 0.022
    watched.enter(64, 64, 0)
    assert [seconds for _, _, seconds in watched.seen] == pytest.approx([0.008] * 3)
    watched.enter(64, 64, 0, has_waited=False)
    watched.feedback.stop()
    watched.enter(64, 64, 0)
    assert len(watched.seen) == 4, "nobody waited for the end of the one before"
    assert watched.seen[-1][2] == 0.022


def test_what_idle_texts_cost_is_charged_for_all_steps() -> None:
    watched = Watched(kv_seconds=1e-7)
    slot, _ = watched.slots.take(TokenBuffer(np.arange(100, dtype=np.int32)))
    slot.n_resident = 100
    watched.slots.release(slot)
    for _ in range(3):
        watched.enter()
    charged: list[float] = []
    watched.slots.charge_idle = charged.append
    watched.feedback.flush()
    assert charged == [pytest.approx(3 * 100 * 1e-7)]


def test_an_engine_has_learnt_from_each_step_when_it_is_idle_or_asked() -> None:
    with open_engine(n_slots=2, n_ctx=256, speculation="off") as engine:
        n_observed = 0
        record = engine.meter.record

        def counting(reading: StepReading) -> None:
            nonlocal n_observed
            n_observed += 1
            record(reading)

        engine.meter.record = counting
        submit(engine, "a", FOX, max_tokens=20)
        for _ in range(4):
            engine.step()
        assert engine.take_snapshot() is not None
        assert n_observed == engine.stats.n_steps == 4
        run(engine)
        assert n_observed == engine.stats.n_steps
        submit(engine, "b", FOX, max_tokens=20)
        for _ in range(3):
            engine.step()
        engine.cancel("b")
        engine.step()
        snapshot = engine.take_snapshot()
        assert snapshot is not None
        assert snapshot.is_idle
        assert n_observed == engine.stats.n_steps
