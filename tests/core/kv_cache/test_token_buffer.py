"""The growing row of tokens."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.kv_cache.slot import TokenBuffer


def buffer(*tokens: int) -> TokenBuffer:
    return TokenBuffer(np.array(tokens, np.int32))


def test_it_grows_beyond_its_first_room() -> None:
    tokens = buffer(1, 2)
    for token in range(1000):
        tokens.append(token)
    assert len(tokens) == 1002
    assert tokens.last == 999
    assert tokens.view.tolist() == [1, 2, *range(1000)]


def test_it_does_not_share_the_array_it_was_made_from() -> None:
    source = np.array([1, 2, 3], np.int32)
    tokens = TokenBuffer(source)
    source[0] = 9
    assert tokens.view.tolist() == [1, 2, 3]


@given(st.lists(st.integers(0, 3), max_size=8), st.lists(st.integers(0, 3), max_size=8))
def test_the_common_prefix_is_the_longest_equal_beginning(a: list[int], b: list[int]) -> None:
    expected = 0
    while expected < min(len(a), len(b)) and a[expected] == b[expected]:
        expected += 1
    assert buffer(*a).common_prefix(np.array(b, np.int32)) == expected
