"""Measurements of this machine: kept in one small file, and made by this process."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from core.machine.host import cpu_name
from models.files.disk import write_whole


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


_log = logging.getLogger(__name__)
MEASURED_FILE = "measured.json"
# A larger file was not written by Slipstream.
_MOST_CHARACTERS = 4 << 20
# Other programs disturb a measurement if they use more than this share of the cores.
_DISTURBING_SHARE = 0.25


class Measurements:
    """JSON objects by key. If the file cannot be read or written, the values are measured again.

    ``entries`` are those that this process was given or has measured, even if the file lacks them.
    """

    def __init__(
        self, path: Path | None, told: Mapping[str, dict[str, Any]] | None = None, others: OtherPrograms | None = None
    ) -> None:
        """``path`` need not exist; None keeps nothing. ``told`` is used for keys that the file lacks."""
        self._path = path
        self._others = others or OtherPrograms()
        self.entries = dict(told or {})

    def recall(self, key: str) -> dict[str, Any] | None:
        """Return the entry kept or told for ``key``. If there is none, start to watch other programs' load."""
        entry = self._read().get(key)
        found = entry if isinstance(entry, dict) else self.entries.get(key)
        if found is None:
            self._others.busy_cores()
        return found

    def keep(self, key: str, entry: dict[str, Any]) -> None:
        """Keep an entry; not in the file if other programs used the cores since ``recall``, which disturbs it."""
        self.entries[key] = entry
        if self._path is None or others_are_busy(self._others):
            return
        entries = self._read()
        entries[key] = entry
        try:
            write_whole(self._path, json.dumps(entries, indent=1))
        except OSError as error:
            _log.warning("Measurements could not be kept: %s", error)

    def _read(self) -> dict[str, Any]:
        if self._path is None:
            return {}
        try:
            with open(self._path, encoding="utf-8") as file:
                entries = json.loads(file.read(_MOST_CHARACTERS))
        except (OSError, ValueError, RecursionError):
            return {}
        return entries if isinstance(entries, dict) else {}


def physical_cores() -> int:
    """Return the number of physical cores that this process may use."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(allowed, psutil.cpu_count(logical=False) or allowed))


def others_are_busy(others: OtherPrograms) -> bool:
    """Return whether other programs used too much of the cores since the last call for a valid measurement.

    The system's load average reacts too late: it still includes this program's own start half a minute ago.
    """
    return others.busy_cores() > _DISTURBING_SHARE * physical_cores()


def measurement_key(*parts: object) -> str:
    """Return the key of a measurement: ``parts``, the machine, and the version of llama-cpp-python."""
    text = ":".join(str(part) for part in (*parts, cpu_name(), physical_cores(), version("llama_cpp_python")))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
