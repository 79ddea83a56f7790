"""Totals of drafting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from core.values.engine_options import MAX_DRAFT_DEPTH


@dataclass(slots=True)
class DraftStats:
    """Totals: tokens drafted and accepted, also by depth.

    ``n_bonus`` are the target's own choices beside the accepted ones: one for each draft that was verified, but none
    where the text ended with an accepted token.
    """

    n_drafted: int = 0
    n_accepted: int = 0
    n_bonus: int = 0
    drafted_at: list[int] = field(default_factory=lambda: [0] * MAX_DRAFT_DEPTH)
    accepted_at: list[int] = field(default_factory=lambda: [0] * MAX_DRAFT_DEPTH)

    def count(self, depths: Sequence[int], n_accepted: int, n_choices: int) -> None:
        """Count a verified draft by the depths of its tokens, and what the target chose with it."""
        self.n_drafted += len(depths)
        self.n_accepted += n_accepted
        self.n_bonus += n_choices - n_accepted
        for depth in depths:
            self.drafted_at[depth] += 1
        for depth in range(n_accepted):
            self.accepted_at[depth] += 1
