"""What a step verifies for one sequence: drafted tokens, one after the other or as a tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class TreeShape:
    """Rows of a step that verify a tree: row 0 is the pending token, row ``n + 1`` the drafted token ``n``.

    Frozen. A leaf ends one way that the text may take. Leaf 0 is where the first child is followed at every row: the
    way that the sequence itself goes in the KV cache.
    """

    __slots__ = ("children", "depths", "leaves_below", "n_leaves", "parents")

    def __init__(self, parents: Sequence[int]) -> None:
        """``parents`` has the index of the token before each drafted one, -1 for the pending token.

        Parents come before their children, as they do in the batch; raises ValueError where they do not.
        """
        n_rows = len(parents) + 1
        children: list[list[int]] = [[] for _ in range(n_rows)]
        depths = [0] * n_rows
        for row, parent in enumerate(parents, 1):
            if not -1 <= parent < row - 1:
                raise ValueError(f"drafted token {row - 1} cannot follow token {parent}")
            children[parent + 1].append(row)
            depths[row] = depths[parent + 1] + 1
        self.parents = tuple(parents)
        self.children = tuple(tuple(rows) for rows in children)
        self.depths = tuple(depths)
        self.leaves_below = self._leaves()
        self.n_leaves = len(self.leaves_below[0])

    def _leaves(self) -> tuple[tuple[int, ...], ...]:
        """Return the numbers of the leaves at or below each row, smallest first."""
        below: list[tuple[int, ...]] = [()] * len(self.children)
        n_leaves = 0
        # Depth first, first children first: so leaf 0 is at the end of the first children.
        stack = [0]
        while stack:
            row = stack.pop()
            stack += reversed(self.children[row])
            if not self.children[row]:
                below[row] = (n_leaves,)
                n_leaves += 1
        for row in range(len(below) - 1, -1, -1):
            for child in self.children[row]:
                below[row] += below[child]
        return tuple(below)

    def follow(self, tokens: Sequence[int], row: int, token: int) -> int:
        """Return the row after ``row`` that drafted ``token``, 0 where none did; ``tokens`` are the drafted ones."""
        for child in self.children[row]:
            if tokens[child - 1] == token:
                return child
        return 0

    def n_off_leaf_0(self, row: int) -> int:
        """Return how many of the last rows on the way to ``row`` are not on the way to leaf 0."""
        count = 0
        while self.leaves_below[row][0]:
            row = self.parents[row - 1] + 1
            count += 1
        return count


PENDING = -1


class Draft(NamedTuple):
    """Drafted tokens, each after the one that it follows. ``shape`` is None for a chain: each follows the one before.

    One step verifies a tree as well as a chain (SpecInfer, arXiv 2305.09781): a token sees only what it follows.
    """

    tokens: tuple[int, ...]
    shape: TreeShape | None = None
