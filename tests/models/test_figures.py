"""Figures as people read them."""

from __future__ import annotations

import pytest

from models.formatting import figures


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (figures.speed(4.26), "4.3 tok/s"),
        (figures.speed(1234.5), "1,234 tok/s"),
        (figures.count(1_730), "1,730"),
        (figures.milliseconds(38.2), "38 ms"),
        (figures.milliseconds(2140), "2.1 s"),
        (figures.parameters(0), ""),
        (figures.parameters(640), "640"),
        (figures.parameters(5_000), "5.0K"),
        (figures.parameters(11_300_000), "11.3M"),
        (figures.parameters(494_000_000), "494M"),
        (figures.parameters(999_600_000), "1.0B"),
        (figures.parameters(7_600_000_000), "7.6B"),
        (figures.parameters(120_400_000_000), "120B"),
        (figures.size(640), "640 B"),
        (figures.size(9_940_000), "9.9 MB"),
        (figures.size(4_900_000_000), "4.9 GB"),
        (figures.duration(48), "48 s"),
        (figures.duration(7_800), "2 h 10 min"),
    ],
)
def test_numbers_are_short(shown: str, expected: str) -> None:
    assert shown == expected
