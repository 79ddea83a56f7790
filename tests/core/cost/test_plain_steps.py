"""What plain steps take by those that were seen; and the bounds of a speed-up, whatever the steps were like."""

from __future__ import annotations

import itertools
import math
import random
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.cost.cost_model import Calibration, CostModel, PlainSteps, ReadCost
from core.engine.meter import Meter
from core.llama.library import silence_log
from core.machine.known_machine import Measurements
from core.scheduler.planner import Share, StepPlan
from core.scheduler.sequence import RequestCost
from core.values.engine_options import EngineOptions
from models.facts.model_facts import WeightBytes
from tests.core.engine.test_meter import Cached
from tests.support.engines import complete, load, open_engine, run, submit
from tests.support.prompts import EMBER, FOX, SURE

CURVE = Calibration({1: 0.0108, 2: 0.0177, 3: 0.0235, 4: 0.0262, 8: 0.0473, 16: 0.0978, 64: 0.36}, 2e-8)
TRUE = CostModel(CURVE)
DRAFTING = 0.001


def wrong(factor: float) -> CostModel:
    """Return a cost model from a calibration that was made while everything took ``factor`` times as long."""
    return CostModel(Calibration({rows: factor * took for rows, took in CURVE.seconds.items()}, factor * 2e-8))


def seen(*seconds: float, rows: int = 1, kv: int = 0) -> PlainSteps:
    found = PlainSteps(TRUE.time)
    for took in seconds:
        found.saw(rows, kv, took, took)
    return found


def test_the_latest_count_once_enough_were_seen() -> None:
    assert seen().seconds(1, 0) is None
    assert seen(0.01, 0.01).seconds(1, 0) is None
    assert seen(0.01, 0.01, 0.01).seconds(1, 0) == pytest.approx(0.01)
    assert seen(0.01, 0.01, 0.01).seconds(2, 0) is None, "another width was not seen"
    assert seen(*[0.03] * 50, *[0.01] * 12).seconds(1, 0) == pytest.approx(0.01)


def test_the_calibration_only_compares_depths() -> None:
    found = PlainSteps(wrong(30.0).time)
    for _ in range(5):
        found.saw(1, 1_000, 0.011, 0.010)
    assert found.seconds(1, 1_000) == pytest.approx(0.011)
    assert found.seconds(1, 100_000) == pytest.approx(0.011 * TRUE.time(1, 100_000) / TRUE.time(1, 1_000))


@pytest.mark.parametrize("hiccup", [0.1, 5.0])
def test_a_step_that_met_a_pause_of_the_machine_hardly_counts(hiccup: float) -> None:
    assert seen(0.010, 0.011, hiccup, 0.010, 0.009, 0.010).seconds(1, 0) == pytest.approx(0.010, rel=0.05)


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.nan, math.inf])
def test_what_is_no_time_says_nothing(seconds: float) -> None:
    assert seen(0.01, 0.01, seconds).seconds(1, 0) is None


def test_one_step_in_forty_is_plain_and_more_while_little_is_known() -> None:
    def gaps(found: PlainSteps, n_steps: int) -> list[int]:
        due = []
        for step in range(n_steps):
            if found.is_due(1):
                found.saw(1, 0, 0.01, 0.01)
                due.append(step)
        return [after - before for before, after in itertools.pairwise(due)]

    assert gaps(seen(), 200) == [9, 9, 41, 41, 41]
    assert gaps(seen(0.01), 200) == [9, 41, 41, 41, 41]


def test_a_control_that_still_replays_is_made_again() -> None:
    found = seen(0.01)
    due = [step for step in range(18) if found.is_due(1)]
    assert due == [8, 9], "the first one was none: nothing was seen of it"


def test_where_the_machine_has_changed_only_what_fits_it_stays() -> None:
    cost = wrong(20.0)
    for _ in range(12):
        cost.plain.saw(1, 0, 20 * CURVE.seconds[1], 20 * CURVE.seconds[1])
    for _ in range(5):
        cost.plain.saw(1, 0, CURVE.seconds[1], CURVE.seconds[1])
        cost.observe(1, 0, CURVE.seconds[1])
    assert cost.plain.seconds(1, 0) == pytest.approx(CURVE.seconds[1])


# -- speed-ups of whole replies --------------------------------------------------------------------------------------


class Step(NamedTuple):
    """A step: for each sequence, tokens drafted and how many of them were right; the machine's pace, a hiccup."""

    drafts: tuple[tuple[int, int], ...]
    pace: float = 1.0
    hiccup: float = 0.0


class Stage:
    """A meter and its cost model, which may be wrong, on a machine with the curve above."""

    def __init__(self, cost: CostModel) -> None:
        self.cost = cost
        self.meter = Meter(cost, ReadCost(WeightBytes(1_000, 0, 1, 0), cell=0))
        self.accounts: list[RequestCost] = []
        self.n_steps = self.n_tokens = self.n_drafted = 0
        self.plain_seconds = self.seconds = 0.0

    def step(self, step: Step) -> None:
        """Take a step as the engine does."""
        if len(self.accounts) != len(step.drafts):
            self.accounts = [RequestCost() for _ in step.drafts]
            self.n_steps = self.n_tokens = self.n_drafted = 0
            self.plain_seconds = self.seconds = 0.0
        shares: StepPlan = tuple(Share(Cached(100), 1, (7,) * drafted) for drafted, _ in step.drafts)
        n_rows = len(shares) + sum(drafted for drafted, _ in step.drafts)
        decode = TRUE.time(n_rows) * step.pace + step.hiccup
        draft = DRAFTING * step.pace if n_rows > len(shares) else 0.0
        reading = self.meter.read(shares, decode, draft, 0, decode + draft)
        for account, (_, right) in zip(self.accounts, step.drafts, strict=True):
            reading.book(account, 1 + right)
        if n_rows == len(shares):
            self.cost.plain.saw(n_rows, reading.kv, decode, decode)
        self.cost.observe(n_rows, reading.kv, decode)
        self.n_steps += 1
        self.n_tokens += 1 + step.drafts[0][1]
        self.n_drafted += n_rows - len(shares)
        self.plain_seconds += (1 + step.drafts[0][1]) * TRUE.time(len(shares)) * step.pace
        self.seconds += decode + draft


