"""The fast lane: who joins its steps and with how many rows; how fast it stays on recorded curves while all move on."""

from __future__ import annotations

import itertools
import random
import statistics
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.cost.cost_model import Calibration, CostModel, attended
from core.scheduler.fast_lane import (
    RIDE_INTERVAL,
    RIDE_SHARE,
    InterferenceBudget,
    PiggybackScheduler,
    fair_order,
    fill_step,
    least_cost,
)
from core.scheduler.planner import Share, StepPlan
from core.scheduler.sequence import Sequence
from core.values.request import Lane
from tests.support.sequences import sequence

# Seconds by rows, as measured: a GPU that waits for its memory, two processor cores, and kernels that switch.
FLAT = {1: 0.0100, 16: 0.0101, 64: 0.0104, 512: 0.0400}
LINEAR = {1: 0.006, 2: 0.0085, 4: 0.013, 8: 0.022, 16: 0.040, 64: 0.150, 128: 0.300}
CLIFF = {1: 0.010, 8: 0.0104, 9: 0.030, 16: 0.031, 64: 0.080}
CURVES = {"flat": FLAT, "linear": LINEAR, "cliff": CLIFF}
N_STEPS = 4_000


class Machine:
    """Steps one fast request, and riders as they are let in, on a clock that follows a curve of its own."""

    def __init__(
        self, believed: Mapping[int, float], true: Callable[[int, int], float], riders: list[Sequence], n_fast: int = 1
    ) -> None:
        """``true(rows, riding)`` is what a step really takes."""
        self.cost = CostModel(Calibration(believed))
        self.piggyback = PiggybackScheduler(self.cost)
        self.fast = [sequence(100 + index, 1, 50, Lane.FAST) for index in range(n_fast)]
        self.riders = riders
        self.true = true
        self.now = 0.0
        self.n_rows = {rider.id: 0 for rider in riders}
        self.steps: list[float] = []
        self.n_riding: list[int] = []

    def step(self) -> None:
        leading: StepPlan = tuple(Share(fast, 1) for fast in self.fast)
        riding = self.piggyback.add_riders(leading, self.riders, 256) if self.riders else ()
        rows = len(leading) + sum(share.n_rows for share in riding)
        n_riding = rows - len(leading)
        seconds = self.true(rows, n_riding)
        self.cost.observe(rows, 0, seconds)
        for share in riding:
            rider = share.sequence
            self.n_rows[rider.id] += share.n_rows
            if rider.is_prefilling:
                rider.n_past += min(share.n_rows, rider.n_pending - 1)
        self.piggyback.observe(leading + riding, self.now, self.now + seconds, 0.0)
        self.now += seconds
        self.steps.append(seconds)
        self.n_riding.append(n_riding)

    def run(self, n_steps: int = N_STEPS) -> None:
        for _ in range(n_steps):
            self.step()


def on_curve(curve: Mapping[int, float], noise: float = 0.0) -> Callable[[int, int], float]:
    cost, rng = CostModel(Calibration(curve)), random.Random(5)

    def seconds(rows: int, _riding: int) -> float:
        return cost.time(rows) * (1.0 + rng.expovariate(1.0 / noise) if noise else 1.0)

    return seconds


def batch_riders(count: int = 16, n_pending: int = 1) -> list[Sequence]:
    return [sequence(order, n_pending, 10, Lane.BATCH) for order in range(count)]


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("n_pending", [1, 100_000], ids=["decoding", "reading prompts"])
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_riders_leave_the_fast_lane_its_pace_and_move_on(name: str, n_pending: int, noise: float) -> None:
    curve = CURVES[name]
    alone = Machine(curve, on_curve(curve, noise), [])
    alone.run()
    machine = Machine(curve, on_curve(curve, noise), batch_riders(n_pending=n_pending))
    machine.run()
    assert statistics.mean(machine.steps) <= 1.08 * statistics.mean(alone.steps)
    assert statistics.median(machine.steps) <= 1.08 * statistics.median(alone.steps)
    # Where noise makes long gaps of its own, rides that are felt come on top of these.
    most = 1.2 if noise else 1.08
    assert sorted(machine.steps)[int(0.95 * N_STEPS)] <= most * sorted(alone.steps)[int(0.95 * N_STEPS)]
    assert all(machine.n_rows.values()), "everybody moves on"


