"""The cost model on recorded curves: flat like a GPU, linear like a CPU, and one with a cliff."""

from __future__ import annotations

import math
import random
import sys

import pytest

from core.cost.cost_model import Calibration, CostModel, attended
from core.speculation.draft_length import StepCost, best_cut

GPU = Calibration({1: 0.0100, 2: 0.0100, 4: 0.0101, 8: 0.0102, 16: 0.0104, 32: 0.0110, 64: 0.0130, 512: 0.0600}, 1e-9)
CPU = Calibration({1: 0.0108, 2: 0.0177, 3: 0.0235, 4: 0.0262, 8: 0.0473, 16: 0.0978, 64: 0.36, 512: 2.9}, 2e-8)
CLIFF = Calibration({**dict.fromkeys(range(1, 9), 0.010), **dict.fromkeys(range(9, 17), 0.018), 64: 0.05})


@pytest.mark.parametrize("curve", [GPU, CPU, CLIFF])
def test_measured_widths_come_back_as_measured(curve: Calibration) -> None:
    model = CostModel(curve)
    for rows, seconds in curve.seconds.items():
        assert model.time(rows) == pytest.approx(seconds)


def test_times_lie_on_the_curve_and_go_on_beyond_it() -> None:
    model = CostModel(CPU)
    assert model.time(4) < model.time(5) < model.time(6) < model.time(8)
    assert model.time(64) < model.time(100) < model.time(512)
    assert CostModel(CPU).time(1024) == pytest.approx(2.9 + 512 * (2.9 - 0.36) / 448)
    model = CostModel(CLIFF)
    assert model.extra(1, 7) == pytest.approx(0.0)
    assert model.extra(8, 1) == pytest.approx(0.008)
    model = CostModel(CPU)
    assert model.time(1, 10_000) - model.time(1) == pytest.approx(2e-4)
    assert CostModel(GPU).time(0) == 0.0


@pytest.mark.parametrize(("rows", "most"), [(1, 1), (64, 1), (300, 20)])
def test_an_answer_takes_microseconds(rows: int, most: int) -> None:
    """Counted in calls of Python functions, which take about as long on an idle machine as on a busy one."""
    model, n_calls = CostModel(GPU), 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal n_calls
        n_calls += event == "call"

    sys.setprofile(count)
    try:
        model.time(rows, 1000)
    finally:
        sys.setprofile(None)
    assert 1 <= n_calls <= most


def rows_that_pay(model: CostModel, chance: float, n_sequences: int = 1) -> int:
    """Return how many of eight drafted rows for each sequence are worth it, each accepted with ``chance``."""
    gains = sorted([chance**depth for depth in range(1, 9)] * n_sequences, reverse=True)
    return best_cut(gains, StepCost(n_sequences, n_sequences / model.time(n_sequences), model.time, len(gains)))


@pytest.mark.parametrize("curve", [GPU, CPU, CLIFF])
@pytest.mark.parametrize("factor", [0.4, 2.0, 3.0])
def test_plain_steps_at_another_speed_do_not_change_what_is_worth_drafting(curve: Calibration, factor: float) -> None:
    """A calibration on a busy machine, or heat: all widths take ``factor`` times as long, and one of them is seen."""
    model, noise = CostModel(curve), random.Random(3)
    for _ in range(400):
        model.observe(1, 0, factor * curve.seconds[1] * noise.uniform(0.95, 1.05))
    shape = CostModel(curve)
    assert abs(rows_that_pay(model, 0.9) - rows_that_pay(shape, 0.9)) <= 1
    if curve is CPU:
        assert rows_that_pay(model, 0.1) == rows_that_pay(shape, 0.1) == 0
    assert all(0.7 < model.time(rows) / shape.time(rows) / factor < 1.4 for rows in range(1, 17))


def test_a_width_that_was_only_seen_while_others_used_the_cores_does_not_look_dearer_than_wider_ones() -> None:
    model = CostModel(CPU)
    for _ in range(300):
        model.observe(1, 0, CPU.seconds[1])
    # Of more in a row a tuner of threads lets nothing be learnt.
    for _ in range(4):
        model.observe(5, 0, 2.5 * CostModel(CPU).time(5))
    assert rows_that_pay(model, 0.1, 5) == 0
    assert model.time(5) < model.time(6)


