"""This machine as models are judged for it, looked at now and then: a look at GPUs takes half a second."""

from __future__ import annotations

import threading
import time

from app.doctor.checks import check_bandwidth, check_kernels
from app.environment.exit_codes import ExitCode
from app.fit_reports.fit_reports import CurrentMachine, current_machine
from app.jobs.pair_test.pair_test import other_work
from app.library.hub_access import LibraryError

FRESH_SECONDS = 20.0


class MachineService:
    """Remembers the last look for some seconds; may be asked from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_measuring = threading.Lock()
        self._here: CurrentMachine | None = None
        self._looked = 0.0

    def now(self) -> CurrentMachine:
        """Return this machine, as it was some seconds ago at most."""
        with self._lock:
            if self._here is None or time.monotonic() - self._looked > FRESH_SECONDS:
                self._here, self._looked = current_machine(), time.monotonic()
            return self._here

    def measure(self) -> None:
        """Measure this machine anew and remember it; raises LibraryError where that cannot be done now."""
        with self._is_measuring:
            work = other_work()
            if work is not None:
                raise LibraryError(
                    f"Slipstream is at work on {work.value}: beside it, the figures would be wrong. "
                    "Measure again when that is done.",
                    ExitCode.ERROR,
                )
            found = check_bandwidth(measure_again=True)
            if found.problem:
                raise LibraryError(f"This machine could not be measured. {found.problem}", ExitCode.ERROR)
            check_kernels(measure_again=True)
        with self._lock:
            self._here = None
