"""The lanes that requests run in: who goes first where not all can be served at once."""

from __future__ import annotations

from enum import StrEnum


class Lane(StrEnum):
    """``FAST`` keeps the pace that it would have alone; ``BATCH`` fills what the others leave, and may wait.

    The lanes come in the order in which they go first.
    """

    FAST = "fast"
    STANDARD = "standard"
    BATCH = "batch"

    @property
    def rank(self) -> int:
        """0 for the lane that goes first."""
        return _RANKS[self]


_RANKS = {lane: rank for rank, lane in enumerate(Lane)}
