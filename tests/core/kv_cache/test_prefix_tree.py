"""The radix tree against a model that compares every text with every other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.kv_cache.prefix_tree import PrefixNode, PrefixTree
from tests.support.integrity import check_tree


@dataclass(eq=False)
class Piece:
    start: int
    end: int = 0
    node: PrefixNode | None = None


def ids(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def agreement(some: list[int], other: list[int]) -> int:
    return next((i for i, (a, b) in enumerate(zip(some, other, strict=False)) if a != b), min(len(some), len(other)))


# Few different tokens, so that texts share beginnings.
texts = st.lists(st.integers(0, 2), min_size=1, max_size=12)


@st.composite
def pieces(draw: st.DrawFn) -> tuple[list[int], int]:
    text = draw(texts)
    return text, draw(st.integers(0, len(text) - 1))


@given(st.lists(pieces(), max_size=12), st.data())
def test_places_agree_with_a_text_as_far_as_a_comparison_says(
    stored: list[tuple[list[int], int]], data: st.DataObject
) -> None:
    tree = PrefixTree()
    model: dict[Piece, list[int]] = {}
    for text, start in stored:
        piece = Piece(start)
        tree.insert(piece, ids(*text))
        model[piece] = text
        check_tree(tree)
        action = data.draw(st.sampled_from(["keep", "remove", "extend"]))
        chosen = data.draw(st.sampled_from(list(model)))
        if action == "remove":
            tree.remove(chosen)
            del model[chosen]
        elif action == "extend":
            model[chosen] = model[chosen] + data.draw(texts)
            tree.extend(chosen, ids(*model[chosen]))
        check_tree(tree)
    prompt = data.draw(texts)
    match = tree.match(ids(*prompt))
    # A piece lies on the way of the texts that pass where it begins.
    expected = {p: agreement(prompt, text) for p, text in model.items() if agreement(prompt, text) > p.start}
    assert match.reaches() == expected
    known = [agreement(prompt, text) for text in model.values()]
    # What lies above a piece that begins late is known too, as the way to it.
    assert match.size == max(known, default=0)


@given(st.lists(pieces(), max_size=12))
def test_nothing_is_left_when_all_places_are_gone(stored: list[tuple[list[int], int]]) -> None:
    tree = PrefixTree()
    everyone = []
    for text, start in stored:
        everyone.append(Piece(start))
        tree.insert(everyone[-1], ids(*text))
    for piece in everyone:
        tree.remove(piece)
        check_tree(tree)
    assert not tree.root.children


def test_the_other_way_is_what_a_stored_text_says_next() -> None:
    tree = PrefixTree()
    tree.insert(Piece(0), ids(1, 2, 3, 4, 5))
    other = tree.match(ids(1, 2, 9)).continuation(2)
    assert other is not None
    assert other.tolist() == [3, 4]
    tree = PrefixTree()
    tree.insert(Piece(0), ids(1, 2))
    assert tree.match(ids(1, 2, 9)).continuation(2) is None
    tree.insert(Piece(0), ids(1, 2, 7, 7))
    assert tree.match(ids(1, 2, 9)).continuation(2) is None
    assert tree.match(ids(5)).continuation(2) is None
    tree = PrefixTree()
    tree.insert(Piece(0), ids(1, 2, 7))
    tree.insert(Piece(0), ids(1, 2, 8))
    other = tree.match(ids(1, 2, 9)).continuation(4)
    assert other is not None
    assert other.tolist() == [8]
