"""What steps without drafts really took: what drafting is compared with where a speed-up is shown. Pure."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from statistics import fmean

# So many of one width say what a step takes now: with fewer, one that was slow by chance decides.
_FEWEST = 3
# After so many steps of one width that could have drafts, one has none; sooner once one was seen, but too few.
_CONTROL_STEPS, _FIRST_STEPS = 40, 8
# The latest of one width that count. At the controls' pace (one in 40 steps) they go back some seconds.
_KEPT = 12
# Of those, such a share is left out at each end: a step that met a pause of the machine takes many times as long.
_LEFT_OUT = 0.17
# Where the machine has changed, steps that differ from the new estimate by more than this factor are of the old one.
_FAR = 1.4


class PlainSteps:
    """The seconds of the latest plain steps, by their width: how many sequences got a token each.

    Unlike the cost model, it holds nothing but what was seen, so it says nothing where too little was.
    """

    def __init__(self, time: Callable[[int, int], float]) -> None:
        """``time`` predicts the seconds of a step of so many rows and KV tokens; only to compare depths."""
        self._time = time
        self._seen: dict[int, deque[tuple[int, float, float]]] = {}
        # Steps since the last one.
        self._waited: dict[int, int] = {}
        # What they come to in an empty cache, where nothing was seen since that was asked.
        self._levels: dict[int, float | None] = {}

    def saw(self, rows: int, kv: int, seconds: float, decode: float) -> None:
        """A plain step of ``rows`` sequences, which attended to ``kv`` tokens altogether, took ``seconds``.

        Of them, ``decode`` went into the model's own decode. What is no time (0, less, or not a number) says nothing.
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
        """Return whether the next step should be a plain one; to be asked before each of ``rows`` sequences."""
        waited = self._waited.get(rows, 0) + 1
        seen = self._seen.get(rows)
        n_late = waited - (_CONTROL_STEPS if seen is None or len(seen) >= _FEWEST else _FIRST_STEPS)
        # The first one may still have to replay what a rejected draft has lost. Then the second is plain.
        self._waited[rows] = waited if n_late < 2 else 0
        return n_late > 0

    def seconds(self, rows: int, kv: int) -> float | None:
        """Return what such a step takes by those that were seen; None where too few were."""
        if rows not in self._levels:
            self._levels[rows] = self._level(rows)
        level = self._levels[rows]
        return None if level is None else level * self._time(rows, kv) / self._time(rows, 0)

    def drop_outdated(self) -> None:
        """The machine is another one than it was, or was believed to be: what is far from that holds no longer."""
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
