"""What is believed of the steps measured at load."""

from __future__ import annotations

import pytest

from core.calibration import plausible


def test_a_step_that_took_longer_than_its_rows_one_by_one_was_disturbed() -> None:
    assert plausible({1: 0.001, 2: 0.4, 4: 1.2, 8: 2.8, 64: 3.0}) == pytest.approx(
        {1: 0.001, 2: 0.002, 4: 0.004, 8: 0.008, 64: 0.064}
    )
    assert plausible({1: 0.5, 2: 0.002, 4: 0.004}) == pytest.approx({1: 0.002, 2: 0.002, 4: 0.004})


def test_steps_in_the_curve_are_believed() -> None:
    curve = {1: 0.010, 2: 0.0177, 4: 0.0262, 8: 0.0262, 9: 0.045, 16: 0.05, 64: 0.2}
    assert plausible(curve) == curve
