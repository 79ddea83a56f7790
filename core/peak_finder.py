"""Measures this machine's memory bandwidth in a quiet moment, for the gauge that shows a share of it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from core.bandwidth import Bandwidth, measure, remember
from core.errors import SlipstreamError
from core.machine import this_machine
from core.measurements import are_disturbing
from core.rivals import Rivals
from models.memory import free_memory

_log = logging.getLogger(__name__)
_QUIET_SECONDS = 3.0
_MEASURE_SECONDS = 0.5


class Watched(Protocol):
    """What is asked of an engine."""

    @property
    def is_idle(self) -> bool:
        """True where it does nothing."""

    @property
    def n_steps(self) -> int:
        """Steps made so far."""


class PeakFinder:
    """Waits until an engine and the cores have nothing to do, measures once, and remembers the result."""

    def __init__(
        self,
        engine: Watched,
        folder: Path,
        found: Callable[[float], None],
        *,
        quiet: float = _QUIET_SECONDS,
        take: Callable[[], Bandwidth] = lambda: measure(this_machine(), free_memory(), seconds=_MEASURE_SECONDS),
    ) -> None:
        """``found`` gets bytes per second, on a thread of this object's own; ``folder`` keeps them for next time."""
        self._engine = engine
        self._folder = folder
        self._found = found
        self._quiet = quiet
        self._take = take
        self._rivals = Rivals()

    def start(self) -> None:
        """Begin to wait."""
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
        """Return a measurement that nothing disturbed, or None."""
        n_steps = self._engine.n_steps
        self._rivals.busy_cores()
        time.sleep(self._quiet)
        if not self._is_quiet(n_steps) or are_disturbing(self._rivals):
            return None
        bandwidth = self._take()
        return bandwidth if self._is_quiet(n_steps) and not are_disturbing(self._rivals) else None

    def _is_quiet(self, n_steps: int) -> bool:
        return self._engine.is_idle and self._engine.n_steps == n_steps
