"""Branches: ids lent for a while that share what a slot holds."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.kv_cache.branches import Branches


class Cells:
    """A KV cache of sequences that are rows of marks."""

    def __init__(self) -> None:
        self.held: dict[int, list[object]] = defaultdict(list)
        self.n_copied = 0

    def remove(self, sequence: int, start: int, end: int = -1) -> bool:
        assert end == -1
        del self.held[sequence][start:]
        return True

    def copy(self, source: int, target: int, end: int, start: int = 0) -> None:
        assert len(self.held[target]) == start, "positions are contiguous"
        self.held[target] += self.held[source][start:end]
        assert len(self.held[target]) == end
        self.n_copied += end - start


def test_a_branch_begins_with_the_slots_tokens_and_is_empty_once_the_slot_is_cut() -> None:
    cells = Cells()
    cells.held |= {0: [*"abcd"]}
    branches = Branches(cells, 2, 2)
    assert (branches.fork(0, 0, 4), branches.fork(0, 0, 4)) == (2, 3)
    assert branches.lent_to(0) == [2, 3]
    assert branches.n_free == 0
    assert cells.held[2] == cells.held[3] == [*"abcd"]
    branches.release(0, 4)
    assert branches.n_free == 2
    branches.trim(0, 0)
    assert cells.held[2] == cells.held[3] == []


def test_only_what_is_new_is_shared_when_a_branch_is_lent_again() -> None:
    cells = Cells()
    cells.held |= {0: [*"abcd"]}
    branches = Branches(cells, 2, 1)
    branches.fork(0, 0, 4)
    branches.release(0, 4)
    cells.held[0] += "ef"
    cells.n_copied = 0
    branches.fork(0, 0, 6)
    assert cells.held[2] == [*"abcdef"]
    assert cells.n_copied == 2


def test_a_slot_takes_its_own_branches_first_then_others() -> None:
    cells = Cells()
    cells.held |= {0: [*"abcd"], 1: [*"xy"]}
    branches = Branches(cells, 2, 2)
    branches.fork(0, 0, 4)
    branches.release(0, 4)
    assert branches.fork(1, 1, 2) == 3, "the empty one"
    assert branches.fork(1, 1, 2) == 2, "what nobody has now"
    assert cells.held[2] == cells.held[3] == [*"xy"]


@given(st.lists(st.tuples(st.sampled_from(["fork", "release", "grow", "cut"]), st.integers(0, 1), st.integers(0, 9))))
def test_a_branch_is_always_what_the_slot_is(steps: list[tuple[str, int, int]]) -> None:
    cells, marks = Cells(), iter(range(10_000))
    cells.held |= {0: [next(marks)], 1: [next(marks)]}
    branches = Branches(cells, 2, 3)
    for what, slot, n in steps:
        if what == "fork" and branches.n_free:
            branch = branches.fork(slot, slot, len(cells.held[slot]))
            assert cells.held[branch] == cells.held[slot]
            cells.held[branch].append(next(marks))
        elif what == "release":
            lent = branches.lent_to(slot)
            branches.release(slot, min([len(cells.held[slot]), *(len(cells.held[branch]) - 1 for branch in lent)]))
        elif what == "grow":
            cells.held[slot] += [next(marks) for _ in range(n)]
        elif what == "cut" and n < len(cells.held[slot]):
            branches.trim(slot, n)
            cells.remove(slot, n)
    for slot in (0, 1):
        branches.trim(slot, 0)
    assert branches.n_free == 3
    assert not any(cells.held[branch] for branch in (2, 3, 4))


class Clock:
    """Moves on by ``step`` at each reading."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def test_what_a_loan_takes_is_measured_and_one_hiccup_does_little() -> None:
    clock = Clock(0.001)
    branches = Branches(Cells(), 2, 2, clock)
    for _ in range(200):
        branches.fork(0, 0, 0)
        branches.release(0, 0)
        assert branches.take_seconds() == pytest.approx(0.002)
    assert branches.take_seconds() == 0.0
    assert branches.seconds_each == pytest.approx(0.002, rel=0.01)
    clock.step = 10.0
    branches.fork(0, 0, 0)
    branches.release(0, 0)
    assert branches.take_seconds() == pytest.approx(20.0)
    assert branches.seconds_each < 0.0025
