"""When an idle text has cost as much as getting it back."""

from __future__ import annotations

from core.kv_cache.slot_contents import IdleCost


def test_it_is_due_when_as_much_was_paid_as_buying_costs() -> None:
    idle_cost = IdleCost()
    for _ in range(4):
        idle_cost.add(1.0)
        assert not idle_cost.covers(4.0)
    idle_cost.add(0.5)
    assert idle_cost.covers(4.0)
    idle_cost.subtract(4.0)
    assert idle_cost.paid == 0.5
    idle_cost.reset()
    assert not idle_cost.covers(0.0)


def test_a_step_that_was_faster_pays_nothing_back() -> None:
    idle_cost = IdleCost()
    idle_cost.add(-1.0)
    assert idle_cost.paid == 0.0
