"""The number of threads of a context: measured once, then lowered while other programs use the cores."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from core.cost.cost_model import CostModel
from core.cost.thread_tuner import SUSPICIOUS, ThreadTuner, counts_below
from core.machine.host import OtherPrograms, core_count
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
# After a suspicious step it is checked again, but not before the system's counters have moved (seconds).
_SOONEST_LOOK = 0.05
# Cores are shared if other programs and our threads together use this many cores more than there are.
_FELT_CORES = 0.2


class Threaded(Protocol):
    """The part of a context that sets threads."""

    def set_threads(self, decode: int, few: int, many: int) -> None:
        """Set the threads of steps of one row, of a few, and of many."""


class ThreadControl:
    """Has a thread tuner for each kind of step, and lets the cost model learn from undisturbed steps only."""

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

        ``busy_cores`` returns how many of the ``n_cores`` were busy with other programs since its last call.
        """
        self._context = context
        self._cost = cost
        self._clock = clock
        self._busy_cores = busy_cores or OtherPrograms().busy_cores
        self._spare_cores = (n_cores or core_count()) - max(choice.decode, choice.few, choice.many)
        self._was_shared = False
        self._look_at = float("-inf")
        self._counts = [choice.decode, choice.few, choice.many]
        # One tuner for each kind of step; None where one thread is best.
        self._tuners = tuple(ThreadTuner(counts_below(count)) if count > 1 else None for count in self._counts)

    @property
    def threads(self) -> ThreadChoice:
        """The threads of the next step, by its kind."""
        return ThreadChoice(*self._counts)

    @property
    def decoding(self) -> ThreadTuner | None:
        """The tuner of decode steps (one row); None where one thread is best."""
        return self._tuners[StepKind.DECODE]

    def observe(self, rows: int, kv: int, seconds: float) -> None:
        """Learn from a step, as ``CostModel.observe`` does, and set the threads of the next one."""
        if rows <= 0 or seconds <= 0.0:
            return
        kind = kind_of(rows)
        tuner = self._tuners[kind]
        own_time = self._cost.own_time(rows, kv)
        if tuner is None:
            self._cost.observe(rows, kv, seconds, own_time)
            return
        now, ratio = self._clock(), seconds / own_time
        if now >= self._look_at or (ratio > SUSPICIOUS and now >= self._look_at - _LOOK_SECONDS + _SOONEST_LOOK):
            self._look(now)
        count, slowdown = tuner.count, tuner.slowdown
        tuner.observe(ratio, seconds, now)
        if tuner.is_learning:
            self._cost.observe(rows, kv, seconds, own_time)
        if tuner.count != count or tuner.slowdown != slowdown:
            self._apply(kind, tuner, was_slow=slowdown != 1.0)

    def _look(self, now: float) -> None:
        """Tell the tuners whether other programs use the cores; if not, they may try all threads again."""
        self._look_at = now + _LOOK_SECONDS
        is_shared = self._busy_cores() > self._spare_cores + _FELT_CORES
        for tuner in self._tuners:
            if tuner is not None:
                tuner.is_shared = is_shared or self._was_shared
                if not tuner.is_shared and not tuner.has_all:
                    tuner.retry_soon(now)
        self._was_shared = is_shared

    def _apply(self, kind: StepKind, tuner: ThreadTuner, was_slow: bool) -> None:
        """Pass a tuner's decision on to the context, the cost model and the other tuners."""
        is_slow, now = tuner.slowdown != 1.0, self._clock()
        for other in self._tuners:
            if other is None or other is tuner:
                continue
            if is_slow and not was_slow:
                other.suggest(tuner.count, now)
            elif was_slow and not is_slow:
                other.retry_soon(now)
        self._cost.slow_down(kind, tuner.slowdown)
        counts = [one.count if one is not None else 1 for one in self._tuners]
        if counts != self._counts:
            self._counts = counts
            self._context.set_threads(*counts)


def thread_control(context: Threaded, cost: CostModel, choice: ThreadChoice, n_gpu_layers: int) -> ThreadControl | None:
    """Return the thread control of a context; None with a GPU, where threads only wait."""
    return ThreadControl(context, cost, choice) if not n_gpu_layers else None
