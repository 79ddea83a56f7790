"""Tokens per second while they arrive, over the last second."""

from __future__ import annotations

from collections import deque

WINDOW = 1.0


class TokenRate:
    """Counts over a sliding window; times in seconds on any clock that does not go back."""

    def __init__(self) -> None:
        self._marks: deque[tuple[float, int]] = deque()
        self._count = 0

    def add(self, count: int, now: float) -> None:
        """Count ``count`` more at ``now``."""
        self._marks.append((now, count))
        self._count += count
        self._forget(now)

    def per_second(self, now: float) -> float:
        """Return the rate over the window; 0 until there are two marks."""
        self._forget(now)
        if len(self._marks) < 2:
            return 0.0
        first_time, first_count = self._marks[0]
        elapsed = max(now - first_time, 1e-3)
        # What came with the first mark took the time before it.
        return (self._count - first_count) / elapsed

    def _forget(self, now: float) -> None:
        while self._marks and self._marks[0][0] < now - WINDOW:
            self._count -= self._marks.popleft()[1]
