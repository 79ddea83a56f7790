"""When an idle text has cost as much as getting it back."""

from __future__ import annotations

from core.kv_cache.idle_cost import IdleCost


def test_it_is_due_when_as_much_was_paid_as_buying_costs() -> None:
    rent = IdleCost()
    for _ in range(4):
        rent.add(1.0)
        assert not rent.covers(4.0)
    rent.add(0.5)
    assert rent.covers(4.0)
    rent.subtract(4.0)
    assert rent.paid == 0.5
    rent.reset()
    assert not rent.covers(0.0)


def test_a_step_that_was_faster_pays_nothing_back() -> None:
    rent = IdleCost()
    rent.add(-1.0)
    assert rent.paid == 0.0
