"""Shapes of drafted trees. Pure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.scheduler.draft import TreeShape


def test_a_chain_has_one_leaf_and_everything_is_on_its_way() -> None:
    shape = TreeShape((-1, 0, 1))
    assert shape.depths == (0, 1, 2, 3)
    assert shape.leaves_below == ((0,),) * 4
    assert [shape.n_off_leaf_0(row) for row in range(4)] == [0, 0, 0, 0]


def test_siblings_are_leaves_of_their_own() -> None:
    shape = TreeShape((-1, 0, -1, 0))
    assert shape.n_leaves == 3
    assert shape.leaves_below[0] == (0, 1, 2)
    assert shape.leaves_below[1] == (0, 1)
    assert (shape.leaves_below[2], shape.leaves_below[4], shape.leaves_below[3]) == ((0,), (1,), (2,))
    assert [shape.n_off_leaf_0(row) for row in range(5)] == [0, 0, 0, 1, 1]


def test_following_goes_to_the_child_with_the_token() -> None:
    shape, tokens = TreeShape((-1, 0, -1, 2)), (7, 8, 9, 8)
    assert shape.follow(tokens, 0, 9) == 3
    assert shape.follow(tokens, 3, 8) == 4
    assert shape.follow(tokens, 1, 8) == 2
    assert shape.follow(tokens, 0, 8) == 0
    assert shape.follow(tokens, 4, 7) == 0


@pytest.mark.parametrize("parents", [(0,), (-1, 1), (-2,), (-1, 2, 0)])
def test_a_parent_that_does_not_come_before_is_refused(parents: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="cannot follow"):
        TreeShape(parents)


@given(st.lists(st.floats(0, 1), max_size=24))
def test_every_row_sees_the_leaves_of_its_children_and_no_others(draws: list[float]) -> None:
    parents = [int(draw * index * 0.999) - 1 for index, draw in enumerate(draws, 1)]
    shape = TreeShape(parents)
    assert shape.leaves_below[0] == tuple(range(shape.n_leaves))
    for row, children in enumerate(shape.children):
        assert sorted(leaf for child in children for leaf in shape.leaves_below[child]) == (
            list(shape.leaves_below[row]) if children else []
        )
        path = [row]
        while path[-1]:
            path.append(shape.parents[path[-1] - 1] + 1)
        assert shape.depths[row] == len(path) - 1
        assert shape.n_off_leaf_0(row) == sum(0 not in shape.leaves_below[step] for step in path)
