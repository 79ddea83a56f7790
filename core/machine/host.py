"""This machine: its processor, cores and memory, and how busy other programs keep it."""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from models.estimate.fit.control_groups import CGROUP_MEMBERSHIP, CGROUP_MOUNT, cgroup_folders

_CPU_INFO = Path("/proc/cpuinfo")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
# Bytes of a typical last-level cache, if the system does not say.
_USUAL_CACHE = 16 << 20
# The first of these keys in /proc/cpuinfo gives the processor's name: x86, then ARM boards, then others.
_NAME_KEYS = ("model name", "Model", "Hardware", "cpu model", "uarch")


@dataclass(frozen=True, slots=True)
class Host:
    """The processor's name, the physical cores and hardware threads that this process may use, bytes of memory."""

    cpu: str
    n_cores: int
    n_threads: int
    ram: int


def this_machine() -> Host:
    """Return the facts about this machine, from the system."""
    return Host(cpu_name(), core_count(), _usable_threads(), psutil.virtual_memory().total)


def core_count(*, within_quota: bool = True) -> int:
    """Return the number of physical cores that this process may use.

    ``within_quota`` False does not count the time that its control group may take of them: so many are open to it, and
    other programs may compute on those that it leaves.
    """
    n_threads = _usable_threads(within_quota=within_quota)
    return min(psutil.cpu_count(logical=False) or n_threads, n_threads)


def cpu_quota(membership: Path = CGROUP_MEMBERSHIP, mount: Path = CGROUP_MOUNT) -> float | None:
    """Return how many cores' time this process may take, as in a container with a limit; None if there is no limit.

    With more threads than that, Linux stops all of them for a part of each tenth of a second. Still the number of
    threads is rounded up, since one less would leave a part of the limit unused.
    """
    quotas = (_quota_in(folder) for folder in cgroup_folders(membership, mount, "cpu"))
    return min((quota for quota in quotas if quota is not None), default=None)


def _quota_in(folder: Path) -> float | None:
    """Return the limit of one control group; version 2 has it in one file, version 1 in two."""
    both, each = folder / "cpu.max", (folder / "cpu.cfs_quota_us", folder / "cpu.cfs_period_us")
    try:
        files = (both,) if both.exists() else each
        quota, period = map(int, " ".join(file.read_text(encoding="ascii") for file in files).split())
    except (OSError, ValueError):
        return None  # no limit is "max" in version 2
    return quota / period if quota > 0 and period > 0 else None


def cpu_name() -> str:
    """Return the processor's model name, else its architecture."""
    if sys.platform == "darwin":
        return what_says(["sysctl", "-n", "machdep.cpu.brand_string"]) or platform.machine()
    try:
        return name_in(_CPU_INFO.read_text(encoding="utf-8", errors="replace")) or platform.machine()
    except OSError:
        return platform.processor() or platform.machine()


def name_in(cpu_info: str) -> str | None:
    """Return the processor's name in the text of /proc/cpuinfo."""
    pairs = [line.partition(":") for line in cpu_info.splitlines()]
    named = {key.strip(): value.strip() for key, _, value in reversed(pairs) if value.strip()}
    return next((named[key] for key in _NAME_KEYS if key in named), None)


def last_level_cache() -> int:
    """Return the size of the processor's largest cache in bytes; a typical size if the system gives none."""
    if sys.platform == "darwin":
        sizes = [what_says(["sysctl", "-n", name]) for name in ("hw.l3cachesize", "hw.perflevel0.l2cachesize")]
        return max((int(size) for size in sizes if size.isdigit()), default=0) or _USUAL_CACHE
    return max((_cache_size(path) for path in _CACHES.glob("index*/size")), default=0) or _USUAL_CACHE


def gives_huge_pages() -> bool:
    """Return whether the system gives huge pages of memory (2 MiB) to programs that ask for them."""
    try:
        return "[never]" not in _HUGE_PAGES.read_text(encoding="ascii")
    except OSError:
        return False


def _cache_size(path: Path) -> int:
    """Return the size from a file with text like 32768K; 0 if there is none."""
    try:
        text = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return 0
    number, unit = text.rstrip("KMG"), text[-1:]
    scale = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(unit, 1)
    return int(number) * scale if number.isdigit() else 0


def _usable_threads(*, within_quota: bool = True) -> int:
    n_threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cpu_quota() if within_quota else None
    return n_threads if quota is None else min(n_threads, math.ceil(quota))


def what_says(command: list[str]) -> str:
    """Return what a program prints; nothing where it is not there or takes over ten seconds."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=False).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def set_allocator(*parameters: tuple[int, int]) -> None:
    """Set parameters of glibc's ``mallopt``, by their numbers in malloc.h; with another allocator nothing happens."""
    with contextlib.suppress(OSError, AttributeError, TypeError):  # TypeError: Windows has no CDLL(None)
        for parameter, value in parameters:
            ctypes.CDLL(None).mallopt(parameter, value)


def return_freed_memory() -> None:
    """Let glibc give back to the system what is free, which it keeps of small blocks; takes some milliseconds."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


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


# Other programs disturb a measurement if they use more than this share of the cores.
_DISTURBING_SHARE = 0.25


def others_are_busy(others: OtherPrograms) -> bool:
    """Return whether other programs used too much of the cores since the last call for a valid measurement.

    The system's load average reacts too late: it still includes this program's own start half a minute ago.
    """
    return others.busy_cores() > _DISTURBING_SHARE * core_count(within_quota=False)
