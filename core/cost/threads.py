"""The number of threads of a context: measured once, then lowered while others keep the cores busy.

Threads wait for each other hundreds of times in a step. If one thread has no core, all wait until the system schedules
it again. That can take a hundred times as long as the step, so fewer threads are then many times faster. Other programs
are noticed by slow steps. Other engines of this server tell when they begin and end, so the cores are divided at once.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from core.cost.cost_model import CostModel, StepKind, kind_of
from core.llama.context import Context
from core.machine.host import OtherPrograms, core_count

# Pressure: a fading sum of how much the latest steps exceeded _USUAL times the expected time, in expected steps. One
# slow step adds at most _MOST_OF_ONE, which is below the limit, so a single outlier changes nothing.
_FADING, _USUAL = 1.0 - 1.0 / 24.0, 1.5
_LIMIT, _MOST_OF_ONE = 10.0, 8.0
# The cost model does not learn while the pressure is above _UNCLEAR, nor from a step of more than SUSPICIOUS times the
# expected time.
_UNCLEAR, SUSPICIOUS = 3.0, 3.0
_LATEST = 8
# Steps of a trial in a search and in a probe. The slowest step is left out of the mean.
_TRIAL_STEPS, _PROBE_STEPS = 4, 12
# A step waits for cores if it is slower by this factor than fewer threads alone explain.
_CONTENDED = 1.5
# A trial wins if its steps take at most _BETTER of the time before. All threads are used again once steps take at most
# _AS_ALWAYS times the expected time.
_BETTER, _AS_ALWAYS = 0.9, 1.25
# A probe ends once it has lost the time of this many steps. Probes may cost this share of the time.
_MOST_LOST, _SHARE = 3.0, 0.03
# Back-off between trials, in seconds: short at first, since one failure may be chance, then growing by _REST_GROWTH; at
# most _FREE_REST where trials cost nothing.
_SHORTEST_REST, _REST_GROWTH, _FREE_REST = 0.1, 6.0, 2.0
_MOST_REST = 3600.0
_LEVEL_RATE = 0.1
# If fewer threads are no better, the machine itself is slower: the cost model learns from this many steps in any case.
_FREE_STEPS = 64
# The same if no other program used the cores, which can change at any time.
_FEW_FREE_STEPS = 8
_UNKNOWN = float("inf")


class _State(Enum):
    ALL = "all"
    SEARCHING = "searching"
    FEWER = "fewer"
    PROBING = "probing"


class ThreadTuner:
    """Observes the steps of one kind and chooses the threads of the next one.

    ``count`` is the number of threads. ``slowdown`` is the present step time relative to all threads on an idle
    machine, 1.0 while all threads are used. ``is_learning`` is True if the last step shows the speed of the machine
    itself, undisturbed by fewer threads or other programs. Set ``is_shared`` to whether other programs use the cores:
    if none does, they do not cause slow steps, and fewer threads would not help.
    """

    def __init__(self, counts: tuple[int, ...]) -> None:
        """``counts`` are the thread counts to choose from, ascending; the last one is best on an idle machine."""
        self.count = counts[-1]
        self.slowdown = 1.0
        self.is_learning = True
        self.is_shared = True
        self._counts = counts
        self._state = _State.ALL
        self._pressure = 0.0
        self._latest: deque[float] = deque(maxlen=_LATEST)
        self._n_free = 0
        self._due_at = self._seen_at = float("-inf")
        self._rest = _SHORTEST_REST
        self._debt = 0.0
        self._home = self.count
        self._trial: list[float] = []
        self._found: dict[int, float] = {}
        self._tries_all = True
        self._top = counts[-1]

    @property
    def has_all(self) -> bool:
        """True if all threads are used, outside of a trial."""
        return self._state is _State.ALL

    def observe(self, ratio: float, seconds: float, now: float) -> None:
        """Learn from a step of ``seconds``, ``ratio`` times those of all threads without load; ``now`` in seconds."""
        self._seen_at = now
        if self._state is not _State.ALL:
            self.is_learning = False
            if self._state is _State.FEWER:
                self._book_with_fewer(ratio, now)
                return
            self._trial.append(ratio)
            if self._state is _State.SEARCHING:
                self._search_on(now)
            else:
                self._probe_on(seconds / ratio, now)
            return
        pressure = self._pressure * _FADING + (ratio if ratio < _MOST_OF_ONE else _MOST_OF_ONE) - _USUAL
        self._pressure = pressure = pressure if pressure > 0.0 else 0.0
        self._latest.append(ratio)
        self.is_learning = pressure < _UNCLEAR and ratio < SUSPICIOUS
        if self._n_free:
            self._n_free -= 1
            self._pressure, self.is_learning = 0.0, True
        elif pressure >= _LIMIT and now >= self._due_at:
            if self.is_shared:
                self._search(self._counts[-2])
            else:
                self._pressure, self._n_free = 0.0, _FEW_FREE_STEPS

    def suggest(self, count: int, now: float) -> None:
        """Try at most ``count`` threads, because steps of another kind are faster with them."""
        lower = [own for own in self._counts if own <= count]
        if self._state is _State.ALL and lower and lower[-1] < self.count and now >= self._due_at:
            self._search(lower[-1])
            self._found = {self._home: _UNKNOWN}

    def follow(self, slowdown: float, now: float) -> None:
        """Expect the slowdown of another kind of step, if none of this kind ran lately that could show its own."""
        if self._state is _State.FEWER and now >= self._seen_at + _FREE_REST:
            if slowdown == 1.0 and self._top == self._counts[-1]:
                self._return()
            else:
                self.slowdown = max(slowdown, self._counts[-1] / self.count)

    def retry_soon(self, now: float) -> None:
        """Try all threads soon, because steps of another kind are fast with them again."""
        self._due_at = min(self._due_at, now)
        self._tries_all = True

    def limit(self, most: int | None) -> None:
        """Use and try at most ``most`` threads from now on; where the last limit held, as many as that.

        None is no limit: a user may have set more threads than there are cores.
        """
        before, self._top = self._top, max(own for own in self._counts if most is None or own <= most)
        if self._top == before:
            return
        if self._state is not _State.FEWER or self.count > self._top or self.count == before:
            if self._top == self._counts[-1]:
                self._return()
            else:
                self._stay(self._top, self._counts[-1] / self._top)

    def _book_with_fewer(self, ratio: float, now: float) -> None:
        relative = ratio / self.slowdown
        self._pressure = max(self._pressure * _FADING + min(relative, _MOST_OF_ONE) - _USUAL, 0.0)
        self._latest.append(ratio)
        self.slowdown *= 1.0 + _LEVEL_RATE * (min(relative, 2.0) - 1.0)
        if now < self._due_at:
            return
        lower = [count for count in self._counts if count < self.count]
        if self._pressure >= _LIMIT and lower:
            self._search(lower[-1])
            return
        higher = [count for count in self._counts if self.count < count <= self._top]
        if not higher:
            return
        self._begin(_State.PROBING, higher[-1] if self._tries_all else higher[0])
        self._tries_all = not self._tries_all

    def _begin(self, state: _State, count: int) -> None:
        """Try ``count`` in the next steps."""
        if self._state is not _State.SEARCHING:
            self._home = self.count
        self._state, self.count, self._trial = state, count, []

    # -- searching: downwards to the first count whose steps do not wait for cores --------------------------------

    def _search(self, first: int) -> None:
        self._found = {self.count: sum(self._latest) / max(len(self._latest), 1)}
        self._begin(_State.SEARCHING, first)

    def _search_on(self, now: float) -> None:
        bound = _CONTENDED * self._counts[-1] / self.count
        n_slow = sum([ratio > bound for ratio in self._trial])
        if n_slow < 2 and len(self._trial) < _TRIAL_STEPS:
            return
        self._found[self.count] = _mean(self._trial) if n_slow < 2 else sum(self._trial) / len(self._trial)
        lower = [count for count in self._counts if count < self.count]
        if n_slow >= 2 and lower:
            self._begin(_State.SEARCHING, lower[-1])
        else:
            self._settle(now)

    def _settle(self, now: float) -> None:
        """End the search: use the best count if it is clearly better than the count before."""
        best = min(self._found, key=lambda count: self._found[count])
        if self._found[best] <= _BETTER * self._found[self._home] and best != self._home:
            # The first probe follows soon, to see whether the load lasts.
            self._rest = _SHORTEST_REST
            self._wait(now)
            self._stay(best, self._found[best])
            return
        self._wait(now)
        if self._home == self._counts[-1]:
            # Threads are not the cause: the machine itself has this speed now.
            self._return()
            self._n_free = _FREE_STEPS
        else:
            self._stay(self._home, self._found[self._home])

    # -- probing: are more threads better again? --------------------------------------------------------------------

    def _probe_on(self, expected: float, now: float) -> None:
        n_lost = sum(self._trial) / self.slowdown - len(self._trial)
        if n_lost > _MOST_LOST:
            self._debt += n_lost * self.slowdown * expected
        elif len(self._trial) < _PROBE_STEPS:
            return
        elif self.count == self._counts[-1] and _mean(self._trial) <= max(_AS_ALWAYS, _BETTER * self.slowdown):
            self._return()
            return
        elif _mean(self._trial) <= _BETTER * self.slowdown:
            self._rest = _SHORTEST_REST
            self._wait(now)
            self._stay(self.count, _mean(self._trial))
            return
        self._wait(now)
        self._stay(self._home, self.slowdown)

    # -- what follows -------------------------------------------------------------------------------------------

    def _wait(self, now: float) -> None:
        """Set the back-off until the next trial: the more the last trials cost, the longer."""
        rest = max(self._debt / _SHARE, _FREE_REST)
        self._due_at = now + min(self._rest, rest)
        self._rest = min(_REST_GROWTH * self._rest, _MOST_REST)
        self._debt = 0.0

    def _stay(self, count: int, slowdown: float) -> None:
        self._state, self.count, self.slowdown = _State.FEWER, count, slowdown
        self._pressure = 0.0
        self._latest.clear()

    def _return(self) -> None:
        """Use all threads."""
        self._stay(self._counts[-1], 1.0)
        self._state = _State.ALL


def _mean(ratios: list[float]) -> float:
    """Return the mean without the largest."""
    return (sum(ratios) - max(ratios)) / (len(ratios) - 1)


def part_of_cores(n_engines: int, n_cores: int) -> int:
    """Return how many of the cores each of ``n_engines`` may use at the same time."""
    return max(n_cores // n_engines, 1)


def counts_below(most: int) -> tuple[int, ...]:
    """Return the counts to choose from where ``most`` threads are the best on a quiet machine, fewest first."""
    counts = {most, most - 1, most - 2}
    count = most
    while count > 1:
        count = count * 3 // 4
        counts.add(count)
    return tuple(sorted(count for count in counts if count >= 1))


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


def step_times(step: Callable[[int], None], counts: tuple[int, ...]) -> dict[int, float]:
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
# After a suspicious step or a pause it is checked again, but not before the system's counters have moved (seconds).
_SOONEST_LOOK = 0.05
# Cores are shared if other programs and our threads together use this many cores more than there are.
_FELT_CORES = 0.2


class ThreadControl:
    """Has a thread tuner for each kind of step, and lets the cost model learn from undisturbed steps only."""

    def __init__(
        self,
        context: Context,
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
        self.clock = clock
        self._busy_cores = busy_cores or OtherPrograms().busy_cores
        self._n_cores = n_cores or core_count()
        self._spare_cores = (n_cores or core_count(within_quota=False)) - max(choice.decode, choice.few, choice.many)
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
        now, ratio = self.clock(), seconds / own_time
        if now >= self._look_at or (ratio > SUSPICIOUS and now >= self._look_at - _LOOK_SECONDS + _SOONEST_LOOK):
            self._look(now)
        count, slowdown = tuner.count, tuner.slowdown
        tuner.observe(ratio, seconds, now)
        if tuner.is_learning:
            self._cost.observe(rows, kv, seconds, own_time)
        if tuner.count == count and tuner.slowdown == slowdown and not self._cost.is_slowed:
            return
        was_slow, is_slow = slowdown != 1.0, tuner.slowdown != 1.0
        for other in self._tuners:
            if other is None or other is tuner:
                continue
            if is_slow and not was_slow:
                other.suggest(tuner.count, now)
            elif was_slow and not is_slow:
                other.retry_soon(now)
            if is_slow or tuner.is_learning:
                other.follow(tuner.slowdown, now)
        self._set_counts()

    def share(self, n_engines: int) -> None:
        """Use this engine's part of the cores while ``n_engines`` compute, without waiting for steps to be slow."""
        for tuner in self._tuners:
            if tuner is not None:
                tuner.limit(part_of_cores(n_engines, self._n_cores) if n_engines > 1 else None)
        self._set_counts()

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

    def _set_counts(self) -> None:
        """Pass the tuners' decisions on to the context and the cost model."""
        self._cost.slow_down(tuple([one.slowdown if one is not None else 1.0 for one in self._tuners]))
        counts = [one.count if one is not None else 1 for one in self._tuners]
        if counts != self._counts:
            self._counts = counts
            self._context.set_threads(*counts)


