"""What a step verifies for one sequence: drafted tokens, one after the other or as a tree."""

from __future__ import annotations

from typing import NamedTuple

from core.scheduler.tree_shape import TreeShape

PENDING = -1


class Draft(NamedTuple):
    """Drafted tokens, each after the one that it follows. ``shape`` is None for a chain: each follows the one before.

    One step verifies a tree as well as a chain (SpecInfer, arXiv 2305.09781): a token sees only what it follows.
    """

    tokens: tuple[int, ...]
    shape: TreeShape | None = None
