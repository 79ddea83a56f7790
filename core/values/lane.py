"""Priority lanes of requests: which request goes first if not all can run at once."""

from __future__ import annotations

from enum import StrEnum


class Lane(StrEnum):
    """``FAST`` keeps the speed that it would have alone; ``BATCH`` uses the capacity that is left, and may wait.

    The lanes are listed by priority, highest first.
    """

    FAST = "fast"
    STANDARD = "standard"
    BATCH = "batch"

    @property
    def rank(self) -> int:
        """0 for the lane of the highest priority."""
        return _RANKS[self]


_RANKS = {lane: rank for rank, lane in enumerate(Lane)}
