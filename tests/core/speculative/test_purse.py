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


def test_caution_grows_with_what_was_lost_and_goes_with_it() -> None:
    purse = Purse(credit=0.02)
    for _ in range(200):
        purse.book(0.010, 0.010)
    assert purse.caution == 1.0
    seen = []
    for _ in range(40):
        purse.book(0.010, 0.014)
        seen.append(purse.caution)
    assert seen == sorted(seen)
    assert seen[0] == 1.0
    assert 3.0 < seen[-1] <= 100.0
    for _ in range(40):
        purse.book(0.030, 0.020)
    assert purse.caution == 1.0, "won back"


def test_one_hiccup_makes_hardly_more_cautious() -> None:
    purse = Purse(credit=0.02)
    for _ in range(200):
        purse.book(0.010, 0.010)
    purse.book(0.010, 0.5)
    assert purse.caution < 2.5
