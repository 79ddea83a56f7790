"""The choice of threads from measured times."""

from __future__ import annotations

import pytest

from core.cost.threads import candidates, fewest_that_pay, measure


@pytest.mark.parametrize(
    ("n_cores", "expected"), [(1, (1,)), (2, (1, 2)), (4, (1, 2, 3, 4)), (16, (1, 4, 8, 12, 15, 16))]
)
def test_candidates(n_cores: int, expected: tuple[int, ...]) -> None:
    assert candidates(n_cores) == expected


def test_threads_that_gain_nothing_are_not_used() -> None:
    assert fewest_that_pay({1: 1.04, 2: 1.0}) == 1
    assert fewest_that_pay({1: 2.0, 2: 1.0, 4: 0.9}) == 4
    assert fewest_that_pay({1: 2.0, 2: 1.0, 4: 1.6}) == 2


def test_every_count_is_measured_while_steps_are_short() -> None:
    asked: list[int] = []
    times = measure(asked.append, (1, 2, 3))
    assert set(times) == {1, 2, 3}
    assert set(asked) == {1, 2, 3}