def _right(drafted: int) -> st.SearchStrategy[tuple[int, int]]:
    return st.tuples(st.just(drafted), st.integers(0, drafted))


DRAFTS = st.integers(0, 12).flatmap(_right)
STEPS = st.integers(1, 4).flatmap(
    lambda width: st.lists(
        st.builds(
            Step,
            st.tuples(*[DRAFTS] * width),
            pace=st.sampled_from((1.0, 1.0, 1.0, 0.5, 3.0, 25.0)),
            hiccup=st.sampled_from((0.0, 0.0, 0.0, 0.0, 0.05, 2.0)),
        ),
        min_size=1,
        max_size=80,
    )
)


@settings(max_examples=20, deadline=None)
@given(steps=st.lists(STEPS, min_size=1, max_size=4), factor=st.floats(1 / 30, 30.0))
def test_a_speed_up_is_never_more_than_the_tokens_of_a_step(steps: list[list[Step]], factor: float) -> None:
    """Wrong curves, hiccups, load that comes and goes, texts that join: whatever the steps were like."""
    stage = Stage(wrong(factor))
    for reply in steps:
        for step in reply:
            stage.step(step)
        for account in stage.accounts:
            if account.speedup is not None:
                assert 0.0 < account.speedup <= account.n_compared / account.n_steps + 1e-9
                assert account.n_compared <= account.n_tokens
            assert account.plain_seconds is None or 0.0 < account.plain_seconds < math.inf


@settings(max_examples=15, deadline=None)
@given(
    factor=st.floats(1 / 30, 30.0),
    depth=st.integers(1, 6),
    right=st.integers(0, 6),
    seed=st.integers(0, 1_000),
    width=st.integers(1, 4),
)
def test_a_wrong_calibration_does_not_show_in_a_speed_up(
    factor: float, depth: int, right: int, seed: int, width: int
) -> None:
    stage, noise = Stage(wrong(factor)), random.Random(seed)
    for number in range(100):
        drafts = ((depth, min(right, depth)),) * width if number % 10 else ((0, 0),) * width
        stage.step(Step(drafts, pace=noise.uniform(0.97, 1.03), hiccup=0.05 if number == 50 else 0.0))
        stage.plain_seconds += 0.05 if number == 50 and not any(drafts[0]) else 0.0
    speedup = stage.accounts[0].speedup
    assert speedup is not None
    truth = min(stage.plain_seconds / stage.seconds, stage.n_tokens / stage.n_steps)
    assert speedup == pytest.approx(truth, rel=0.06)


def test_a_reply_of_which_little_could_be_compared_has_no_speed_up() -> None:
    stage = Stage(wrong(25.0))
    for _ in range(23):
        stage.step(Step(((6, 5),)))
    assert stage.accounts[0].speedup is None, "no plain step was seen: the calibration's guess is none"
    assert stage.accounts[0].plain_seconds is None


# -- a real engine ---------------------------------------------------------------------------------------------------


def calibrated_wrongly(factor: float) -> Measurements:
    """Return what would be remembered of Ember and its draft if it was measured beside other work."""
    silence_log()
    measured = Measurements(None)
    load(OPTIONS, measured=measured)[0].close()
    for entry in measured.entries.values():
        if "seconds" in entry:
            entry["seconds"] = {rows: factor * took for rows, took in entry["seconds"].items()}
            entry["kv_seconds"] *= factor
    return measured


OPTIONS = EngineOptions(
    str(EMBER), n_slots=2, n_ctx=512, n_threads=1, draft_path=str(EMBER), draft_depth=4, flash_attention="on"
)


@pytest.mark.parametrize("factor", [1 / 25, 25.0])
def test_an_engine_that_was_calibrated_beside_other_work_claims_no_more_than_it_has_seen(factor: float) -> None:
    measured = calibrated_wrongly(factor)
    engine, _ = load(OPTIONS, measured=measured)
    try:
        first = complete(engine, SURE, max_tokens=60)[1].receipt
        assert first.n_accepted > 40
        assert first.speedup is None, "each step was drafted: nobody has seen a plain one"
        plain = complete(engine, SURE, max_tokens=60, speculates=False)[1].receipt
        assert plain.speedup == 1.0
        seen, was = engine.cost.plain.seconds(1, 100), 1 / plain.decode_rate
        assert seen is not None
        assert was / 4 < seen < 4 * was, "what was seen, not what was calibrated"
        n_steps = engine.stats.n_steps
        drafted = complete(engine, SURE, max_tokens=60)[1].receipt
        n_steps = engine.stats.n_steps - n_steps
    finally:
        engine.close()
    assert drafted.speedup is None or 0.0 < drafted.speedup <= drafted.n_generated / (n_steps - 1)


def test_a_request_that_may_not_draft_is_as_fast_as_plain_decoding() -> None:
    with open_engine(draft_path=str(EMBER), speculation="draft", draft_depth=4, n_slots=2) as engine:
        submit(engine, "plain", FOX, max_tokens=40, speculates=False)
        submit(engine, "drafted", SURE, max_tokens=40)
        ended = run(engine).ended
    assert (ended["plain"].receipt.n_drafted, ended["plain"].receipt.speedup) == (0, 1.0)
    assert ended["drafted"].receipt.n_drafted > 0
