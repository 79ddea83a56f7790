"""What is given up first."""

from __future__ import annotations

from core.kv_cache.prefix_cache.greedy_dual import GreedyDual


def anything(item: str) -> bool:
    return True


def test_what_saves_least_for_its_size_goes_first() -> None:
    order: GreedyDual[str] = GreedyDual()
    for name, worth in (("a", 3.0), ("b", 1.0), ("c", 2.0)):
        order.touch(name, worth)
    assert [order.evict(anything) for _ in range(4)] == ["b", "c", "a", None]


def test_among_equals_the_one_that_was_used_longest_ago_goes_first() -> None:
    order: GreedyDual[str] = GreedyDual()
    for name in ("a", "b", "a"):
        order.touch(name, 1.0)
    assert order.evict(anything) == "b"


def test_what_is_of_no_use_any_more_sinks_below_what_comes() -> None:
    order: GreedyDual[str] = GreedyDual()
    order.touch("once", 5.0)
    for turn in range(20):
        order.touch(f"new {turn}", 1.0)
        if order.evict(anything) == "once":
            return
    raise AssertionError("nothing ages")


def test_what_may_not_go_keeps_its_place() -> None:
    order: GreedyDual[str] = GreedyDual()
    order.touch("a", 1.0)
    order.touch("b", 2.0)
    assert order.evict(lambda item: item != "a") == "b"
    assert order.evict(lambda item: False) is None
    assert order.evict(anything) == "a"


def test_what_is_forgotten_is_not_given_up() -> None:
    order: GreedyDual[str] = GreedyDual()
    order.touch("a", 1.0)
    order.forget("a")
    assert "a" not in order
    assert order.evict(anything) is None
