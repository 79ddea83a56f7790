"""The account of drafting."""

from __future__ import annotations

from core.speculative.purse import Purse


def test_a_jump_of_the_clock_does_not_forbid_drafting_for_long() -> None:
    purse = Purse(credit=0.02)
    for _ in range(100):
        purse.book(0.01, 0.01)
    purse.book(0.01, 3 * 86_400.0)
    assert not purse.may_risk(0.0)
    for _ in range(1500):
        purse.book(0.01, 0.01)
    assert purse.may_risk(0.0), "after fifteen seconds"
