"""Where a processor's cache ends, found by reading more and more."""

from __future__ import annotations

import pytest

from core.machine.matrix_probe import cache_size

SIZES = (4, 8, 16, 32, 64, 128, 256, 512)


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ((73, 50, 49, 51, 48, 33, 27, 26), 64),  # the smallest lies in a cache of the core's own
        ((50, 50, 50, 26, 26, 26, 26, 26), 16),
        ((50, 50, 20, 50, 50, 26, 26, 26), 64),  # one was disturbed
        ((28, 27, 26, 26, 26, 25, 26, 25), 0),  # computing takes as long as reading
        ((50, 50, 50, 50, 50, 50, 50, 49), 0),  # all of it fits
    ],
)
def test_the_largest_size_that_is_read_fast(rates: tuple[int, ...], expected: int) -> None:
    assert cache_size(dict(zip(SIZES, rates, strict=True))) == expected


def test_nothing_measured() -> None:
    assert cache_size({}) == 0.0
