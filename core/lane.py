"""The lanes that requests run in: who goes first where not all can be served at once."""

from __future__ import annotations

from enum import StrEnum


class Lane(StrEnum):
    """``FAST`` keeps the pace that it would have alone; ``BATCH`` fills what the others leave, and may wait."""

    FAST = "fast"
    STANDARD = "standard"
    BATCH = "batch"
