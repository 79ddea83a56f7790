"""What slots and branches need of a context."""

from __future__ import annotations

from typing import Protocol


class CacheMemory(Protocol):
    """The KV cache, by sequence."""

    def remove(self, sequence: int, start: int, end: int = -1) -> bool:
        """Drop positions [start, end)."""

    def copy(self, source: int, target: int, end: int, start: int = 0) -> None:
        """Share positions [start, end)."""

    def last_position(self, sequence: int) -> int:
        """Return the highest position held, -1 where there is none."""

    def first_position(self, sequence: int) -> int:
        """Return the lowest position that all layers hold, -1 where there is none."""
