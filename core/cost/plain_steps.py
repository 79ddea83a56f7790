"""Observed times of steps without drafts: the baseline of the speed-up that is shown. Pure."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from statistics import fmean

# Steps of one width that are needed for an estimate: with fewer, one slow step would decide it.
_FEWEST = 3
# One in _CONTROL_STEPS steps of a width that could have drafts is run without, as a control. The interval is shorter
# while a width has some plain steps, but fewer than _FEWEST.
_CONTROL_STEPS, _FIRST_STEPS = 40, 8
# Latest plain steps that count, for each width. At one in 40 steps they go back some seconds.
_KEPT = 12
# Share of them that is left out at each end: a step that was interrupted takes many times as long.
_LEFT_OUT = 0.17
# After the machine's speed has changed, steps that differ from the new estimate by more than this factor are outdated.
_FAR = 1.4


class PlainSteps:
    """The seconds of the latest plain steps by width, which is the number of sequences in the step.

    Unlike the cost model it holds observations only, so it returns None where there are too few.
    """

    def __init__(self, time: Callable[[int, int], float]) -> None:
        """``time`` predicts seconds from rows and KV tokens; used only to convert between context lengths."""
        self._time = time
        self._seen: dict[int, deque[tuple[int, float, float]]] = {}
        # Steps since the last plain one, by width.
        self._waited: dict[int, int] = {}
        # Cached estimates for an empty KV cache, by width.
        self._levels: dict[int, float | None] = {}

    def saw(self, rows: int, kv: int, seconds: float, decode: float) -> None:
        """Record that a plain step of ``rows`` sequences, which attended to ``kv`` tokens in total, took ``seconds``.

        ``decode`` of these seconds is the model's own decode. Values that are not positive finite numbers are ignored.
        """
        if rows <= 0 or not 0.0 < seconds < math.inf:
            return
        seen = self._seen.get(rows)
        if seen is None:
            seen = self._seen[rows] = deque(maxlen=_KEPT)
        seen.append((kv, seconds, decode))
        self._levels.pop(rows, None)
        self._waited[rows] = 0

    def is_due(self, rows: int) -> bool:
        """Return whether the next step of ``rows`` sequences should be plain; call it once before each such step."""
        waited = self._waited.get(rows, 0) + 1
        seen = self._seen.get(rows)
        n_late = waited - (_CONTROL_STEPS if seen is None or len(seen) >= _FEWEST else _FIRST_STEPS)
        # The first step may still have to recompute what a rejected draft has dropped. Then the second one is plain.
        self._waited[rows] = waited if n_late < 2 else 0
        return n_late > 0

    def seconds(self, rows: int, kv: int) -> float | None:
        """Return the seconds of a plain step, from observed ones; None where there are too few."""
        if rows not in self._levels:
            self._levels[rows] = self._level(rows)
        level = self._levels[rows]
        return None if level is None else level * self._time(rows, kv) / self._time(rows, 0)

    def drop_outdated(self) -> None:
        """Drop the steps that are far from the present estimate, after the machine's speed has changed."""
        self._levels.clear()
        for rows, seen in self._seen.items():
            near = [one for one in seen if 1 / _FAR < one[2] / self._time(rows, one[0]) < _FAR]
            self._seen[rows] = deque(near, maxlen=_KEPT)

    def _level(self, rows: int) -> float | None:
        seen = self._seen.get(rows, ())
        if len(seen) < _FEWEST:
            return None
        empty, n_out = self._time(rows, 0), round(_LEFT_OUT * len(seen))
        levels = sorted([seconds * empty / self._time(rows, kv) for kv, seconds, _ in seen])
        return fmean(levels[n_out : len(levels) - n_out])
