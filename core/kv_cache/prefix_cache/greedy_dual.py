"""The order of eviction: first those items that save least for their size and were used longest ago. Pure."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class GreedyDual(Generic[T]):
    """Greedy-Dual-Size-Frequency (Cherkasova, HP Labs report HPL-98-69R1, 1998).

    An item's priority is its worth plus the cache's age at its last use. The age rises to the priority of each evicted
    item. So an unused item falls below new ones in the end, whatever it was worth.
    """

    def __init__(self) -> None:
        self._age = 0.0
        self._order = itertools.count()
        self._priorities: dict[T, tuple[float, int]] = {}
        self._heap: list[tuple[float, int, T]] = []

    def __len__(self) -> int:
        return len(self._priorities)

    def __contains__(self, item: object) -> bool:
        return item in self._priorities

    def touch(self, item: T, worth: float) -> None:
        """Add ``item``, or record a use of it."""
        entry = self._age + worth, next(self._order)
        self._priorities[item] = entry
        heapq.heappush(self._heap, (*entry, item))

    def forget(self, item: T) -> None:
        """Remove ``item`` without an eviction."""
        self._priorities.pop(item, None)

    def evict(self, may_go: Callable[[T], bool]) -> T | None:
        """Remove the item of least priority among those that ``may_go``, and return it; None if there is none."""
        kept = []
        found = None
        while self._heap:
            entry = heapq.heappop(self._heap)
            priority, order, item = entry
            if self._priorities.get(item) != (priority, order):
                continue  # it was touched or forgotten since
            if may_go(item):
                self._age = max(self._age, priority)
                del self._priorities[item]
                found = item
                break
            kept.append(entry)
        for entry in kept:
            heapq.heappush(self._heap, entry)
        return found
