"""Chooses the number of threads by measuring this model on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

# More threads must gain at least this share: otherwise they only take cores from other programs.
_WORTH = 0.05
_BUDGET_SECONDS = 0.25
_PROBES = 5


@dataclass(frozen=True, slots=True)
class ThreadChoice:
    """Threads for steps of one row (decode), of a few (batches and drafts), and of many (prefill)."""

    decode: int
    few: int
    many: int


def candidates(n_cores: int) -> tuple[int, ...]:
    """Return the counts worth trying, fewest first: 1, a quarter, half, three quarters, all but one, all."""
    counts = {1, n_cores // 4, n_cores // 2, n_cores * 3 // 4, n_cores - 1, n_cores}
    return tuple(sorted(count for count in counts if count >= 1))


def fewest_that_pay(seconds: dict[int, float]) -> int:
    """Return the smallest count whose step time is at most 5 % above the best."""
    best = min(seconds.values())
    return min(count for count, value in seconds.items() if value <= best * (1 + _WORTH))


def measure(step: Callable[[int], None], counts: tuple[int, ...]) -> dict[int, float]:
    """Return the shortest time of ``step(count)`` for each count, in seconds, within about a quarter of a second.

    Slow models are measured from the most threads down, and the search stops where fewer threads are clearly worse.
    """
    results: dict[int, float] = {}
    share = _BUDGET_SECONDS / len(counts)
    for count in reversed(counts):
        spent, best = 0.0, float("inf")
        step(count)
        for _ in range(_PROBES):
            began = time.perf_counter()
            step(count)
            taken = time.perf_counter() - began
            best, spent = min(best, taken), spent + taken
            if spent > share:
                break
        results[count] = best
        if best > 1.5 * min(results.values()) and best > share:
            break
    return results
