"""Sequence ids for what may or may not become part of a sequence: the side branches of drafted trees."""

from __future__ import annotations

import time
from collections.abc import Callable

from core.kv_cache.cache_memory import CacheMemory

# Until it was measured: seconds to lend an id, and to take it back. No data is moved.
_FIRST_ESTIMATE = 1e-5
# One loan moves the estimate by this share, and counts as at most so many times the estimate: it may have been slow for
# reasons of its own.
_WEIGHT, _OUTLIER = 0.1, 3.0


class Branches:
    """Lends sequence ids that begin with what a slot holds. Cells are shared, nothing is computed or moved.

    Sharing a long text takes time all the same. So an id that comes back keeps the slot's part until the slot is cut
    or another one needs the id. ``count`` is how many ids there are.
    """

    def __init__(
        self, memory: CacheMemory, first: int, count: int, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        """Take ``count`` ids from ``first`` on, in the order in which ``memory`` numbers its sequences."""
        self._memory = memory
        self._free = list(range(first, first + count))
        self._lent: dict[int, list[int]] = {}
        # What an id holds of a slot's beginning: (slot, tokens).
        self._held: dict[int, tuple[int, int]] = {}
        self.count = count
        self._to_lend = self._to_return = _FIRST_ESTIMATE
        self._clock = clock
        self._seconds = 0.0

    @property
    def n_free(self) -> int:
        """Ids that can be lent."""
        return len(self._free)

    @property
    def seconds_each(self) -> float:
        """What it takes lately to lend an id and to have it back."""
        return self._to_lend + self._to_return

    def take_seconds(self) -> float:
        """Return the seconds that lending and taking back have taken since this was last asked."""
        taken, self._seconds = self._seconds, 0.0
        return taken

    def lent_to(self, slot: int) -> list[int]:
        """Return the ids that a slot has, in the order of ``fork``."""
        return self._lent.get(slot, [])

    def fork(self, slot: int, source: int, end: int) -> int:
        """Lend ``slot`` an id that holds the first ``end`` positions of ``source``: the slot or one of its branches."""
        began = self._clock()
        branch = self._best_free(slot)
        self._free.remove(branch)
        owner, held = self._held.get(branch, (slot, 0))
        if owner != slot or held > end:
            self._keep(branch, slot, 0)
            held = 0
        if held < end:
            self._memory.copy(source, branch, end, held)
        self._lent.setdefault(slot, []).append(branch)
        spent = self._clock() - began
        self._seconds += spent
        self._to_lend = _moved(self._to_lend, spent)
        return branch

    def release(self, slot: int, n_kept: int) -> None:
        """Take back a slot's ids; the first ``n_kept`` positions of the slot are as they were when they were lent."""
        lent = self._lent.pop(slot, None)
        if not lent:
            return
        began = self._clock()
        for branch in lent:
            self._held[branch] = slot, n_kept
            self._keep(branch, slot, n_kept)
        self._free += lent
        spent = self._clock() - began
        self._seconds += spent
        self._to_return = _moved(self._to_return, spent / len(lent))

    def trim(self, slot: int, size: int) -> None:
        """A slot is cut to its first ``size`` positions: hold no more of it. What was lent to it comes back empty."""
        if not self._held and not self._lent:
            return
        self.release(slot, 0)
        for branch, (owner, held) in list(self._held.items()):
            if owner == slot and held > size:
                self._keep(branch, slot, size)

    def _keep(self, branch: int, slot: int, size: int) -> None:
        if branch in self._held:
            self._memory.remove(branch, size)
            del self._held[branch]
        if size:
            self._held[branch] = slot, size

    def _best_free(self, slot: int) -> int:
        """Return a free id that holds something of the slot, else an empty one, else any."""
        empty = None
        for branch in self._free:
            held = self._held.get(branch)
            if held is None:
                empty = branch if empty is None else empty
            elif held[0] == slot:
                return branch
        return self._free[0] if empty is None else empty


def _moved(estimate: float, seen: float) -> float:
    return estimate + _WEIGHT * (min(seen, _OUTLIER * estimate) - estimate)
