"""Sets the threads of one context before each step, by what its steps took."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from core.cost_model import CostModel
from core.governor import Governor, counts_below
from core.thread_choice import StepKind, ThreadChoice, kind_of


class Threaded(Protocol):
    """A context, as far as it computes with threads."""

    def set_threads(self, decode: int, few: int, many: int) -> None:
        """Set the threads of steps of one row, of a few, and of many."""


class ThreadControl:
    """Has a governor for each kind of step, and keeps apart what a cost model may learn from and what it may not."""

    def __init__(
        self,
        context: Threaded,
        cost: CostModel,
        choice: ThreadChoice,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """``cost`` is that of ``context`` with the threads ``choice``, which are the best on a quiet machine."""
        self._context = context
        self._cost = cost
        self._clock = clock
        self._counts = [choice.decode, choice.few, choice.many]
        # By the kind of step; None where one thread is the best.
        self._governors = tuple(Governor(counts_below(count)) if count > 1 else None for count in self._counts)

    @property
    def threads(self) -> ThreadChoice:
        """The threads of the next step, by its kind."""
        return ThreadChoice(*self._counts)

    @property
    def decoding(self) -> Governor | None:
        """The governor of steps of one row; None where one thread is the best."""
        return self._governors[StepKind.DECODE]

    def observe(self, rows: int, kv: int, seconds: float) -> None:
        """Learn from a step of the context, as ``CostModel.observe``, and choose the threads of the next one."""
        if rows <= 0 or seconds <= 0.0:
            return
        kind = kind_of(rows)
        governor = self._governors[kind]
        own_time = self._cost.own_time(rows, kv)
        if governor is None:
            self._cost.observe(rows, kv, seconds, own_time)
            return
        count, slowdown = governor.count, governor.slowdown
        governor.book(seconds / own_time, seconds, self._clock())
        if governor.is_learning:
            self._cost.observe(rows, kv, seconds, own_time)
        if governor.count != count or governor.slowdown != slowdown:
            self._apply(kind, governor, was_slow=slowdown != 1.0)

    def _apply(self, kind: StepKind, governor: Governor, was_slow: bool) -> None:
        """Let context, cost model and the other kinds of steps know what was decided for one kind."""
        is_slow, now = governor.slowdown != 1.0, self._clock()
        for other in self._governors:
            if other is None or other is governor:
                continue
            if is_slow and not was_slow:
                other.alert(governor.count, now)
            elif was_slow and not is_slow:
                other.hope(now)
        self._cost.slow_down(kind, governor.slowdown)
        counts = [one.count if one is not None else 1 for one in self._governors]
        if counts != self._counts:
            self._counts = counts
            self._context.set_threads(*counts)


def thread_control(context: Threaded, cost: CostModel, choice: ThreadChoice, n_gpu_layers: int) -> ThreadControl | None:
    """Return what controls a context's threads; None where a GPU computes, for which threads only wait."""
    return ThreadControl(context, cost, choice) if not n_gpu_layers else None
