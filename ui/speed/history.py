"""The speeds of the last minutes. No Qt here."""

from __future__ import annotations

from collections import deque

from core.values.messages import Snapshot
from ui.client.api import ServerState

SECONDS = 180.0
_STEP = 1.0  # seconds, as rates are of the last one; what comes within a step counts as one point, its highest


class History:
    """Points of time, tokens per second and bytes per second; the oldest are forgotten."""

    def __init__(self) -> None:
        self._looked = 0.0  # when the window was told a state last
        self._points: deque[tuple[float, float, float]] = deque(maxlen=round(SECONDS / _STEP) + 1)

    def add_state(self, now: float, state: ServerState, seen: Snapshot | None) -> None:
        """Take in what was seen: a reply that has ended since the last time there where it ran, else now."""
        since, self._looked = self._looked - _STEP, now
        live = [at for at, (time, rate, _) in enumerate(self._points) if rate > 0 and time > since]
        if live and seen is not None and seen is state.last_reply:
            self._raise(live[-1], seen.decode_rate, seen.bytes_per_second)
            seen = None
        self.add(now, seen)

    def add(self, now: float, seen: Snapshot | None = None) -> None:
        """Take in figures, or that nothing runs, which counts as 0; ``now`` is in seconds on any clock that goes on."""
        rate, n_bytes = (seen.decode_rate, seen.bytes_per_second) if seen is not None else (0.0, 0.0)
        if self._points and now - self._points[-1][0] < _STEP:
            self._raise(-1, rate, n_bytes)
        else:
            self._points.append((now, rate, n_bytes))

    def _raise(self, at: int, rate: float, n_bytes: float) -> None:
        time, before_rate, before_bytes = self._points[at]
        self._points[at] = time, max(rate, before_rate), max(n_bytes, before_bytes)

    def lines(self, now: float) -> tuple[list[float], list[float], list[float]]:
        """Return what is not older than they show at ``now``: times, tokens per second and gigabytes per second."""
        points = [point for point in self._points if now - point[0] <= SECONDS]
        return [at for at, _, _ in points], [rate for _, rate, _ in points], [n / 1e9 for _, _, n in points]
