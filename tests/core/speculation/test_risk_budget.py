"""The ledger of what proposers have won and lost."""

from __future__ import annotations

import pytest

from core.speculation.draft_state import RiskBudget

STEP = 0.010


def decode(ledger: RiskBudget, n_steps: int, lost: float = 0.0) -> None:
    for _ in range(n_steps):
        ledger.add_elapsed(STEP + lost)
        ledger.book("draft", -lost)


def test_risks_are_a_small_share_of_the_time_and_a_loss_is_soon_forgiven() -> None:
    ledger = RiskBudget(STEP)
    credit = ledger.available("draft")
    assert credit == pytest.approx(2 * STEP)
    decode(ledger, 100)
    assert 0.8 * STEP < ledger.available("draft") - credit < 1.5 * STEP
    ledger.book("draft", -0.08)
    assert ledger.available("draft") < 0.0
    decode(ledger, 1500)
    assert ledger.available("draft") >= 0.0, "after fifteen seconds"


def test_long_decoding_in_short_steps_saves_no_more_than_a_few_steps_to_lose() -> None:
    ledger = RiskBudget(STEP)
    decode(ledger, 20_000)
    assert ledger.available("draft") < 15 * STEP


def test_what_one_has_won_may_be_risked_by_itself_and_by_nobody_else() -> None:
    ledger = RiskBudget(STEP)
    ledger.book("lookup", 0.15)
    assert ledger.available("lookup") >= 0.15
    assert ledger.available("draft") < 3 * STEP
    ledger.book("draft", -0.2)
    assert (ledger.required_return("lookup"), ledger.required_return("draft")) == (1.0, 100.0)
    decode(ledger, 8000)
    assert ledger.available("lookup") < 0.15, "old gains do not pay for long losses"


def test_large_gains_do_not_pay_for_long_losses_on_other_texts() -> None:
    ledger = RiskBudget(STEP)
    for _ in range(1000):
        ledger.book("draft", STEP)
    assert ledger.available("draft") < 25 * STEP


def test_caution_grows_with_what_was_lost_and_goes_with_it() -> None:
    ledger = RiskBudget(STEP)
    decode(ledger, 200)
    assert ledger.required_return("draft") == 1.0
    seen = []
    for _ in range(40):
        decode(ledger, 1, lost=0.004)
        seen.append(ledger.required_return("draft"))
    assert seen == sorted(seen)
    assert seen[0] == 1.0
    assert 3.0 < seen[-1] <= 100.0
    decode(ledger, 40, lost=-0.010)
    assert ledger.required_return("draft") == 1.0, "won back"
