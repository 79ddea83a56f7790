"""Drafts for some make no text wait beyond its lane's target. Pure, on recorded curves."""

from __future__ import annotations

from collections.abc import Collection
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.cost.cost_model import Calibration, CostModel
from core.scheduler.planner import token_latency_target
from core.scheduler.sequence import Sequence
from core.speculation.draft_length import LatencyBound, StepCost, keep_evenly, keep_what_pays
from core.speculation.proposers.proposer import DraftChain
from core.values.request import Lane
from tests.support.engines import open_engine, run, submit
from tools.model_factory.gguf_factory import EMBER_DRAFT

# Steps of a large model on a processor: a row takes 60 ms, and each further one 20 ms.
SLOW = CostModel(Calibration({1: 0.060, 2: 0.080, 4: 0.120, 16: 0.360}))


def request(name: str, lane: Lane = Lane.STANDARD) -> Any:
    return SimpleNamespace(id=name, lane=lane)


def chain(name: str, *reach: float) -> DraftChain:
    drafted = len(reach)
    sequence = cast("Any", request(name))
    return DraftChain(
        sequence, cast("Any", None), cast("Any", None), [7] * drafted, [0] * drafted, [0.5] * drafted, [*reach]
    )


def step(*lanes: Lane, rate: float = 1.0, spent: float = 0.0) -> StepCost:
    """A step of requests called 0, 1 ... in these lanes, where time is worth next to nothing elsewhere."""
    requests = [request(str(index), lane) for index, lane in enumerate(lanes)]
    latency_bound = LatencyBound(requests, SLOW.time(len(lanes)))
    return StepCost(len(lanes), rate, SLOW.time, 16, latency_bound=latency_bound, spent=spent)


def kept(prices: StepCost, *chains: DraftChain) -> list[int]:
    keep_what_pays(list(chains), prices, lambda one: one.reach)
    return [len(one.tokens) for one in chains]


SURE = (0.99,) * 8


def test_a_text_waits_as_long_as_its_lane_allows() -> None:
    assert kept(step(Lane.STANDARD), chain("0", *SURE)) == [8]
    assert kept(step(Lane.STANDARD, Lane.STANDARD), chain("0", *SURE)) == [1], "the other has no draft"
    assert kept(step(Lane.STANDARD, Lane.STANDARD, spent=0.01), chain("0", *SURE)) == [0]
    assert kept(step(Lane.STANDARD, spent=0.01), chain("0", *SURE)) == [8]
    assert kept(step(Lane.STANDARD, Lane.BATCH), chain("0", *SURE)) == [8]
    assert kept(step(Lane.STANDARD, Lane.STANDARD), chain("0", *SURE), chain("1", *SURE)) == [8, 8]


def test_where_plain_steps_are_too_slow_already_drafts_make_them_little_slower() -> None:
    lanes = (Lane.STANDARD,) * 4
    (n_drafted,) = kept(step(*lanes), chain("0", *SURE))
    assert SLOW.time(4) > token_latency_target(Lane.STANDARD)
    assert n_drafted == 1
    assert SLOW.time(5) <= 1.25 * SLOW.time(4)


@pytest.mark.parametrize(("chances", "depth"), [(SURE, 8), ((0.7, 0.2, 0.01, 0.001), 2)])
def test_drafts_of_equal_length_are_shortened_together(chances: tuple[float, ...], depth: int) -> None:
    chains = [chain("0", *SURE), chain("1", *chances)]
    prices = step(Lane.STANDARD, Lane.STANDARD, rate=0.0)._replace(n_even=2)
    keep_evenly(chains, prices, lambda one: one.reach)
    assert [len(one.tokens) for one in chains] == [depth] * 2


def test_rows_that_those_without_drafts_leave() -> None:
    prices = step(Lane.STANDARD, Lane.STANDARD)
    assert prices.latency_bound.limit_without({"0"}) == token_latency_target(Lane.STANDARD)
    assert prices.latency_bound.limit_without({"0", "1"}) == float("inf")
    assert prices.within(0.1).room == 1
    assert prices.within(0.05).room == 0
    assert prices.within(float("inf")) is prices


@given(
    st.lists(st.tuples(st.sampled_from(Lane), st.lists(st.floats(0.01, 0.999), max_size=8)), min_size=2, max_size=6),
    st.floats(0.0, 0.1),
)
def test_no_text_waits_beyond_its_target_and_nothing_is_cut_without_need(
    texts: list[tuple[Lane, list[float]]], spent: float
) -> None:
    requests = [request(str(index), lane) for index, (lane, _) in enumerate(texts)]
    plain = SLOW.time(len(texts))
    hopes = [(str(index), chance) for index, (_, chances) in enumerate(texts) for chance in chances]
    latency_bound = LatencyBound(requests, plain)

    def seconds(count: int) -> float:
        return spent + SLOW.time(len(texts) + count)

    def waits(count: int) -> list[float]:
        gains = [sum(chance for name, chance in hopes[:count] if name == one.id) for one in requests]
        limits = [max(token_latency_target(one.lane), 1.25 * plain) for one in requests]
        return [seconds(count) / (1 + gain) / limit for gain, limit in zip(gains, limits, strict=True)]

    count = latency_bound.trim(len(hopes), hopes, seconds)
    assert not count or max(waits(count)) <= 1 + 1e-9
    assert all(max(waits(more)) > 1 - 1e-9 for more in range(count + 1, len(hopes) + 1))


def test_requests_that_want_no_drafts_are_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[set[str]] = []

    class Asked(LatencyBound):
        def __init__(self, requests: Collection[Sequence], plain_seconds: float) -> None:
            asked.append({request.id for request in requests})
            super().__init__(requests, plain_seconds)

    monkeypatch.setattr("core.speculation.speculator.LatencyBound", Asked)
    with open_engine(n_slots=3, n_ctx=256, draft_path=str(EMBER_DRAFT)) as engine:
        for name, speculates in (("drafted", True), ("plain", False), ("also plain", False)):
            submit(engine, name, "Once upon a time", max_tokens=24, speculates=speculates)
        run(engine)
    assert {"drafted", "plain", "also plain"} in asked
