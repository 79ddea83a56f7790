"""The number of threads of a context: measured once, then lowered to the cores that other programs leave free.

Threads wait for each other hundreds of times in a step. If one has no core, all wait until the system schedules it
again, which can take a hundred times as long as the step.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from core.cost.cost_model import CostModel
from core.machine.measurements import OtherPrograms
from core.values.step_kind import StepKind, kind_of

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


# Seconds between two checks of other programs' load; a check takes some microseconds.
_LOOK_SECONDS = 0.25
# A step of more than so many times the expected time is not learnt from until it is known that nobody else was busy.
# That is checked at once, but not before the system's counters have moved (seconds). If nobody was, the machine itself
# is slower now, and so many suspicious steps are learnt from.
_SUSPICIOUS, _SOONEST_LOOK, _TRUSTED_STEPS = 3.0, 0.05, 8
# With fewer threads, the slowdown follows the latest steps with this weight; one counts as twice the last at most.
_LEVEL_RATE, _MOST_OF_ONE = 0.1, 2.0


class Threaded(Protocol):
    """The part of a context that sets threads."""

    def set_threads(self, decode: int, few: int, many: int) -> None:
        """Set the threads of steps of one row, of a few, and of many."""


class ThreadControl:
    """Leaves to other programs the cores that they keep busy, and lets the cost model learn from all threads only."""

    def __init__(
        self,
        context: Threaded,
        cost: CostModel,
        choice: ThreadChoice,
        clock: Callable[[], float] = time.perf_counter,
        busy_cores: Callable[[], float] | None = None,
        n_cores: int | None = None,
    ) -> None:
        """``cost`` is the cost model of ``context`` with ``choice``, the best threads on an idle machine.

        ``busy_cores`` returns how many of the machine's ``n_cores`` others kept busy since its last call.
        """
        self._context = context
        self._cost = cost
        self._choice = choice
        self._clock = clock
        self._busy_cores = busy_cores or OtherPrograms().busy_cores
        self._n_cores = n_cores or os.cpu_count() or 1
        self._n_free = self._n_cores
        self._look_at = float("-inf")
        self._n_trusted = 0
        self._slowdowns: dict[StepKind, float] = {}
        self.threads = choice

    @property
    def has_all(self) -> bool:
        """True if all threads are used."""
        return self.threads == self._choice

    def observe(self, rows: int, kv: int, seconds: float) -> None:
        """Learn from a step, as ``CostModel.observe`` does, and set the threads of the next one."""
        if rows <= 0 or seconds <= 0.0:
            return
        kind, own_time, now = kind_of(rows), self._cost.own_time(rows, kv), self._clock()
        ratio = seconds / own_time
        is_suspicious = self.has_all and ratio > _SUSPICIOUS
        is_early = is_suspicious and not self._n_trusted and now >= self._look_at - _LOOK_SECONDS + _SOONEST_LOOK
        if not self.has_all:
            self._learn_slowdown(kind, ratio)
        if now >= self._look_at or is_early:
            self._look(now)
            self._n_trusted = _TRUSTED_STEPS if is_early and self._n_free == self._n_cores else self._n_trusted
        if not self.has_all or (is_suspicious and not self._n_trusted):
            return
        self._n_trusted -= is_suspicious
        self._cost.observe(rows, kv, seconds, own_time)

    def _learn_slowdown(self, kind: StepKind, ratio: float) -> None:
        before = self._slowdowns.get(kind)
        change = 0.0 if before is None else _LEVEL_RATE * (min(ratio, _MOST_OF_ONE * before) - before)
        self._slowdowns[kind] = ratio if before is None else before + change
        self._cost.slow_down(kind, self._slowdowns[kind])

    def _look(self, now: float) -> None:
        """Use the cores that others leave free: fewer at once, more where two looks in a row agree."""
        self._look_at = now + _LOOK_SECONDS
        n_free = max(1, self._n_cores - round(self._busy_cores()))
        most, self._n_free = min(n_free, self._n_free), n_free
        choice = self._choice
        threads = ThreadChoice(min(choice.decode, most), min(choice.few, most), min(choice.many, most))
        if threads == self.threads:
            return
        self.threads = threads
        self._context.set_threads(threads.decode, threads.few, threads.many)
        self._slowdowns.clear()
        for kind in StepKind:
            self._cost.slow_down(kind, 1.0)


def thread_control(context: Threaded, cost: CostModel, choice: ThreadChoice, n_gpu_layers: int) -> ThreadControl | None:
    """Return the thread control of a context; None with a GPU, where threads only wait."""
    return ThreadControl(context, cost, choice) if not n_gpu_layers else None
