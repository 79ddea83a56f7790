"""Chooses the threads of one kind of step: fewer while other programs keep the cores busy. Pure.

Threads wait for each other hundreds of times in a step. If one thread has no core, all wait until the system schedules
it again. That can take a hundred times as long as the step, so fewer threads are then many times faster.
"""

from __future__ import annotations

from collections import deque
from enum import Enum

# Pressure: a fading sum of how much the latest steps exceeded _USUAL times the expected time, in expected steps. One
# slow step adds at most _MOST_OF_ONE, which is below the limit, so a single outlier changes nothing. The higher limit
# applies after fewer threads turned out to be unnecessary at the first probe.
_FADING, _USUAL = 1.0 - 1.0 / 24.0, 1.5
_LIMIT, _HIGHER_LIMIT, _MOST_OF_ONE = 10.0, 20.0, 8.0
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
        self._pressure, self._limit = 0.0, _LIMIT
        self._latest: deque[float] = deque(maxlen=_LATEST)
        self._n_free = 0
        self._due_at = float("-inf")
        self._rest = _SHORTEST_REST
        self._debt = 0.0
        self._slowdown_before = 0.0
        self._won_since = 0.0
        self._home = self.count
        self._trial: list[float] = []
        self._found: dict[int, float] = {}
        self._tries_all = True
        self._n_probes = 0

    @property
    def has_all(self) -> bool:
        """True if all threads are used, outside of a trial."""
        return self._state is _State.ALL

    def observe(self, ratio: float, seconds: float, now: float) -> None:
        """Learn from a step of ``seconds``, which is ``ratio`` times the expected time of all threads without load.

        ``now`` is on any clock that counts seconds.
        """
        if self._state is not _State.ALL:
            self.is_learning = False
            self._book_trial_or_fewer(ratio, seconds, now)
            return
        pressure = self._pressure * _FADING + (ratio if ratio < _MOST_OF_ONE else _MOST_OF_ONE) - _USUAL
        self._pressure = pressure = pressure if pressure > 0.0 else 0.0
        self._latest.append(ratio)
        self.is_learning = pressure < _UNCLEAR and ratio < SUSPICIOUS
        if self._slowdown_before:
            self._won_since += seconds * (self._slowdown_before / ratio - 1.0)
        if self._n_free:
            self._n_free -= 1
            self._pressure, self.is_learning = 0.0, True
        elif pressure >= self._limit and now >= self._due_at:
            if self.is_shared:
                self._debt = max(-self._won_since, 0.0)
                self._search(self._counts[-2])
            else:
                self._pressure, self._n_free = 0.0, _FEW_FREE_STEPS

    def suggest(self, count: int, now: float) -> None:
        """Try at most ``count`` threads, because steps of another kind are faster with them."""
        lower = [own for own in self._counts if own <= count]
        if self._state is _State.ALL and lower and lower[-1] < self.count and now >= self._due_at:
            self._search(lower[-1])
            self._found = {self._home: _UNKNOWN}

    def retry_soon(self, now: float) -> None:
        """Try all threads soon, because steps of another kind are fast with them again."""
        self._due_at = min(self._due_at, now)
        self._tries_all = True

    def _book_trial_or_fewer(self, ratio: float, seconds: float, now: float) -> None:
        if self._state is _State.FEWER:
            self._book_with_fewer(ratio, now)
            return
        self._trial.append(ratio)
        if self._state is _State.SEARCHING:
            self._search_on(now)
        else:
            self._probe_on(seconds / ratio, now)

    def _book_with_fewer(self, ratio: float, now: float) -> None:
        relative = ratio / self.slowdown
        self._pressure = max(self._pressure * _FADING + min(relative, _MOST_OF_ONE) - _USUAL, 0.0)
        self._latest.append(ratio)
        self.slowdown *= 1.0 + _LEVEL_RATE * (min(relative, 2.0) - 1.0)
        if now < self._due_at:
            return
        lower = [count for count in self._counts if count < self.count]
        if self._pressure >= self._limit and lower:
            self._search(lower[-1])
            return
        higher = next(count for count in self._counts if count > self.count)
        self._n_probes += 1
        self._begin(_State.PROBING, self._counts[-1] if self._tries_all else higher)
        self._tries_all = not self._tries_all

    def _begin(self, state: _State, count: int) -> None:
        """Try ``count`` in the next steps."""
        if self._state is not _State.SEARCHING:
            self._home = self.count
        self._state, self.count, self._trial = state, count, []

    # -- searching: downwards to the first count whose steps do not wait for cores --------------------------------

    def _search(self, first: int) -> None:
        self._n_probes = 0
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
            # The first probe follows soon, to see whether the load lasts. A return to fewer threads after a costly
            # return to all threads keeps its longer back-off.
            if not self._debt:
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
            self._limit = _LIMIT
        elif len(self._trial) < _PROBE_STEPS:
            return
        elif self.count == self._counts[-1] and _mean(self._trial) <= max(_AS_ALWAYS, _BETTER * self.slowdown):
            slowdown = self.slowdown
            self._return()
            self._limit = _HIGHER_LIMIT if self._n_probes == 1 else _LIMIT
            self._slowdown_before = slowdown
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
        self._state, self.count, self.slowdown = _State.ALL, self._counts[-1], 1.0
        self._pressure = self._won_since = self._slowdown_before = 0.0
        self._latest.clear()


def _mean(ratios: list[float]) -> float:
    """Return the mean without the largest."""
    return (sum(ratios) - max(ratios)) / (len(ratios) - 1)


def counts_below(most: int) -> tuple[int, ...]:
    """Return the counts to choose from where ``most`` threads are the best on a quiet machine, fewest first."""
    counts = {most, most - 1, most - 2}
    count = most
    while count > 1:
        count = count * 3 // 4
        counts.add(count)
    return tuple(sorted(count for count in counts if count >= 1))
