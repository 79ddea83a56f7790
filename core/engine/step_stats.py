"""What steps did, and where their time went."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(slots=True)
class StepStats:
    """What the steps did since the start, and where the time went.

    Seconds in all, in the target's decode, drafting, and planning: placing requests and choosing rows.
    """

    n_steps: int = 0
    n_tokens: int = 0
    n_sampled: int = 0
    n_drafted: int = 0
    n_accepted: int = 0
    total: float = 0.0
    decode: float = 0.0
    draft: float = 0.0
    plan: float = 0.0

    @property
    def own(self) -> float:
        """Seconds of our own Python in planning and committing."""
        return self.total - self.decode - self.draft


class StepYield(NamedTuple):
    """What a step brought. ``n_sampled`` counts end-of-generation tokens too, ``n_tokens`` does not."""

    n_tokens: int
    n_sampled: int
    n_drafted: int
    n_accepted: int
