"""Slots change hands between lanes: at once where somebody waits who goes first, and never for nothing."""

from __future__ import annotations

import random
from itertools import count
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.kv_cache.memory import AttentionMemory
from core.kv_cache.slot_table import SlotTable
from core.scheduler.scheduler import MAX_WAIT_SECONDS, Scheduler, WaitingQueue
from core.scheduler.sequence import Sequence
from core.values.request import Lane
from tests.support.sequences import sequence


class NoCells:
    def remove(self, sequence: int, start: int, end: int = -1) -> bool:
        return True

    def copy(self, source: int, target: int, end: int, start: int = 0) -> None:
        return None


class Office:
    """A scheduler on a clock."""

    def __init__(self, n_slots: int = 2) -> None:
        self.scheduler = Scheduler(SlotTable(AttentionMemory(NoCells()), n_slots))
        self.now = 0.0
        self._orders = count()

    def arrive(self, *lanes: Lane) -> list[Sequence]:
        arrived = [sequence(next(self._orders), 6, lane=lane, at=self.now) for lane in lanes]
        for one in arrived:
            self.scheduler.add(one)
        return arrived

    def place(self) -> list[int]:
        """Give out slots as the engine does; return who runs, by the order of arrival."""
        list(self.scheduler.admit(self.now))
        return sorted(one.order for one in self.scheduler.running)


def test_a_higher_lane_takes_the_slot_of_the_youngest_batch_request() -> None:
    office = Office()
    office.arrive(Lane.BATCH, Lane.BATCH, Lane.BATCH)
    assert office.place() == [0, 1]
    office.arrive(Lane.FAST)
    assert office.place() == [0, 3]
    office.arrive(Lane.STANDARD)
    assert office.place() == [3, 4]
    office.arrive(Lane.FAST)
    assert office.place() == [3, 4], "who runs in a higher lane stays"


def test_who_was_pushed_back_goes_on_before_those_who_have_not_begun() -> None:
    office = Office()
    _, second, _ = office.arrive(Lane.BATCH, Lane.BATCH, Lane.BATCH)
    office.place()
    (fast,) = office.arrive(Lane.FAST)
    office.place()
    assert second in office.scheduler.waiting
    assert second.n_past == 0
    office.scheduler.remove(fast)
    assert office.place() == [0, 1]


def test_slots_do_not_change_hands_for_nothing() -> None:
    """Short requests of a higher lane come one after the other; the batch request gets longer and longer turns."""
    office = Office(n_slots=1)
    (batch,) = office.arrive(Lane.BATCH)
    office.place()
    worked = 0.0
    for _ in range(200):
        (chat,) = office.arrive(Lane.STANDARD)
        office.place()
        while chat in office.scheduler.waiting:
            office.now += 0.5
            worked += 0.5
            office.place()
        office.scheduler.remove(chat)
        office.place()
        office.now += 0.1
        if worked > 60.0:
            break
    assert worked > 60.0
    assert batch.term <= 64.0


def test_a_batch_request_that_never_ran_gets_its_turn_beside_a_stream_of_others() -> None:
    office = Office(n_slots=1)
    (batch,) = office.arrive(Lane.BATCH)
    (running,) = office.arrive(Lane.STANDARD)
    office.place()
    waited = 0.0
    while batch in office.scheduler.waiting:
        office.arrive(Lane.STANDARD)
        office.scheduler.remove(office.scheduler.running[0])
        office.now += 1.0
        waited += 1.0
        office.place()
        if office.scheduler.running[0] is batch:
            break
    assert waited <= 32.0, "one request each half minute"
    assert running not in office.scheduler.running


def test_who_waits_for_a_text_that_is_read_is_overtaken_until_it_is_there() -> None:
    office = Office()
    reading = SimpleNamespace(is_over=False)
    first, second, *_ = office.arrive(Lane.STANDARD, Lane.STANDARD, Lane.STANDARD)
    first.hold = reading
    assert office.place() == [1, 2]
    office.scheduler.remove(second)
    assert office.place() == [2], "a free slot is no reason"
    reading.is_over = True
    assert office.place() == [0, 2]


def test_while_memory_is_short_only_a_higher_lane_joins_in_place_of_a_batch_request() -> None:
    office = Office(n_slots=3)
    _, second = office.arrive(Lane.BATCH, Lane.BATCH)
    office.place()
    office.scheduler.preempt_for_memory(second, office.now)
    office.arrive(Lane.BATCH)
    assert office.place() == [0]
    office.arrive(Lane.STANDARD, Lane.STANDARD)
    assert office.place() == [3]
    office.scheduler.remove(office.scheduler.running[0])
    assert office.place() == [0, 1, 4]


@pytest.mark.parametrize("lane", Lane)
def test_who_leaves_while_waiting_is_gone(lane: Lane) -> None:
    office = Office(n_slots=1)
    _, waiting = office.arrive(Lane.FAST, lane)
    office.place()
    office.scheduler.remove(waiting)
    assert "1" not in office.scheduler
    assert not office.scheduler.waiting.size
    assert len(list(office.scheduler)) == 1


LANES = tuple(Lane)


def line_of(*arrivals: tuple[Lane, float]) -> WaitingQueue:
    line = WaitingQueue()
    for order, (lane, at) in enumerate(arrivals):
        line.append(sequence(order, 5, lane=lane, at=at))
    return line


def served(line: WaitingQueue, now: float = 10.0) -> list[int]:
    """Serve everybody at one moment; return the order."""
    orders = []
    while line.size:
        first = line.next()[0]
        line.serve(first, now)
        orders.append(first.order)
    return orders


def test_lanes_go_in_their_order_until_one_has_waited_too_long() -> None:
    line = line_of((Lane.BATCH, 1), (Lane.STANDARD, 2), (Lane.FAST, 3), (Lane.BATCH, 1.5), (Lane.FAST, 3.5))
    assert served(line, 3.6) == [2, 4, 1, 0, 3]
    line = line_of((Lane.BATCH, 0.0), (Lane.STANDARD, MAX_WAIT_SECONDS[Lane.BATCH] + 1.0), (Lane.FAST, 100.0))
    assert served(line, 100.0) == [0, 1, 2]
    now = 10 * MAX_WAIT_SECONDS[Lane.BATCH]
    line = line_of(*[(Lane.BATCH, 0.0)] * 3, *[(Lane.STANDARD, now)] * 3)
    assert served(line, now) == [0, 3, 4, 5, 1, 2]


def test_whoever_comes_back_is_first_and_one_can_look_behind() -> None:
    line = line_of((Lane.BATCH, 0), (Lane.BATCH, 1))
    first = line.next()[0]
    line.serve(first, 2.0)
    line.prepend(first, 3.0)
    assert [one.order for one in line.next()] == [0]
    assert served(line) == [0, 1]
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
    everybody = line.next(depth=len(arrivals))
    leaving = rng.sample(everybody, min(n_leaving, len(everybody)))
    for one in leaving:
        line.remove(one)
    assert line.size == len(everybody) - len(leaving)
    assert sorted(served(line)) == sorted(one.order for one in everybody if one not in leaving)
    assert line.next() == []
