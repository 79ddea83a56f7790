"""Measures and keeps this machine's memory read bandwidth, the upper limit of every decode step.

Decoding reads weights, so reads are measured (a copy would count writes as well). The working set is much larger than
the caches: a smaller one would measure the caches.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from core.machine.host import Host, OtherPrograms, busy_seconds, others_are_busy, this_machine
from core.values.errors import SlipstreamError
from models.estimate.fit.memory import free_memory
from models.files.disk import read_value, write_whole
from models.formatting.sentence import Sentence

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Words = NDArray[np.uint64]

FILE_NAME = "bandwidth.json"
# Bytes of the working set: an eighth of the free memory within these bounds, far above any cache.
LARGEST_SET = 1 << 30
SMALLEST_SET = 64 << 20
_SHARE_OF_FREE = 8
# Passes over it at least, however slow the machine.
_MIN_PASSES = 3
# Memory that is written between two looks at whether to stop.
_PIECE = 64 << 20


class TooLittleMemory(SlipstreamError):
    """A measurement would not leave enough memory for other programs."""


class MeasuringStopped(SlipstreamError):
    """The user stopped a measurement."""

    def __init__(self) -> None:
        super().__init__(Sentence("The measurement was stopped. What was measured before still counts."))


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """Bytes read per second with the best number of threads, over ``n_bytes`` of memory, on a machine with this CPU.

    ``is_estimate``: other programs were busy meanwhile, so memory may be faster.
    """

    bytes_per_second: float
    n_threads: int
    n_bytes: int
    cpu: str
    ram: int
    is_estimate: bool


def measure(
    machine: Host,
    free: int,
    *,
    seconds: float = 1.5,
    clock: Callable[[], float] = time.perf_counter,
    should_stop: Callable[[], bool] = lambda: False,
) -> Bandwidth:
    """Measure for about ``seconds`` (and some more to fill the memory); ``free`` is free memory in bytes.

    Raises TooLittleMemory, and MeasuringStopped soon after ``should_stop`` returns True. The best of several passes is
    taken; if other programs were busy, it is an estimate.
    """
    others = OtherPrograms()
    words = _filled(working_set(free) // 8, should_stop)
    counts = thread_counts(machine.n_threads)
    rates = {count: _best_rate(words, count, seconds / len(counts), clock, should_stop) for count in counts}
    best = max(rates, key=rates.__getitem__)
    return Bandwidth(rates[best], best, words.nbytes, machine.cpu, machine.ram, is_estimate=others_are_busy(others))


def working_set(free: int) -> int:
    """Return how many bytes to read: 1 GiB, or an eighth of the free memory if that is less."""
    n_bytes = min(LARGEST_SET, free // _SHARE_OF_FREE)
    if n_bytes < SMALLEST_SET:
        raise TooLittleMemory(
            "Only {free:size} of memory is free: too little to measure its bandwidth. Close other programs.", free=free
        )
    return n_bytes


def thread_counts(n_threads: int) -> tuple[int, ...]:
    """Return the numbers of threads to try: powers of two, and all."""
    powers = (1 << bit for bit in range(n_threads.bit_length()))
    return tuple(sorted({*powers, n_threads}))


def read_pass(words: Words, n_threads: int, pool: ThreadPoolExecutor) -> int:
    """Read all of ``words`` once with ``n_threads`` threads; return how many bytes were read."""
    import numpy as np

    edges = [len(words) * part // n_threads for part in range(n_threads + 1)]
    slices = [words[low:high] for low, high in pairwise(edges)]
    # numpy releases the GIL, so the threads run in parallel.
    list(pool.map(np.add.reduce, slices))
    return sum(part.nbytes for part in slices)


def remembered(folder: Path, machine: Host | Bandwidth) -> Bandwidth | None:
    """Return the kept measurement of this machine, or None."""
    known: Bandwidth | None = read_value(Bandwidth, folder / FILE_NAME)
    is_here = known is not None and (known.cpu, known.ram) == (machine.cpu, machine.ram)
    return known if known is not None and known.bytes_per_second > 0 and is_here else None


def remember(folder: Path, found: Bandwidth) -> Bandwidth:
    """Keep a measurement, and return what is kept: an estimate replaces only a lower one. Raises OSError."""
    known = remembered(folder, found) if found.is_estimate else None
    if known is not None and not (known.is_estimate and known.bytes_per_second < found.bytes_per_second):
        return known
    write_whole(folder / FILE_NAME, json.dumps(asdict(found)))
    return found


def raise_remembered(folder: Path, machine: Host, reached: float) -> None:
    """Raise the kept measurement, if any, to the bytes per second that a reply has reached. Raises OSError."""
    known = remembered(folder, machine)
    if known is not None and reached > known.bytes_per_second:
        remember(folder, replace(known, bytes_per_second=reached))


def _best_rate(
    words: Words, n_threads: int, seconds: float, clock: Callable[[], float], should_stop: Callable[[], bool]
) -> float:
    best, n_passes, end = 0.0, 0, clock() + seconds
    with ThreadPoolExecutor(n_threads) as pool:
        while n_passes < _MIN_PASSES or clock() < end:
            if should_stop():
                raise MeasuringStopped
            start = clock()
            n_bytes = read_pass(words, n_threads, pool)
            best = max(best, n_bytes / max(clock() - start, 1e-9))
            n_passes += 1
    return best


def _filled(n_words: int, should_stop: Callable[[], bool]) -> Words:
    import numpy as np

    words = np.empty(n_words, dtype=np.uint64)
    # Memory that was never written is one shared page of zeros, so it would be read from cache.
    for begin in range(0, n_words, _PIECE // 8):
        if should_stop():
            raise MeasuringStopped
        words[begin : begin + _PIECE // 8] = 1
    return words


_log = logging.getLogger(__name__)
# Seconds without work before a measurement in the background, and its length.
_QUIET_SECONDS = 3.0
_MEASURE_SECONDS = 0.5


def measure_when_idle(
    activity: Callable[[], int | None],
    folder: Path,
    found: Callable[[float], None],
    *,
    quiet: float = _QUIET_SECONDS,
    take: Callable[[], Bandwidth] = lambda: measure(this_machine(), free_memory(), seconds=_MEASURE_SECONDS),
) -> None:
    """Wait until the engines and the cores are idle, measure, and keep the bytes per second, which ``found`` gets.

    ``activity`` returns a count that grows whenever the engines do something, None while they do.
    """
    # Includes this process, since it may be writing a cache to disk or compiling a grammar.
    everybody = OtherPrograms(others_seconds=busy_seconds)
    try:
        while True:
            before = activity()
            everybody.busy_cores()
            time.sleep(quiet)
            if before is None or activity() != before or others_are_busy(everybody):
                continue
            bandwidth = take()
            if activity() == before and not bandwidth.is_estimate:
                break
        found(bandwidth.bytes_per_second)
        remember(folder, bandwidth)
    except (SlipstreamError, MemoryError, OSError) as error:
        _log.info("The memory bandwidth could not be measured or kept: %s", error)
