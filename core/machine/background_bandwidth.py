"""Measures the memory bandwidth while the machine is idle, for the gauge that shows a share of it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from core.machine.bandwidth import Bandwidth, measure, remember
from core.machine.host import this_machine
from core.machine.measurements import others_are_busy
from core.machine.other_programs import OtherPrograms, busy_seconds
from core.values.errors import SlipstreamError
from models.estimate.fit.memory import free_memory

_log = logging.getLogger(__name__)
_QUIET_SECONDS = 3.0
_MEASURE_SECONDS = 0.5


class ActivitySource(Protocol):
    """The activity of this process's engines."""

    @property
    def is_idle(self) -> bool:
        """True while they do nothing."""

    @property
    def activity_count(self) -> int:
        """A count that grows whenever they do something."""


class BackgroundBandwidth:
    """Waits until the engines and the cores are idle, measures once, and keeps the result."""

    def __init__(
        self,
        engines: ActivitySource,
        folder: Path,
        found: Callable[[float], None],
        *,
        quiet: float = _QUIET_SECONDS,
        take: Callable[[], Bandwidth] = lambda: measure(this_machine(), free_memory(), seconds=_MEASURE_SECONDS),
    ) -> None:
        """``found`` is called with bytes per second on this object's thread; ``folder`` keeps the result."""
        self._engines = engines
        self._folder = folder
        self._found = found
        self._quiet = quiet
        self._take = take
        self._rivals = OtherPrograms()
        # Includes this process, since it may be writing a cache to disk or compiling a grammar.
        self._everybody = OtherPrograms(others_seconds=busy_seconds)

    def start(self) -> None:
        """Start the thread."""
        threading.Thread(target=self._work, name="peak-finder", daemon=True).start()

    def _work(self) -> None:
        try:
            while (bandwidth := self._try()) is None:
                pass
            self._found(bandwidth.bytes_per_second)
            remember(self._folder, bandwidth)
        except (SlipstreamError, MemoryError, OSError) as error:
            _log.info("The memory bandwidth could not be measured or kept: %s", error)

    def _try(self) -> Bandwidth | None:
        """Return an undisturbed measurement, or None."""
        n_before = self._engines.activity_count
        self._everybody.busy_cores()
        time.sleep(self._quiet)
        if not self._is_quiet(n_before) or others_are_busy(self._everybody):
            return None
        self._rivals.busy_cores()
        bandwidth = self._take()
        return bandwidth if self._is_quiet(n_before) and not others_are_busy(self._rivals) else None

    def _is_quiet(self, n_before: int) -> bool:
        return self._engines.is_idle and self._engines.activity_count == n_before