def test_where_rows_cost_nothing_all_ride_in_nearly_every_step() -> None:
    machine = Machine(FLAT, on_curve(FLAT), batch_riders())
    machine.run()
    assert statistics.mean(machine.n_riding) > 0.95 * 16


def test_before_a_cliff_riders_fill_the_free_rows_only() -> None:
    machine = Machine(CLIFF, on_curve(CLIFF), batch_riders())
    machine.run()
    assert max(machine.n_riding) == 7
    assert statistics.mean(machine.n_riding) > 0.95 * 7


def test_rides_that_are_felt_keep_their_distance() -> None:
    machine = Machine(LINEAR, on_curve(LINEAR), batch_riders())
    machine.run()
    rides = [step for step, n_riding in enumerate(machine.n_riding) if n_riding]
    assert len(rides) > 80
    assert min(later - ride for ride, later in itertools.pairwise(rides)) == RIDE_INTERVAL + 1


@pytest.mark.parametrize("name", CURVES)
def test_equals_take_turns(name: str) -> None:
    machine = Machine(CURVES[name], on_curve(CURVES[name]), batch_riders())
    machine.run()
    counts = list(machine.n_rows.values())
    assert max(counts) - min(counts) <= 1


def test_standard_requests_go_before_batch_ones_which_go_too() -> None:
    riders = [sequence(0, 1, 10, Lane.BATCH), sequence(1, 1, 10), sequence(2, 1, 10)]
    machine = Machine({1: 0.01, 2: 0.0104, 3: 0.02, 64: 0.4}, on_curve({1: 0.01, 2: 0.0104, 3: 0.02, 64: 0.4}), riders)
    machine.run()
    batch, *standard = machine.n_rows.values()
    assert max(standard) - min(standard) <= 1
    assert 0 < batch < min(standard) / 10


@pytest.mark.parametrize("factor", [4.0, 20.0])
def test_a_cost_model_that_is_wrong_about_riders_does_not_break_the_promise(factor: float) -> None:
    """Rows look free, and are not: what they take is not in the steps that the cost model sees."""
    true = on_curve(FLAT)
    machine = Machine(FLAT, lambda rows, riding: true(rows, riding) + 0.0002 * factor * riding, batch_riders())
    machine.cost.observe = lambda *_: None
    machine.run()
    assert statistics.mean(machine.steps) <= 1.08 * FLAT[1]
    assert all(machine.n_rows.values())


def test_a_fast_lane_that_is_slower_than_predicted_is_measured_not_blamed_on_riders() -> None:
    machine = Machine(FLAT, lambda rows, riding: 1.3 * on_curve(FLAT)(rows, riding), batch_riders())
    machine.cost.observe = lambda *_: None
    machine.run()
    assert statistics.mean(machine.n_riding[-1_000:]) > 0.9 * 16


def test_several_fast_requests_share_each_step() -> None:
    machine = Machine(LINEAR, on_curve(LINEAR), batch_riders(), n_fast=3)
    machine.run()
    assert statistics.mean(machine.steps) <= 1.08 * CostModel(Calibration(LINEAR)).time(3)
    assert all(machine.n_rows.values())


def test_a_suspended_machine_costs_riders_a_while_not_for_ever() -> None:
    true = on_curve(FLAT)
    machine = Machine(FLAT, true, batch_riders())
    machine.run(100)
    machine.true = lambda rows, riding: 3_600.0
    machine.step()
    machine.true = true
    machine.run(600)
    assert statistics.mean(machine.n_riding[-200:]) > 0.9 * 16


def test_what_else_the_fast_lane_waits_for_is_charged_to_the_same_budget() -> None:
    machine = Machine(LINEAR, on_curve(LINEAR), [])
    paused, n_pauses = 0.0, 0
    for _ in range(2_000):
        machine.step()
        if machine.piggyback.can_pause(0.004):
            machine.piggyback.book_pause(0.004)
            paused += 0.004
            n_pauses += 1
    assert n_pauses > 20
    assert paused <= 1.1 * RIDE_SHARE * sum(machine.steps)
    machine.piggyback.stop()
    assert machine.piggyback.can_pause(10.0), "where there is no fast lane, nothing waits"