def test_what_is_measured_apart_from_all_others_stays_apart() -> None:
    model = CostModel(CPU)
    for step in range(600):
        rows = (1, 2, 1, 4, 1, 8)[step % 6]
        model.observe(rows, 0, CPU.seconds[rows] * (2.0 if rows == 4 else 1.0))
    assert model.time(4) == pytest.approx(2.0 * CPU.seconds[4], rel=0.05)
    for rows in (1, 2, 8):
        assert model.time(rows) == pytest.approx(CPU.seconds[rows], rel=0.05)


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("rows", [1, 300])
def test_what_is_no_time_teaches_nothing(rows: int, seconds: float) -> None:
    model = CostModel(CPU)
    model.observe(rows, 10, seconds)
    assert model.snapshot() == CostModel(CPU).snapshot()


def test_beyond_all_that_is_known_the_curve_does_not_fall() -> None:
    model = CostModel(Calibration({1: 0.010, 64: 0.200, 128: 0.210}))
    for _ in range(60):
        model.observe(128, 0, 0.150)
    assert model.time(128) < model.time(64)
    assert model.time(2048) >= model.time(128)
    assert model.extra(64, 64) == 0.0, "and rows never give time back"


def test_it_learns_a_cliff_and_the_price_of_kv_that_calibration_missed() -> None:
    model = CostModel(Calibration({1: 0.010, 64: 0.010}))
    rng = random.Random(1)
    for _ in range(800):
        rows = rng.randrange(1, 17)
        model.observe(rows, 0, 0.010 if rows <= 8 else 0.018)
    assert model.time(8) == pytest.approx(0.010, rel=0.05)
    assert model.time(9) == pytest.approx(0.018, rel=0.05)
    model = CostModel(Calibration({1: 0.010}, 1e-7))
    rng = random.Random(2)
    for _ in range(3000):
        kv = rng.choice((0, 50_000))
        model.observe(1, kv, 0.010 + 3e-7 * kv)
    assert model.time(1, 50_000) == pytest.approx(0.025, rel=0.05)
    assert model.time(1) == pytest.approx(0.010, rel=0.08)


def test_one_hiccup_hardly_moves_it_also_where_nothing_was_known() -> None:
    model = CostModel(CPU)
    model.observe(4, 0, 5.0)
    assert model.time(4) < 0.0262 * 1.15
    model = CostModel(Calibration({1: 0.010, 4: 0.020, 64: 0.200}))
    model.observe(512, 0, 1000.0)
    assert model.time(512) < 8 * 3.1 * model.time(64)
    for _ in range(50):
        model.observe(512, 0, 1.6)
    assert model.time(512) == pytest.approx(1.6, rel=0.1)


@pytest.mark.parametrize("factor", [1 / 30, 1 / 8, 0.5, 0.7, 1.4, 2.0, 8.0, 30.0])
@pytest.mark.parametrize("curve", [GPU, CPU, CLIFF])
def test_a_wrong_calibration_is_replaced_within_twenty_plain_steps(curve: Calibration, factor: float) -> None:
    """It was made beside other work, or before the machine's clock changed: all times are wrong by one factor."""
    model, noise = CostModel(curve), random.Random(5)
    for _ in range(20):
        model.observe(1, 100, factor * CostModel(curve).time(1, 100) * noise.uniform(0.97, 1.03))
    for rows in (1, 2, 8, 64):
        assert model.time(rows, 100) == pytest.approx(factor * CostModel(curve).time(rows, 100), rel=0.06)


@pytest.mark.parametrize("factor", [2.0, 10.0, 100.0])
def test_hiccups_replace_nothing(factor: float) -> None:
    model, noise = CostModel(CPU), random.Random(6)
    for step in range(200):
        slow = factor if step % 10 > 7 else 1.0
        model.observe(1, 0, CPU.seconds[1] * slow * noise.uniform(0.95, 1.05))
        assert 0.9 < model.time(1) / CPU.seconds[1] < 1.5
    for _ in range(20):
        model.observe(1, 0, CPU.seconds[1])
    assert model.time(1) == pytest.approx(CPU.seconds[1], rel=0.05)


