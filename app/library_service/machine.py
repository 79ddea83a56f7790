"""This machine as models are judged for it, looked at now and then: a look at GPUs takes half a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from app.doctor.checks import check_bandwidth, check_gpus, check_kernels
from app.environment.exit_codes import ExitCode
from app.environment.paths import cache_folder
from app.fit_reports.fit_reports import CurrentMachine, current_machine
from app.jobs.pair_test.pair_test import other_work
from app.library.errors import LibraryError
from app.library_service.outbox import Stop
from core.machine.bandwidth import MeasuringStopped, remembered
from core.machine.host import OtherPrograms, core_count, cpu_name, others_are_busy, this_machine
from core.machine.known_machine import remembered_probe
from models.estimate.speed.machine import highest_rate
from models.library.values import GpuFacts, MachineFacts

FRESH_SECONDS = 20.0  # free memory changes slowly enough
_QUIET_SECONDS = 15.0  # without replies, and with most of the cores at rest
# At most this long until a measurement that failed is tried again. It uses all cores for ten seconds.
_MOST_SECONDS = 3600.0


class MachineService:
    """Remembers the last look for some seconds; may be asked from any thread.

    ``measured`` is called when something was measured later than it was asked for.
    """

    def __init__(self, measured: Callable[[], None] = lambda: None) -> None:
        self._measured = measured
        self._lock = threading.Lock()
        self._is_measuring = threading.Lock()
        self._is_asked = threading.Event()  # a measurement that somebody waits for goes before what is left for later
        self._here: CurrentMachine | None = None
        self._looked = 0.0
        self._rest: threading.Thread | None = None

    def now(self) -> CurrentMachine:
        """Return this machine, as it was some seconds ago at most."""
        with self._lock:
            if self._here is None or time.monotonic() - self._looked > FRESH_SECONDS:
                self._here, self._looked = current_machine(), time.monotonic()
            return self._here

    def facts(self) -> MachineFacts:
        """Return what this machine has, and what is known of its speed."""
        host, gpus = self.now().machine.devices[0], self.now().machine.devices[1:]
        known = remembered(cache_folder(), this_machine())
        return MachineFacts(
            cpu_name(),
            core_count(),
            host.total,
            host.free,
            tuple(GpuFacts(gpu.name, gpu.total, highest_rate(gpu)) for gpu in gpus if gpu.lent is None),
            host.bandwidth,
            is_estimate=known is not None and known.is_estimate,
        )

    def measure(self, stop: Stop, *, is_first: bool = False) -> None:
        """Measure this machine anew and remember it; raises LibraryError where that cannot be done now.

        It ends within about half a second of ``stop``, and what is known by then counts.

        ``is_first`` measures only what takes a few seconds, unless that is known: how fast memory is, also that of
        GPUs. The rest follows on a thread when nothing else is at work; so does what others have disturbed.
        """
        self._is_asked.set()
        with self._is_measuring:
            self._is_asked.clear()
            self._end_where_stopped(stop)
            check_is_at_rest()
            found = check_bandwidth(measure_again=not is_first, should_stop=stop.is_set)
            self._end_where_stopped(stop)
            if found.problem:
                raise LibraryError(
                    "This machine could not be measured. {problem}", ExitCode.ERROR, problem=found.problem
                )
            is_estimate = found.is_estimate
            if is_first and self.now().machine.gpus:
                check_gpus(stop.is_set)
                self._end_where_stopped(stop)
            if not is_first:
                kernels = check_kernels(measure_again=True, should_stop=stop.is_set)
                self._end_where_stopped(stop)
                is_estimate |= kernels is not None and kernels.is_estimate
            if is_first or is_estimate:
                self._measure_later(found.is_estimate)
        self._forget()

    def complete(self) -> None:
        """Measure later what an update of the program has made unknown.

        A machine that was never measured is left alone: its first measurement is for the user to see.
        """
        with self._is_measuring:
            folder, machine = cache_folder(), this_machine()
            known = remembered(folder, machine)
            probe = remembered_probe(folder, machine)
            if known is not None and (probe is None or probe.is_partial):
                self._measure_later(known.is_estimate)

    def _measure_later(self, is_estimate: bool) -> None:
        if self._rest is None or not self._rest.is_alive():
            self._rest = threading.Thread(target=self._measure_rest, args=(is_estimate,), daemon=True)
            self._rest.start()

    def _end_where_stopped(self, stop: Stop) -> None:
        if stop.is_set():
            self._forget()
            raise LibraryError(MeasuringStopped().message, ExitCode.ERROR)

    def _measure_rest(self, is_estimate: bool) -> None:
        """Measure how fast the processor is at each kind of weights, as soon as nobody would notice.

        What there is only an estimate of is measured again.
        """
        others, seconds = OtherPrograms(), _QUIET_SECONDS
        while True:
            others.busy_cores()
            time.sleep(seconds)
            if other_work() is not None or others_are_busy(others):
                continue
            with self._is_measuring:
                if is_estimate:
                    is_estimate = check_bandwidth(should_stop=self._is_asked.is_set).is_estimate
                kernels = None if is_estimate else check_kernels(should_stop=self._is_wanted)
            if kernels is not None and not kernels.is_estimate:
                break
            seconds = min(2 * seconds, _MOST_SECONDS)
        self._forget()
        self._measured()

    def _is_wanted(self) -> bool:
        """Whether somebody has something else to do on this machine."""
        return self._is_asked.is_set() or other_work() is not None

    def _forget(self) -> None:
        with self._lock:
            self._here = None


def check_is_at_rest() -> None:
    """Raise LibraryError while a server of this machine is at work: what is measured beside it would be wrong."""
    work = other_work()
    if work is not None:
        raise LibraryError(work.why_not_now, ExitCode.ERROR)
