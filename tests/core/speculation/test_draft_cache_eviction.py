"""Who makes way in a proposer's cache, decided without a model."""

from __future__ import annotations

from typing import Any, cast

from core.kv_cache.slot import Slot
from core.llama.batch import Batch
from core.llama.context import DecodeStatus
from core.speculation.proposers.draft_cache_eviction import DraftCacheEviction

BATCH = cast("Batch", None)


class Cells:
    """A context that can evaluate nothing until enough slots were dropped."""

    def __init__(self, n_to_drop: int, otherwise: DecodeStatus = DecodeStatus.OK) -> None:
        self.dropped: list[int] = []
        self._n_to_drop = n_to_drop
        self._otherwise = otherwise

    def decode(self, batch: Batch) -> DecodeStatus:
        return DecodeStatus.NO_KV_SLOT if len(self.dropped) < self._n_to_drop else self._otherwise


def texts(cells: Cells, *slots: Slot) -> DraftCacheEviction:
    """All slots were read, in this order."""
    idle = DraftCacheEviction(cast("Any", cells), cells.dropped.append)
    for slot in slots:
        idle.use(slot)
    return idle


def slot(index: int, left_at: int = 0) -> Slot:
    """A slot whose request left it then; 0: it has not."""
    return Slot(index, is_free=left_at > 0, last_used=left_at, n_tenants=1)


def test_as_many_texts_leave_as_are_in_the_way_the_oldest_first() -> None:
    cells = Cells(2)
    assert texts(cells, slot(0, left_at=7), slot(1), slot(2, left_at=3), slot(3, left_at=5)).decode(BATCH)
    assert cells.dropped == [2, 3]


def test_what_is_at_work_stays() -> None:
    cells = Cells(2)
    assert not texts(cells, slot(0), slot(1, left_at=1), slot(2)).decode(BATCH)
    assert cells.dropped == [1]


def test_a_slot_that_another_request_has_taken_makes_way_last() -> None:
    cells, taken = Cells(1), slot(0)
    idle = texts(cells, taken, slot(1, left_at=9))
    taken.n_tenants += 1
    assert idle.decode(BATCH)
    assert cells.dropped == [1], "it may go on from what is held there"
    cells.dropped.clear()
    assert idle.decode(BATCH)
    assert cells.dropped == [0]
    idle.use(taken)
    cells.dropped.clear()
    assert not idle.decode(BATCH), "it is read for the new one now"


def test_a_decode_that_fails_for_another_reason_costs_nobody_a_text() -> None:
    cells = Cells(0, DecodeStatus.COMPUTE_FAILED)
    assert not texts(cells, slot(0, left_at=1), slot(1)).decode(BATCH)
    assert cells.dropped == []
