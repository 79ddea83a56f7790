"""Measures how many cores other programs keep busy."""

from __future__ import annotations

import time
from collections.abc import Callable

import psutil


def busy_seconds() -> float:
    """Return the CPU seconds of all programs, this one included, summed over all cores since the machine started."""
    times = psutil.cpu_times()
    # I/O wait is no work, and stolen time (hypervisor) does not depend on our threads. Guest time is part of user time.
    return float(times.user + times.system + getattr(times, "nice", 0.0))


def _others_seconds() -> float:
    return busy_seconds() - time.process_time()


class OtherPrograms:
    """Reads the system's CPU times, which have a resolution of hundredths of a second."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, others_seconds: Callable[[], float] = _others_seconds
    ) -> None:
        """``others_seconds`` returns the CPU seconds of other programs."""
        self._clock = clock
        self._others_seconds = others_seconds
        self._since, self._seconds = clock(), others_seconds()

    def busy_cores(self) -> float:
        """Return how many cores others have kept busy since the last call, on average."""
        now, seconds = self._clock(), self._others_seconds()
        passed = now - self._since
        busy = max(seconds - self._seconds, 0.0) / passed if passed > 0.0 else 0.0
        self._since, self._seconds = now, seconds
        return busy
