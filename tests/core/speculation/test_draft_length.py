"""How much is drafted: what pays, also where all requests must bring equally many rows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from benchmarks.simulation import CURVES
from core.cost.cost_model import Calibration, CostModel
from core.speculation.draft_length import (
    GrowthCandidate,
    StepCost,
    best_cut,
    charged,
    keep_evenly,
    round_value,
    with_time_saved,
)
from core.speculation.proposers.proposer import DraftChain

GPU = CostModel(Calibration({1: 0.0100, 8: 0.0102, 16: 0.0104, 64: 0.0130}))
CPU = CostModel(Calibration({1: 0.0105, 2: 0.0159, 3: 0.019, 4: 0.022, 8: 0.036, 16: 0.068}))
CLIFF = CostModel(Calibration({**dict.fromkeys(range(1, 9), 0.010), **dict.fromkeys(range(9, 17), 0.018)}))


def step(model: CostModel, n: int = 1, room: int = 16) -> StepCost:
    """A step of ``n`` sequences, whose time is worth what plain decoding makes of it."""
    return StepCost(n, n / model.time(n), model.time, room)


def free(_: int) -> float:
    return 0.0


def test_a_round_is_worth_what_its_tokens_are_beside_its_price() -> None:
    assert round_value([GrowthCandidate(1.0, 0.2)], step(GPU), free).n_chains == 1

    def dear(_: int) -> float:
        return 0.004

    candidates = [GrowthCandidate(1.0, 0.75)]
    assert round_value(candidates, step(CPU), free).n_chains == 1
    assert round_value(candidates, step(CPU), dear).n_chains == 0
    candidates = [GrowthCandidate(1.0, 0.9)]
    assert round_value(candidates, step(CPU), free, lambda _: 0.001).n_chains == 1
    assert round_value(candidates, step(CPU), free, lambda _: 1.0).n_chains == 0
    candidates = [GrowthCandidate(0.9, 0.9), GrowthCandidate(1.0, 0.8)]
    assert round_value(candidates, step(GPU, 2), free).n_chains == 2
    assert round_value(candidates, step(GPU, 2), free, lambda n_chains: 0.05 * (n_chains - 1)).n_chains == 1
    assert round_value([GrowthCandidate(1.0, 0.99)], step(CPU, room=0), free).n_chains == 0
    assert round_value([], step(CPU), free).n_chains == 0


def test_only_the_promising_chains_grow() -> None:
    candidates = [
        GrowthCandidate(1.0, 0.95),
        GrowthCandidate(1.0, 0.9),
        GrowthCandidate(1.0, 0.1),
        GrowthCandidate(0.3, 0.2),
    ]
    assert round_value(candidates, step(CPU, 4), free).n_chains == 2


def test_looking_is_worth_a_cheap_round_where_the_tokens_show_whether_they_are_right() -> None:
    """The second row is dear: tokens of which six in ten are right do not pay for it, those seen to be right do."""
    prices, candidates = step(CostModel(CURVES["dear row"])), [GrowthCandidate(1.0, 0.6)]

    def cheap(_: int) -> float:
        return 0.0003

    blind = round_value(candidates, prices, cheap)
    assert blind.n_chains == 0
    seeing = [round_value(candidates, prices, cheap, resolution=share).worth for share in (0.4, 0.7, 1.0)]
    assert 0.0 < seeing[0] < seeing[1] < seeing[2]
    assert round_value(candidates, prices, lambda _: 0.008, resolution=1.0).n_chains == 0, "not at any price"
    assert round_value([GrowthCandidate(1.0, 0.02)], prices, cheap, resolution=1.0).n_chains == 0


def test_a_draft_that_is_there_already_must_be_beaten() -> None:
    candidates = [GrowthCandidate(1.0, 0.9, rival=rival) for rival in (0.0, 1.0, 8.0)]
    worths = [round_value([one], step(GPU), free, resolution=0.5).worth for one in candidates]
    assert worths[0] > worths[1] > worths[2] == 0.0


@pytest.mark.parametrize(
    ("reaches", "model", "expected"),
    [
        ([0.95, 0.9, 0.85, 0.8], CPU, 4),
        ([0.9, 0.2, 0.1], CPU, 1),
        ([0.3, 0.2], CPU, 0),
        ([0.3, 0.2, 0.1], GPU, 3),
        ([], CPU, 0),
        ([0.9] * 7 + [0.15] * 4, CLIFF, 7),
        ([0.99] * 15, CLIFF, 15),
    ],
)
def test_the_best_cut(reaches: list[float], model: CostModel, expected: int) -> None:
    assert best_cut(reaches, step(model)) == expected


def test_a_dear_first_row_does_not_hide_free_ones_behind_it() -> None:
    stairs = CostModel(Calibration({1: 0.010, 2: 0.016, 3: 0.016, 4: 0.016, 5: 0.016, 8: 0.030}))
    assert best_cut([0.55, 0.5, 0.45, 0.4], step(stairs)) == 4
    assert round_value([GrowthCandidate(1.0, 0.6)], step(stairs), free).n_chains == 1


def test_what_rejections_cost_is_charged_as_often_as_they_come() -> None:
    gains = charged([0.9, 0.6, 0.6], 0.05, float)
    assert gains == pytest.approx([0.9 - 0.1 * 1 - 0.05, 0.6 - 0.3 * 2, 0.6 - 0.0 * 3])
    # Over all ends that a chain can have, the charges add up to the mean loss.
    assert sum([0.9, 0.6, 0.6]) - sum(gains) == pytest.approx(0.05 + 0.1 * 1 + 0.3 * 2)


def test_a_chain_that_pays_on_a_flat_curve_does_not_where_a_rejection_is_dear() -> None:
    prices = step(GPU)
    reaches = [0.7, 0.5, 0.35]
    assert best_cut(reaches, prices) == 3
    assert best_cut(charged(reaches, 0.0, lambda depth: 0.5), prices) == 3
    assert best_cut(charged(reaches, 0.0, lambda depth: 3.0), prices) == 0
    assert round_value([GrowthCandidate(1.0, 0.7, 0.5)], prices, free).n_chains == 1
    assert round_value([GrowthCandidate(1.0, 0.7, 3.0)], prices, free).n_chains == 0
    assert round_value([GrowthCandidate(1.0, 0.99, 3.0)], prices, free).n_chains == 1


def chain(*reach: float) -> DraftChain:
    nobody = cast("Any", SimpleNamespace(id="nobody"))
    drafted = len(reach)
    return DraftChain(nobody, nobody, nobody, [7] * drafted, [0] * drafted, [0.5] * drafted, list(reach))


def kept(chains: list[DraftChain], n_sequences: int, row: float, room: int = 100) -> list[int]:
    """Keep where a token is worth a second and each row takes ``row`` seconds."""
    prices = StepCost(n_sequences, 1.0, lambda rows: 1.0 + row * rows, room, n_even=n_sequences)
    keep_evenly(chains, prices, lambda one: one.reach)
    return [len(one.tokens) for one in chains]


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("speedup", [1.0, 2.8, 6.0])
def test_a_text_is_drafted_to_its_end_in_the_fastest_steps_however_fast_it_came(curve: str, speedup: float) -> None:
    model = CostModel(CURVES[curve])
    seconds = [0.0]
    for size in range(16):  # the next ``size`` tokens are known, and then the text ends
        seconds.append(min([model.time(1 + depth) + seconds[size - depth] for depth in range(size + 1)]))
        prices = step(model)._replace(rate=speedup / model.time(1))
        depth = best_cut(with_time_saved([1.0] * size, prices, speedup, 1.0), prices)
        assert model.time(1 + depth) + seconds[size - depth] == pytest.approx(seconds[-1])


def test_what_is_unlikely_is_not_drafted_for_the_time_that_it_may_save() -> None:
    prices = step(CPU)._replace(rate=2.0 / CPU.time(1))
    assert best_cut(with_time_saved([0.3, 0.1], prices, 2.0, 1.0), prices) == 0
    assert with_time_saved([], prices, 2.0, 1.0) == []
    # Where a text comes as fast as it is decoded plainly, what it saves is what it brings.
    assert with_time_saved([0.9], step(CPU), 1.0, 1.0) == pytest.approx([0.9])


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (0.01, 3),  # as many as the shortest chain has
        (0.45, 2),  # the third of both brings 0.7 tokens and takes 0.9 seconds
        (0.95, 0),  # the first of both brings 1.7 and takes 1.9
    ],
)
def test_as_many_as_pay_for_all_together(row: float, expected: int) -> None:
    chains = [chain(0.9, 0.8, 0.6, 0.5), chain(0.8, 0.4, 0.1)]
    assert kept(chains, 2, row) == [expected, expected]


def test_one_that_has_no_draft_keeps_all_from_drafting() -> None:
    assert kept([chain(0.9, 0.8), chain(0.9, 0.8)], 3, 0.01) == [0, 0]
    assert kept([chain(0.9, 0.8), chain()], 2, 0.01) == [0, 0]
    assert kept([], 2, 0.01) == []


def test_the_room_is_shared() -> None:
    assert kept([chain(0.9, 0.9, 0.9), chain(0.9, 0.9, 0.9)], 2, 0.01, room=5) == [2, 2]
    assert kept([chain(0.9), chain(0.9)], 2, 0.01, room=-1) == [0, 0]


def test_a_poor_token_is_taken_for_what_comes_behind_it() -> None:
    chains = [chain(0.3, 0.3), chain(0.9, 0.9)]
    assert kept(chains, 2, 0.58) == [2, 2]
