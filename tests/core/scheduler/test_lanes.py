"""Lanes on a real model: who gives way, that nothing is lost by it, and that every request ends once."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.cost.cost_model import Calibration, CostModel
from core.engine.engine import Engine
from core.scheduler.fast_lane import PiggybackScheduler
from core.values.messages import FinishReason
from core.values.request import Lane, SamplingParams
from tests.support.engines import Ledger, open_engine, run, submit
from tests.support.near_ties import GREEDY_WITH_LOGPROBS, assert_same_up_to_a_near_tie, greedy, greedy_tokens
from tests.support.prompts import EMBER_DRAFT, FOX, chat

PROMPTS = (FOX, chat("Who are you?"), chat("List the planets."), chat("Count to five."), "def fibonacci(n):\n")


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with open_engine(n_slots=2, n_ctx=512) as made:
        yield made


@pytest.fixture
def rides_are_free(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Riders add next to nothing to steps that take less than expected, whatever else uses the cores."""
    monkeypatch.setattr(engine, "piggyback", PiggybackScheduler(CostModel(Calibration({1: 1.0, 64: 1.001}))))


@pytest.fixture(scope="module")
def cramped_engine() -> Iterator[Engine]:
    """Half of what its slots could hold."""
    with open_engine(EMBER_DRAFT, n_slots=4, n_ctx=256, n_cells=512) as made:
        yield made


@pytest.fixture(scope="module")
def drafting_engine() -> Iterator[Engine]:
    with open_engine(n_slots=2, n_ctx=512, draft_path=str(EMBER_DRAFT)) as made:
        yield made


def steps(engine: Engine, ledger: Ledger, count: int) -> None:
    for _ in range(count):
        ledger.add(engine.step())


def lanes_of(engine: Engine) -> list[Lane]:
    return [sequence.lane for sequence in engine.scheduler.running]


def check_that_preemption_costs_no_word(engine: Engine) -> None:
    expected = [greedy(engine, prompt, max_tokens=40)[0] for prompt in PROMPTS]
    ledger = Ledger()
    for index, prompt in enumerate(PROMPTS):
        submit(engine, str(index), prompt, max_tokens=40, sampling=GREEDY_WITH_LOGPROBS, lane=Lane.BATCH)
    steps(engine, ledger, 8)
    submit(engine, "chat", FOX, max_tokens=10)
    submit(engine, "fast", FOX, max_tokens=10, lane=Lane.FAST)
    steps(engine, ledger, 1)
    assert sorted(lanes_of(engine)) == [Lane.FAST, Lane.STANDARD]
    run(engine, ledger)
    assert len(ledger.started) == len(ledger.ended) == len(PROMPTS) + 2
    for index, tokens in enumerate(expected):
        assert_same_up_to_a_near_tie(greedy_tokens(ledger, str(index)), tokens)


def test_preempted_requests_go_on_where_they_were(engine: Engine) -> None:
    check_that_preemption_costs_no_word(engine)


def test_preempted_requests_go_on_where_they_were_beside_drafts(drafting_engine: Engine) -> None:
    check_that_preemption_costs_no_word(drafting_engine)


@pytest.mark.usefixtures("rides_are_free")
def test_a_fast_request_runs_beside_batch_requests_that_move_on_and_end(engine: Engine) -> None:
    ledger = Ledger()
    for index in range(6):
        submit(engine, f"batch {index}", PROMPTS[index % 5], max_tokens=20, lane=Lane.BATCH)
    steps(engine, ledger, 4)
    endless = SamplingParams(temperature=0, ignore_eos=True)
    submit(engine, "fast", FOX, max_tokens=200, lane=Lane.FAST, sampling=endless)
    while "fast" not in ledger.ended:
        ledger.add(engine.step())
    assert ledger.n_tokens["fast"] == 200
    assert engine.piggyback.n_rides, "somebody has ridden along"
    run(engine, ledger)
    assert len(ledger.ended) == 7


def test_several_fast_requests_get_a_token_in_each_step(engine: Engine) -> None:
    ledger = Ledger()
    endless = SamplingParams(temperature=0, ignore_eos=True)
    fast = ("a", "b")
    for name in fast:
        submit(engine, name, FOX, max_tokens=60, lane=Lane.FAST, speculates=False, sampling=endless)
    submit(engine, "late", FOX, max_tokens=5)
    while any(not engine.scheduler[name].n_generated for name in fast):
        steps(engine, ledger, 1)
    before = [engine.scheduler[name].n_generated for name in fast]
    steps(engine, ledger, 20)
    assert [engine.scheduler[name].n_generated for name in fast] == [n + 20 for n in before]
    run(engine, ledger)
    assert len(ledger.ended) == 3


def test_a_preempted_request_can_be_cancelled(engine: Engine) -> None:
    ledger = Ledger()
    for name in ("one", "two"):
        submit(engine, name, FOX, max_tokens=100, lane=Lane.BATCH)
    steps(engine, ledger, 5)
    submit(engine, "fast", FOX, max_tokens=5, lane=Lane.FAST)
    steps(engine, ledger, 1)
    assert engine.scheduler["two"] in engine.scheduler.waiting
    engine.cancel("two")
    steps(engine, ledger, 1)
    assert ledger.ended["two"].reason is FinishReason.CANCELLED
    assert ledger.ended["two"].receipt.n_generated
    run(engine, ledger)
    assert set(ledger.ended) == {"one", "two", "fast"}


@pytest.mark.usefixtures("rides_are_free")
def test_the_snapshot_counts_requests_by_lane(engine: Engine) -> None:
    for index in range(4):
        submit(engine, f"batch {index}", FOX, max_tokens=10, lane=Lane.BATCH)
    submit(engine, "fast", FOX, max_tokens=10, lane=Lane.FAST)
    engine.step()
    snapshot = engine.take_snapshot()
    assert snapshot is not None
    assert {one.lane: (one.n_running, one.n_waiting) for one in snapshot.lanes} == {
        "fast": (1, 0),
        "standard": (0, 0),
        "batch": (1, 3),
    }
    run(engine)


arrivals = st.lists(
    st.tuples(
        st.sampled_from(tuple(Lane)),
        st.integers(0, len(PROMPTS) - 1),
        st.integers(1, 120),
        st.integers(0, 12),
        st.booleans(),
    ),
    min_size=1,
    max_size=10,
)


@given(arrivals, st.integers(0, 1_000))
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_every_request_ends_once_however_they_come_and_go(
    cramped_engine: Engine, requests: list[tuple[Lane, int, int, int, bool]], seed: int
) -> None:
    """In half of the cells that all slots could use."""
    engine, ledger, rng = cramped_engine, Ledger(), random.Random(seed)
    for index, (lane, prompt, n_tokens, n_steps, is_cancelled) in enumerate(requests):
        submit(engine, str(index), PROMPTS[prompt] * rng.randint(1, 4), max_tokens=n_tokens, lane=lane)
        steps(engine, ledger, n_steps)
        if is_cancelled:
            engine.cancel(str(rng.randint(0, index)))
    run(engine, ledger)
    assert set(ledger.ended) == {str(index) for index in range(len(requests))}
    assert all(ended.reason is not FinishReason.FAILED for ended in ledger.ended.values())
    assert not engine.scheduler.running
    assert not engine.scheduler.waiting.size