def test_a_ledger_saves_no_more_than_a_short_ride() -> None:
    ledger, most = InterferenceBudget(), RIDE_SHARE * (RIDE_INTERVAL + 1) * 0.01 + 1e-9
    for _ in range(1_000):
        ledger.observe(0.01, 0.01)
    assert 0.0 < ledger.balance <= most, "nobody has wanted to ride yet"
    for _ in range(1_000):
        ledger.allowance(0.01, 0.015)
        ledger.observe(0.01, 0.01)
    assert 0.0 < ledger.balance <= most
    ledger.start_over()
    assert ledger.balance == 0.0


def test_riders_that_take_longer_than_predicted_cost_more_from_then_on() -> None:
    ledger = InterferenceBudget()
    assert ledger.cost(0.002, 10) == 0.002
    for _ in range(100):
        ledger.observe(0.014, 0.01, extra=0.002, n_riding=10)
    assert ledger.cost(0.002, 10) == pytest.approx(0.004, rel=0.1)


def test_a_short_reply_is_not_held_up_either() -> None:
    machine = Machine(LINEAR, on_curve(LINEAR), batch_riders())
    for _ in range(40):
        machine.steps.clear()
        machine.run(32)
        assert sum(machine.steps) <= 1.1 * 32 * LINEAR[1]
        machine.piggyback.stop()


def per_row(rows: int, _kv: int) -> float:
    return float(rows)


def test_whoever_rode_longest_ago_is_first_and_batch_requests_are_behind() -> None:
    riders = [sequence(order, 1, 5, lane) for order, lane in enumerate([Lane.BATCH, *[Lane.STANDARD] * 3])]
    for rider, step in zip(riders, (10, 30, 20, 20), strict=True):
        rider.rode_at = step
    assert [rider.order for rider in fair_order(riders)] == [2, 3, 1, 0]
    riders[1].rode_at = 10 + 255
    assert [rider.order for rider in fair_order(riders)] == [2, 3, 1, 0]
    riders[1].rode_at = 10 + 257
    assert [rider.order for rider in fair_order(riders)] == [2, 3, 0, 1], "in the end a batch request has its turn"


def test_a_prompt_takes_the_rows_that_can_be_paid() -> None:
    decoding, reading = sequence(0, 1, 5), sequence(1, 100, 7)
    shares = fill_step([decoding, reading], per_row, 9.5, 256)
    assert [(share.sequence.order, share.n_rows) for share in shares] == [(0, 1), (1, 8)]
    assert [share.n_rows for share in fill_step([decoding, reading], per_row, 1_000.0, 256)] == [1, 100]
    assert fill_step([reading, decoding], per_row, 0.5, 256) == ()


def test_rows_to_replay_ride_together_or_not_at_all() -> None:
    rider = sequence(0, 4, 9)
    rider.n_replay = 3
    assert least_cost(rider, per_row) == 4.0
    assert fill_step([rider], per_row, 3.9, 256) == ()
    assert [share.n_rows for share in fill_step([rider], per_row, 4.0, 256)] == [4]


@given(st.lists(st.integers(1, 300), max_size=20), st.floats(0.0, 200.0), st.integers(1, 256), st.integers(1, 40))
def test_riders_never_take_more_than_they_may(pending: list[int], allowance: float, room: int, cliff: int) -> None:
    def price(rows: int, kv: int) -> float:
        return rows * 0.5 + kv * 0.001 + (20.0 if rows >= cliff else 0.0)

    riders = [sequence(order, n, 10) for order, n in enumerate(pending)]
    shares = fill_step(riders, price, allowance, room)
    n_rows = sum(share.n_rows for share in shares)
    kv = sum(attended(share.n_rows, 10) for share in shares)
    assert n_rows <= room
    assert not shares or price(n_rows, kv) <= allowance + 1e-9
    assert all(1 <= share.n_rows <= share.sequence.n_pending for share in shares)
    assert [share.sequence for share in shares] == riders[: len(shares)]
