"""Slots: which sequence id a request gets, and what it finds there."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.kv_cache.memory import AttentionMemory, RecurrentMemory
from core.kv_cache.slot import TokenBuffer
from core.kv_cache.slot_table import SlotTable
from core.values.request import Lane


class Cells:
    """A KV cache that remembers what it was told."""

    def __init__(self, can_cut: bool = True) -> None:
        self.calls: list[tuple[str, int, int]] = []
        self.can_cut = can_cut

    def remove(self, sequence: int, start: int, end: int = -1) -> bool:
        self.calls.append(("remove", sequence, start))
        return self.can_cut or start == 0

    def copy(self, source: int, target: int, end: int, start: int = 0) -> None:
        self.calls.append((f"copy to {target}", source, end))

    def last_position(self, sequence: int) -> int:
        raise AssertionError("nobody asks")


def tokens(*values: int) -> TokenBuffer:
    return TokenBuffer(np.array(values, np.int32))


def fill(table: SlotTable, *values: int) -> int:
    """Run a request to its end; return its slot's id."""
    slot, _ = table.take(tokens(*values))
    slot.n_resident = len(values)
    table.release(slot)
    return slot.id


def test_the_next_turn_finds_its_slot_and_the_same_prompt_leaves_one_token() -> None:
    table = SlotTable(AttentionMemory(Cells()), 2)
    slot, n_cached = table.take(tokens(1, 2, 3))
    assert (slot.is_free, n_cached) == (False, 0)
    table = SlotTable(AttentionMemory(Cells()), 4)
    fill(table, 9, 9)
    home = fill(table, 1, 2, 3)
    slot, n_cached = table.take(tokens(1, 2, 3, 4, 5))
    assert (slot.id, n_cached) == (home, 3)
    cells = Cells()
    table = SlotTable(AttentionMemory(cells), 1)
    fill(table, 1, 2, 3)
    slot, n_cached = table.take(tokens(1, 2, 3))
    assert n_cached == 2
    assert ("remove", slot.id, 2) in cells.calls


def test_a_prefix_that_was_evaluated_is_shared_also_while_in_use() -> None:
    cells = Cells()
    table = SlotTable(AttentionMemory(cells), 2)
    busy, _ = table.take(tokens(1, 2, 3, 4))
    busy.n_resident = 4
    slot, n_cached = table.take(tokens(1, 2, 3, 7))
    assert n_cached == 3
    assert slot is not busy
    assert cells.calls[-1] == (f"copy to {slot.id}", busy.id, 3)
    table = SlotTable(AttentionMemory(Cells()), 2)
    busy, _ = table.take(tokens(1, 2, 3, 4))
    busy.n_resident = 1
    _, n_cached = table.take(tokens(1, 2, 3, 7))
    assert n_cached == 1


def test_a_prefix_that_another_computes_is_waited_for_but_not_in_a_lower_lane() -> None:
    table = SlotTable(AttentionMemory(Cells()), 3)
    shared = range(100)
    batch, _ = table.take(tokens(*shared, 200), rank=Lane.BATCH.rank)
    other = tokens(*shared, 201)
    assert table.wait_for(other, rank=Lane.BATCH.rank) is not None
    assert table.wait_for(other, rank=Lane.FAST.rank) is None
    standard, _ = table.take(tokens(*shared, 202), rank=Lane.STANDARD.rank)
    hold = table.wait_for(other, rank=Lane.BATCH.rank)
    assert hold is not None
    assert table.wait_for(other, rank=Lane.FAST.rank) is None
    batch.n_resident = standard.n_resident = 100
    assert hold.is_over


def test_the_slot_used_longest_ago_makes_room_and_no_long_conversation() -> None:
    table = SlotTable(AttentionMemory(Cells()), 2)
    first = fill(table, 1, 1)
    fill(table, 2, 2)
    slot, _ = table.take(tokens(3, 3))
    assert slot.id == first
    table = SlotTable(AttentionMemory(Cells()), 2)
    home = fill(table, *range(100))
    slot, n_cached = table.take(tokens(0, 1, 2, 77))
    assert (slot.id != home, n_cached) == (True, 3)


def test_idle_slots_are_dropped_one_at_a_time_and_busy_ones_never() -> None:
    table = SlotTable(AttentionMemory(Cells()), 3)
    fill(table, 1, 1)
    fill(table, 2, 2)
    busy, _ = table.take(tokens(3, 3))
    busy.n_resident = 2
    assert table.n_resident == 6 - 2 * (busy.id != 2)
    while table.evict_idle():
        pass
    assert table.n_resident == 2
    assert busy.n_resident == 2


@pytest.mark.parametrize(("prompt", "expected"), [((1, 2, 3, 4), 3), ((1, 2, 9), 0), ((1, 2, 3), 0)])
def test_a_running_state_is_extended_but_never_cut(prompt: tuple[int, ...], expected: int) -> None:
    table = SlotTable(RecurrentMemory(Cells(can_cut=False)), 1)
    fill(table, 1, 2, 3)
    _, n_cached = table.take(tokens(*prompt))
    assert n_cached == expected


def test_a_row_of_tokens_grows_beyond_its_first_room_and_shares_no_array() -> None:
    source = np.array([1, 2], np.int32)
    row = TokenBuffer(source)
    source[0] = 9
    for token in range(1000):
        row.append(token)
    assert (len(row), row.last) == (1002, 999)
    assert row.view.tolist() == [1, 2, *range(1000)]


@given(st.lists(st.integers(0, 3), max_size=8), st.lists(st.integers(0, 3), max_size=8))
def test_the_common_prefix_is_the_longest_equal_beginning(a: list[int], b: list[int]) -> None:
    expected = 0
    while expected < min(len(a), len(b)) and a[expected] == b[expected]:
        expected += 1
    assert tokens(*a).common_prefix(np.array(b, np.int32)) == expected
