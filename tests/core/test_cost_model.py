"""The cost model on recorded curves: flat like a GPU, linear like a CPU, and one with a cliff."""

from __future__ import annotations

import math
import random

import pytest

from core.cost_model import Calibration, CostModel

GPU = Calibration({1: 0.0100, 2: 0.0100, 4: 0.0101, 8: 0.0102, 16: 0.0104, 32: 0.0110, 64: 0.0130, 512: 0.0600}, 1e-9)
CPU = Calibration({1: 0.0108, 2: 0.0177, 3: 0.0235, 4: 0.0262, 8: 0.0473, 16: 0.0978, 64: 0.36, 512: 2.9}, 2e-8)
CLIFF = Calibration({**dict.fromkeys(range(1, 9), 0.010), **dict.fromkeys(range(9, 17), 0.018), 64: 0.05})


@pytest.mark.parametrize("curve", [GPU, CPU, CLIFF])
def test_measured_widths_come_back_as_measured(curve: Calibration) -> None:
    model = CostModel(curve)
    for rows, seconds in curve.seconds.items():
        assert model.time(rows) == pytest.approx(seconds)


def test_between_measured_widths_time_lies_between() -> None:
    model = CostModel(CPU)
    assert model.time(4) < model.time(5) < model.time(6) < model.time(8)
    assert model.time(64) < model.time(100) < model.time(512)


def test_beyond_the_widest_measurement_the_last_slope_goes_on() -> None:
    assert CostModel(CPU).time(1024) == pytest.approx(2.9 + 512 * (2.9 - 0.36) / 448)


def test_a_cliff_between_8_and_9_rows_is_a_cliff() -> None:
    model = CostModel(CLIFF)
    assert model.extra(1, 7) == pytest.approx(0.0)
    assert model.extra(8, 1) == pytest.approx(0.008)


def test_kv_that_is_read_costs_by_the_token() -> None:
    model = CostModel(CPU)
    assert model.time(1, 10_000) - model.time(1) == pytest.approx(2e-4)


def test_no_rows_take_no_time() -> None:
    assert CostModel(GPU).time(0) == 0.0


def test_a_machine_that_slows_down_is_followed_at_every_width() -> None:
    model = CostModel(CPU)
    for _ in range(120):
        model.observe(1, 0, 0.0108 * 1.5)
    assert model.time(1) == pytest.approx(0.0108 * 1.5, rel=0.02)
    assert model.time(8) > 0.0473 * 1.1, "widths that were not seen follow in part"


def test_it_learns_a_cliff_that_calibration_missed() -> None:
    model = CostModel(Calibration({1: 0.010, 64: 0.010}))
    rng = random.Random(1)
    for _ in range(800):
        rows = rng.randrange(1, 17)
        model.observe(rows, 0, 0.010 if rows <= 8 else 0.018)
    assert model.time(8) == pytest.approx(0.010, rel=0.05)
    assert model.time(9) == pytest.approx(0.018, rel=0.05)


def test_it_learns_the_price_of_kv() -> None:
    model = CostModel(Calibration({1: 0.010}, 1e-7))
    rng = random.Random(2)
    for _ in range(3000):
        kv = rng.choice((0, 50_000))
        model.observe(1, kv, 0.010 + 3e-7 * kv)
    assert model.time(1, 50_000) == pytest.approx(0.025, rel=0.05)
    assert model.time(1) == pytest.approx(0.010, rel=0.08)


def test_one_hiccup_hardly_moves_it() -> None:
    model = CostModel(CPU)
    model.observe(4, 0, 5.0)
    assert model.time(4) < 0.0262 * 1.15


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
        assert model.age(4) >= 40
        model.observe(4, 0, true)
        assert model.age(4) == 0
    assert model.time(4) == pytest.approx(true, rel=0.2)
    assert model.time(8) == pytest.approx(CPU.seconds[8], rel=0.05)
    assert model.age(1000) == 0


def test_the_widest_step_that_is_nearly_free() -> None:
    flat = CostModel(Calibration({1: 0.010, 8: 0.011, 16: 0.030}))
    assert flat.widest(1.75, 0, 16) in (9, 10, 11)
    assert flat.widest(1.75, 0, 4) == 4
    linear = CostModel(Calibration({1: 0.010, 16: 0.160}))
    assert linear.widest(1.75, 0, 16) == 1
    reading = CostModel(Calibration({1: 0.010, 16: 0.0101}, kv_seconds=1e-5))
    assert reading.widest(1.75, 0, 16) == 16
    assert reading.widest(1.75, 3_000, 16) < 3, "what each row reads of the cache is not shared"


def test_a_cliff_ends_what_is_nearly_free() -> None:
    cliff = CostModel(Calibration({1: 0.010, 8: 0.011, 9: 0.030, 10: 0.012, 16: 0.012}))
    assert cliff.widest(1.75, 0, 16) == 8
