"""How much to draft, on recorded curves. Pure."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from core.cost_model import Calibration, CostModel
from core.speculative.depth import Candidate, another_round, best_cut, charged, informed_round

GPU = CostModel(Calibration({1: 0.0100, 8: 0.0102, 16: 0.0104, 64: 0.0130}))
CPU = CostModel(Calibration({1: 0.0105, 2: 0.0159, 3: 0.019, 4: 0.022, 8: 0.036, 16: 0.068}))
CLIFF = CostModel(Calibration({**dict.fromkeys(range(1, 9), 0.010), **dict.fromkeys(range(9, 17), 0.018)}))


def plain_rate(model: CostModel, n: int = 1) -> float:
    return n / model.time(n)


def free(_: int) -> float:
    return 0.0


@pytest.mark.parametrize(("rate", "expected"), [(0.95, True), (0.7, True), (0.3, False), (0.05, False)])
def test_on_a_cpu_only_likely_tokens_are_worth_a_row(rate: float, expected: bool) -> None:
    outlook = another_round([Candidate(1.0, rate)], 1, plain_rate(CPU), CPU.time, free, 16)
    assert (outlook.n_chains == 1) is expected


def test_on_a_gpu_even_unlikely_tokens_are() -> None:
    assert another_round([Candidate(1.0, 0.2)], 1, plain_rate(GPU), GPU.time, free, 16).n_chains == 1


def test_a_dear_draft_model_must_promise_more() -> None:
    def dear(_: int) -> float:
        return 0.004

    candidates = [Candidate(1.0, 0.75)]
    assert another_round(candidates, 1, plain_rate(CPU), CPU.time, free, 16).n_chains == 1
    assert another_round(candidates, 1, plain_rate(CPU), CPU.time, dear, 16).n_chains == 0


def test_what_the_next_round_costs_beyond_itself_counts_once() -> None:
    candidates = [Candidate(1.0, 0.9)]
    assert another_round(candidates, 1, plain_rate(CPU), CPU.time, free, 16, 0.001).n_chains == 1
    assert another_round(candidates, 1, plain_rate(CPU), CPU.time, free, 16, 1.0).n_chains == 0


def cheap(n_chains: int) -> float:
    return 0.0005 * n_chains


# Half of the tokens are sure and half of them wrong, or all of them a toss.
KNOWING, GUESSING = ((0.5, 0.95), (0.5, 0.05)), ((1.0, 0.5),)


def test_a_drafter_that_knows_when_it_is_right_is_worth_asking() -> None:
    candidates = [Candidate(1.0, 0.4)]
    arguments = (1, 1.2 * plain_rate(CPU), CPU.time, cheap, 16)
    assert another_round(candidates, *arguments).n_chains == 0, "on average it does not pay"
    assert informed_round(candidates, [KNOWING], *arguments).n_chains == 1
    assert informed_round(candidates, [GUESSING], *arguments).n_chains == 0


def test_asking_must_be_worth_its_time() -> None:
    candidates = [Candidate(1.0, 0.4)]
    outlook = informed_round(candidates, [KNOWING], 1, plain_rate(CPU), CPU.time, cheap, 16)
    assert outlook.worth > 0.0
    late = informed_round(candidates, [KNOWING], 1, plain_rate(CPU), CPU.time, cheap, 16, 0.02)
    assert late == (0.0, 0)
    assert informed_round(candidates, [KNOWING], 1, plain_rate(CPU), CPU.time, cheap, 0) == (0.0, 0)


def test_sequences_that_are_asked_together_share_what_rows_cost() -> None:
    one = informed_round([Candidate(1.0, 0.4)], [KNOWING], 1, plain_rate(CLIFF), CLIFF.time, cheap, 16)
    four = informed_round([Candidate(1.0, 0.4)] * 4, [KNOWING] * 4, 4, plain_rate(CLIFF, 4), CLIFF.time, cheap, 16)
    assert four.n_chains == 4
    assert four.worth > one.worth


def test_only_the_promising_chains_grow() -> None:
    candidates = [Candidate(1.0, 0.95), Candidate(1.0, 0.9), Candidate(1.0, 0.1), Candidate(0.3, 0.2)]
    assert another_round(candidates, 4, plain_rate(CPU, 4), CPU.time, free, 16).n_chains == 2


def test_without_room_nothing_grows() -> None:
    assert another_round([Candidate(1.0, 0.99)], 1, plain_rate(CPU), CPU.time, free, 0).n_chains == 0
    assert another_round([], 1, plain_rate(CPU), CPU.time, free, 16).n_chains == 0


@pytest.mark.parametrize(
    ("reaches", "time", "expected"),
    [
        ([0.95, 0.9, 0.85, 0.8], CPU.time, 4),
        ([0.9, 0.2, 0.1], CPU.time, 1),
        ([0.3, 0.2], CPU.time, 0),
        ([0.3, 0.2, 0.1], GPU.time, 3),
        ([], CPU.time, 0),
        ([0.9] * 7 + [0.15] * 4, CLIFF.time, 7),
        ([0.99] * 15, CLIFF.time, 15),
    ],
)
def test_the_best_cut(reaches: list[float], time: Callable[[int], float], expected: int) -> None:
    n_plain = 1 / time(1)
    assert best_cut(reaches, 1, n_plain, time) == expected


def test_a_dear_first_row_does_not_hide_free_ones_behind_it() -> None:
    stairs = CostModel(Calibration({1: 0.010, 2: 0.016, 3: 0.016, 4: 0.016, 5: 0.016, 8: 0.030}))
    assert best_cut([0.55, 0.5, 0.45, 0.4], 1, 1 / stairs.time(1), stairs.time) == 4
    assert another_round([Candidate(1.0, 0.6)], 1, 1 / stairs.time(1), stairs.time, free, 16).n_chains == 1


def test_what_rejections_cost_is_charged_as_often_as_they_come() -> None:
    gains = charged([0.9, 0.6, 0.6], 0.05, float)
    assert gains == pytest.approx([0.9 - 0.1 * 1 - 0.05, 0.6 - 0.3 * 2, 0.6 - 0.0 * 3])
    # Over all ends that a chain can have, the charges add up to the mean loss.
    assert sum([0.9, 0.6, 0.6]) - sum(gains) == pytest.approx(0.05 + 0.1 * 1 + 0.3 * 2)


def test_a_chain_that_pays_on_a_flat_curve_does_not_where_a_rejection_is_dear() -> None:
    rate = plain_rate(GPU)
    reaches = [0.7, 0.5, 0.35]
    assert best_cut(reaches, 1, rate, GPU.time) == 3
    assert best_cut(charged(reaches, 0.0, lambda depth: 0.5), 1, rate, GPU.time) == 3
    assert best_cut(charged(reaches, 0.0, lambda depth: 3.0), 1, rate, GPU.time) == 0
    assert another_round([Candidate(1.0, 0.7, 0.5)], 1, rate, GPU.time, free, 16).n_chains == 1
    assert another_round([Candidate(1.0, 0.7, 3.0)], 1, rate, GPU.time, free, 16).n_chains == 0
    assert another_round([Candidate(1.0, 0.99, 3.0)], 1, rate, GPU.time, free, 16).n_chains == 1
