"""Where drafts fork, decided on recorded cost curves: trees where rows are nearly free, chains where not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from core.cost.cost_model import Calibration, CostModel
from core.scheduler.draft import Draft
from core.scheduler.input_processor import PreparedRequest
from core.scheduler.sequence import Sequence
from core.speculation.acceptance import AcceptanceTable
from core.speculation.draft_tree import GrowthPoint
from core.speculation.policy.speculator import Speculator
from core.speculation.policy.step_capacity import StepCapacity
from core.speculation.proposer import DraftChain, ProposedToken
from core.values.request import Request
from tests.support.proposers import RandomProposer

GPU = Calibration({1: 0.0100, 8: 0.0102, 16: 0.0104, 64: 0.0130})
CLIFF = Calibration({**dict.fromkeys(range(1, 9), 0.010), 9: 0.018, 16: 0.03, 64: 0.2})
CPU = Calibration({1: 0.0105, 2: 0.0159, 3: 0.019, 4: 0.022, 8: 0.036, 16: 0.068})


class Opinionated(RandomProposer):
    """First choices are right seven times of ten, second ones twice, third ones once."""

    def __init__(self) -> None:
        super().__init__(4096)
        self.table = AcceptanceTable((0.7, 0.2, 0.1))

    def extend(self, chains: list[DraftChain]) -> list[ProposedToken | None]:
        return [ProposedToken(self._random.randrange(4096), 0) for _ in chains]

    def grow(self, tips: list[GrowthPoint], width: int) -> list[tuple[ProposedToken, ...]]:
        return [tuple(ProposedToken(token, rank) for rank, token in enumerate(range(width))) for _ in tips]


def drafts_on(
    calibration: Calibration,
    n_sequences: int = 1,
    n_branches: int = 32,
    room: int = 40,
    width: int | None = None,
    branch_seconds: float = 0.0,
) -> list[Draft]:
    speculator = Speculator(
        CostModel(calibration),
        n_ctx=512,
        paid=(Opinionated(),),  # type: ignore[arg-type]
        width=width,
    )
    sequences = []
    for index in range(n_sequences):
        sampler = cast(Any, SimpleNamespace(seed=1, guide=None))
        prompt = np.zeros(20, np.int32)
        sequences.append(
            Sequence(PreparedRequest(Request(str(index), "x"), prompt, sampler), order=index, submitted_at=0.0)
        )
        speculator.admit(sequences[-1])
    assert speculator.begin_step(sequences)
    chains = speculator.draft(sequences, StepCapacity(n_sequences, 20 * n_sequences, room, n_branches, branch_seconds))
    return [chain.draft for chain in chains.values()]


def n_leaves(draft: Draft) -> int:
    return 1 if draft.shape is None else draft.shape.n_leaves


def test_where_rows_are_nearly_free_trees_are_drafted() -> None:
    (draft,) = drafts_on(GPU)
    assert draft.shape is not None
    assert len(draft.tokens) > 12
    assert max(draft.shape.depths) >= 5
    assert len(draft.shape.children[0]) == 3
    assert sum(bool(draft.shape.children[row]) for row in draft.shape.children[0]) >= 2, "not only the trunk goes on"


def test_where_each_row_costs_a_chain_is_drafted() -> None:
    (draft,) = drafts_on(CPU)
    assert draft.shape is None
    assert 1 <= len(draft.tokens) <= 4
    (other,) = drafts_on(CPU, width=3)
    assert (len(other.tokens), other.shape) == (len(draft.tokens), None), "second choices are not verified either"


def test_up_to_a_step_in_the_curve_forks_fill_the_rows_that_are_free() -> None:
    (draft,) = drafts_on(CLIFF)
    assert len(draft.tokens) == 7
    assert 1 < n_leaves(draft) < 7


def test_what_a_branch_takes_is_part_of_the_decision() -> None:
    leaves = [n_leaves(drafts_on(GPU, branch_seconds=seconds)[0]) for seconds in (0.0, 0.0004, 0.0009, 0.01)]
    assert leaves[0] > leaves[1] > leaves[2] > leaves[3] == 1


@pytest.mark.parametrize("n_sequences", [1, 3])
@pytest.mark.parametrize(("n_branches", "room"), [(32, 40), (4, 40), (1, 40), (0, 40), (32, 7), (32, 0)])
def test_trees_stay_within_rows_and_branches(n_sequences: int, n_branches: int, room: int) -> None:
    drafts = drafts_on(GPU, n_sequences, n_branches, room)
    assert sum(len(draft.tokens) for draft in drafts) <= room
    assert sum(n_leaves(draft) - 1 for draft in drafts) <= n_branches
    assert all(draft.shape is None for draft in drafts) == (not n_branches or not room)


def test_a_chain_is_drafted_on_a_gpu_where_it_is_asked_for() -> None:
    assert [draft.shape for draft in drafts_on(GPU, width=1)] == [None]