def test_the_estimate_can_be_kept_and_taken_up_again() -> None:
    model = CostModel(CPU)
    for _ in range(50):
        model.observe(2, 100, 0.02)
        model.observe(200, 100, 1.4)
    again = CostModel(model.snapshot())
    for rows in (1, 2, 7, 64, 100, 512):
        assert again.time(rows, 1000) == pytest.approx(model.time(rows, 1000), rel=0.02)


@pytest.mark.parametrize("seconds", [{}, {0: 1.0}, {1: 0.0}, {1: -1.0}, {1: math.nan}, {1: 1.0, 2: math.inf}])
def test_an_impossible_calibration_is_refused(seconds: dict[int, float]) -> None:
    with pytest.raises(ValueError, match="calibration"):
        Calibration(seconds)


def test_texts_that_are_passed_over_cost_their_share() -> None:
    whole, skipped = (CostModel(Calibration({1: 0.010, 8: 0.010}, 1e-6, share)) for share in (1.0, 0.02))
    assert whole.idle_time(4, 1000) == pytest.approx(whole.time(4, 4000) - whole.time(4))
    assert skipped.idle_time(4, 1000) == pytest.approx(0.02 * whole.idle_time(4, 1000))
    assert skipped.snapshot().idle_share == 0.02


@pytest.mark.parametrize("share", [-0.1, 1.1, math.nan])
def test_an_impossible_share_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="another text"):
        Calibration({1: 1.0}, 0.0, share)


@pytest.mark.parametrize("kv_seconds", [-1e-9, math.nan, math.inf])
def test_an_impossible_slope_is_refused(kv_seconds: float) -> None:
    with pytest.raises(ValueError, match="calibration"):
        Calibration({1: 1.0}, kv_seconds)


def test_a_width_that_was_long_unseen_is_corrected_in_a_few_steps() -> None:
    model = CostModel(CPU)
    true = CPU.seconds[4] / 2
    for _ in range(6):
        for _ in range(40):
            model.observe(8, 0, CPU.seconds[8])
        model.observe(4, 0, true)
    assert model.time(4) == pytest.approx(true, rel=0.2)
    assert model.time(8) == pytest.approx(CPU.seconds[8], rel=0.05)


def test_the_widest_step_that_is_nearly_free_ends_before_a_cliff() -> None:
    flat = CostModel(Calibration({1: 0.010, 8: 0.011, 16: 0.030}))
    assert flat.widest(1.75, 0, 16) in (9, 10, 11)
    assert flat.widest(1.75, 0, 4) == 4
    linear = CostModel(Calibration({1: 0.010, 16: 0.160}))
    assert linear.widest(1.75, 0, 16) == 1
    reading = CostModel(Calibration({1: 0.010, 16: 0.0101}, kv_seconds=1e-5))
    assert reading.widest(1.75, 0, 16) == 16
    assert reading.widest(1.75, 3_000, 16) < 3, "what each row reads of the cache is not shared"
    cliff = CostModel(Calibration({1: 0.010, 8: 0.011, 9: 0.030, 10: 0.012, 16: 0.012}))
    assert cliff.widest(1.75, 0, 16) == 8


def test_steps_in_which_a_gpu_records_a_graph_teach_nothing_and_what_stays_slow_does() -> None:
    known = Calibration({1: 0.003, 8: 0.006}, n_recording=2)
    model = CostModel(known)
    for width in (2, 3, 5, 2, 3, 5, 2, 3, 5):
        model.observe(width, 0, 2.0 * model.time(width))
        model.observe(width, 0, 2.5 * model.time(width))
        model.observe(width, 0, model.time(width))
    assert model.snapshot().seconds == CostModel(known).snapshot().seconds
    slow = 1.5 * model.time(4)
    for _ in range(20):
        model.observe(4, 0, slow)
    assert model.time(4) == pytest.approx(slow, rel=0.02)
    assert CostModel(model.snapshot()).snapshot().n_recording == 2


def test_further_rows_of_a_text_share_what_the_first_one_reads() -> None:
    assert attended(1, 100) == 101
    assert 101 < attended(4, 100) < 2 * 101
    assert [attended(0, past) for past in (0, 100)] == [0, 0]
    cost = CostModel(Calibration({1: 0.010, 8: 0.010}, kv_seconds=1e-5))
    one_text, four_texts = cost.time(4, attended(4, 500)), cost.time(4, 4 * attended(1, 500))
    assert one_text < four_texts
