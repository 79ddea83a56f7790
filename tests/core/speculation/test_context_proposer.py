"""Who makes way in a proposer's cache, decided without a model."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from core.cost.calibration import MeasuredContext
from core.cost.cost_model import Calibration, CostModel, ReadCost
from core.kv_cache.slot import Slot
from core.llama.context import Batch, DecodeStatus
from core.speculation.proposers.context_proposer import ContextProposer
from core.speculation.proposers.proposer import DraftFailed
from models.facts.model_facts import WeightBytes

BATCH = cast("Batch", SimpleNamespace(n_tokens=1))


class Cells:
    """A context that can evaluate nothing until enough slots were dropped."""

    def __init__(self, n_to_drop: int, otherwise: DecodeStatus = DecodeStatus.OK) -> None:
        self.dropped: list[int] = []
        self._n_to_drop = n_to_drop
        self._otherwise = otherwise

    def decode(self, batch: Batch) -> DecodeStatus:
        return DecodeStatus.NO_KV_SLOT if len(self.dropped) < self._n_to_drop else self._otherwise


class Texts(ContextProposer):
    """A proposer that has read all slots, in this order."""

    def __init__(self, cells: Cells, *slots: Slot) -> None:
        cost, reads = CostModel(Calibration({1: 0.001})), ReadCost(WeightBytes(1_000, 0, 1, 0), cell=0)
        super().__init__(MeasuredContext(cast("Any", cells), cost, len(slots), reads), (0.5,), 10)
        self._cells = cells
        for slot in slots:
            self.use(slot)

    def use(self, slot: Slot) -> None:
        self._use(cast("Any", SimpleNamespace(slot=slot)))

    def decode(self) -> None:
        self._decode(BATCH, [], 0)

    def _drop(self, slot: int) -> None:
        self._cells.dropped.append(slot)


def slot(index: int, left_at: int = 0) -> Slot:
    """A slot whose request left it then; 0: it has not."""
    return Slot(index, is_free=left_at > 0, last_used=left_at, n_tenants=1)


def test_as_many_texts_leave_as_are_in_the_way_the_oldest_first() -> None:
    cells = Cells(2)
    texts = Texts(cells, slot(0, left_at=7), slot(1), slot(2, left_at=3), slot(3, left_at=5))
    texts.decode()
    assert cells.dropped == [2, 3]
    assert texts.take_bytes_read() == 1_000


def test_what_is_at_work_stays() -> None:
    cells = Cells(2)
    with pytest.raises(DraftFailed):
        Texts(cells, slot(0), slot(1, left_at=1), slot(2)).decode()
    assert cells.dropped == [1]


def test_a_slot_that_another_request_has_taken_makes_way_last() -> None:
    cells, taken = Cells(1), slot(0)
    texts = Texts(cells, taken, slot(1, left_at=9))
    taken.n_tenants += 1
    texts.decode()
    assert cells.dropped == [1], "it may go on from what is held there"
    cells.dropped.clear()
    texts.decode()
    assert cells.dropped == [0]
    texts.use(taken)
    cells.dropped.clear()
    with pytest.raises(DraftFailed):
        texts.decode()  # it is read for the new one now


def test_a_decode_that_fails_for_another_reason_costs_nobody_a_text() -> None:
    cells = Cells(0, DecodeStatus.COMPUTE_FAILED)
    with pytest.raises(DraftFailed):
        Texts(cells, slot(0, left_at=1)).decode()
    assert cells.dropped == []
