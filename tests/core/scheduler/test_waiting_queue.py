"""Who of those that wait is next."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from core.scheduler.scheduler import MAX_WAIT_SECONDS, WaitingQueue
from core.values.request import Lane
from tests.support.sequences import sequence

LANES = tuple(Lane)


def line_of(*arrivals: tuple[Lane, float]) -> WaitingQueue:
    line = WaitingQueue()
    for order, (lane, at) in enumerate(arrivals):
        line.append(sequence(order, 5, lane=lane, at=at))
    return line


def served(line: WaitingQueue, now: float = 10.0) -> list[int]:
    """Serve everybody at one moment; return the order."""
    orders = []
    while len(line):
        first = line.next()[0]
        line.serve(first, now)
        orders.append(first.order)
    return orders


def test_lanes_go_in_their_order_and_each_by_arrival() -> None:
    line = line_of((Lane.BATCH, 1), (Lane.STANDARD, 2), (Lane.FAST, 3), (Lane.BATCH, 1.5), (Lane.FAST, 3.5))
    assert served(line, 3.6) == [2, 4, 1, 0, 3]


def test_whoever_has_waited_out_the_patience_goes_before_newer_ones_of_higher_lanes() -> None:
    line = line_of((Lane.BATCH, 0.0), (Lane.STANDARD, MAX_WAIT_SECONDS[Lane.BATCH] + 1.0), (Lane.FAST, 100.0))
    assert served(line, 100.0) == [0, 1, 2]


def test_an_old_queue_gets_a_turn_not_all_of_them() -> None:
    now = 10 * MAX_WAIT_SECONDS[Lane.BATCH]
    line = line_of(*[(Lane.BATCH, 0.0)] * 3, *[(Lane.STANDARD, now)] * 3)
    assert served(line, now) == [0, 3, 4, 5, 1, 2]


def test_whoever_comes_back_is_first_in_its_lane() -> None:
    line = line_of((Lane.BATCH, 0), (Lane.BATCH, 1))
    first = line.next()[0]
    line.serve(first, 2.0)
    line.prepend(first, 3.0)
    assert [one.order for one in line] == [0, 1]
    assert served(line) == [0, 1]


def test_one_can_look_behind_the_first() -> None:
    line = line_of((Lane.BATCH, 0), (Lane.STANDARD, 1), (Lane.STANDARD, 2), (Lane.STANDARD, 3))
    assert [one.order for one in line.next(depth=2)] == [1, 2, 0]
    assert [one.order for one in line.next((Lane.BATCH,), depth=2)] == [0]


@given(
    st.lists(st.tuples(st.sampled_from(LANES), st.floats(0, 100)), max_size=40),
    st.integers(0, 2**32),
    st.integers(0, 9),
)
def test_everybody_is_served_once_unless_they_leave(
    arrivals: list[tuple[Lane, float]], seed: int, n_leaving: int
) -> None:
    rng = random.Random(seed)
    line = line_of(*arrivals)
    everybody = list(line)
    leaving = rng.sample(everybody, min(n_leaving, len(everybody)))
    for one in leaving:
        line.remove(one)
    assert len(line) == len(everybody) - len(leaving)
    assert sorted(served(line)) == sorted(one.order for one in everybody if one not in leaving)
    assert line.next() == []