class BatchThreads:
    """The threads of batches that no cost model knows: as many as other programs leave cores."""

    def __init__(
        self,
        n_threads: int,
        clock: Callable[[], float] = time.perf_counter,
        busy_cores: Callable[[], float] | None = None,
        n_cores: int | None = None,
    ) -> None:
        """``n_threads`` are best on an idle machine; the rest as for ``ThreadControl``."""
        self._n_threads = self._n_left = self._n_shared = n_threads
        self._clock, self._busy_cores = clock, busy_cores or OtherPrograms().busy_cores
        self._n_cores, self._n_open = n_cores or core_count(), n_cores or core_count(within_quota=False)
        self._look_at = clock() + _LOOK_SECONDS

    @property
    def count(self) -> int:
        """The threads of the next batch."""
        if (now := self._clock()) >= self._look_at:
            # After a pause this look tells what others did meanwhile, and the next one what they do now.
            had_paused = now > self._look_at + _LOOK_SECONDS
            self._look_at = now + (_SOONEST_LOOK if had_paused else _LOOK_SECONDS)
            busy = self._busy_cores()
            # Where others compute nothing, a user may have set more threads than there are cores.
            self._n_left = max(1, round(self._n_open - busy)) if round(busy) else self._n_threads
        return min(self._n_threads, self._n_left, self._n_shared)

    def share(self, n_engines: int) -> None:
        """Use this engine's part of the cores while ``n_engines`` compute."""
        self._n_shared = part_of_cores(n_engines, self._n_cores) if n_engines > 1 else self._n_threads


def thread_control(context: Context, cost: CostModel, choice: ThreadChoice, n_gpu_layers: int) -> ThreadControl | None:
    """Return the thread control of a context; None with a GPU, where threads only wait."""
    return ThreadControl(context, cost, choice) if not n_gpu_layers else None
