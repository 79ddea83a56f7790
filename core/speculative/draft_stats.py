"""Totals of drafting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from core.options import MAX_DRAFT_DEPTH


@dataclass(slots=True)
class DraftStats:
    """Totals: tokens drafted and accepted by depth, tokens that came, seconds saved."""

    n_drafted: int = 0
    n_accepted: int = 0
    n_bonus: int = 0
    drafted_at: list[int] = field(default_factory=lambda: [0] * MAX_DRAFT_DEPTH)
    accepted_at: list[int] = field(default_factory=lambda: [0] * MAX_DRAFT_DEPTH)

    def count(self, depths: Sequence[int], n_accepted: int) -> None:
        """Count a verified draft by the depths of its tokens."""
        self.n_drafted += len(depths)
        self.n_accepted += n_accepted
        self.n_bonus += 1
        for depth in depths:
            self.drafted_at[depth] += 1
        for depth in range(n_accepted):
            self.accepted_at[depth] += 1
