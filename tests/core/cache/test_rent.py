"""When an idle text has cost as much as getting it back."""

from __future__ import annotations

from core.kv_cache.idle_cost import IdleCost


def test_it_is_due_when_as_much_was_paid_as_buying_costs() -> None:
    rent = IdleCost()
    for _ in range(4):
        rent.pay(1.0)
        assert not rent.is_due(4.0)
    rent.pay(0.5)
    assert rent.is_due(4.0)
    rent.settle(4.0)
    assert rent.paid == 0.5
    rent.reset()
    assert not rent.is_due(0.0)


def test_a_step_that_was_faster_pays_nothing_back() -> None:
    rent = IdleCost()
    rent.pay(-1.0)
    assert rent.paid == 0.0
