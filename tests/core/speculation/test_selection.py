"""How many drafted tokens are verified where all requests must bring equally many rows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from core.speculation.draft_length import StepCost, keep_evenly
from core.speculation.proposers.proposer import DraftChain


def chain(*reach: float) -> DraftChain:
    nobody = cast("Any", SimpleNamespace(id="nobody"))
    drafted = len(reach)
    return DraftChain(nobody, nobody, nobody, [7] * drafted, [0] * drafted, [0.5] * drafted, list(reach))


def kept(chains: list[DraftChain], n_sequences: int, row: float, room: int = 100) -> list[int]:
    """Keep where a token is worth a second and each row takes ``row`` seconds."""
    prices = StepCost(n_sequences, 1.0, lambda rows: 1.0 + row * rows, room, n_even=n_sequences)
    keep_evenly(chains, prices, lambda one: one.reach)
    return [len(one.tokens) for one in chains]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (0.01, 3),  # as many as the shortest chain has
        (0.45, 2),  # the third of both brings 0.7 tokens and takes 0.9 seconds
        (0.95, 0),  # the first of both brings 1.7 and takes 1.9
    ],
)
def test_as_many_as_pay_for_all_together(row: float, expected: int) -> None:
    chains = [chain(0.9, 0.8, 0.6, 0.5), chain(0.8, 0.4, 0.1)]
    assert kept(chains, 2, row) == [expected, expected]


def test_one_that_has_no_draft_keeps_all_from_drafting() -> None:
    assert kept([chain(0.9, 0.8), chain(0.9, 0.8)], 3, 0.01) == [0, 0]
    assert kept([chain(0.9, 0.8), chain()], 2, 0.01) == [0, 0]
    assert kept([], 2, 0.01) == []


def test_the_room_is_shared() -> None:
    assert kept([chain(0.9, 0.9, 0.9), chain(0.9, 0.9, 0.9)], 2, 0.01, room=5) == [2, 2]
    assert kept([chain(0.9), chain(0.9)], 2, 0.01, room=-1) == [0, 0]


def test_a_poor_token_is_taken_for_what_comes_behind_it() -> None:
    chains = [chain(0.3, 0.3), chain(0.9, 0.9)]
    assert kept(chains, 2, 0.58) == [2, 2]
