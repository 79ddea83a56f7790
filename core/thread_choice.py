"""How many threads to compute with, by measuring this model on this machine."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

_log = logging.getLogger(__name__)
# More threads must gain at least this share: threads that gain nothing take the cores from everything else.
_WORTH = 0.05
_BUDGET_SECONDS = 0.25
_PROBES = 5


@dataclass(frozen=True, slots=True)
class ThreadChoice:
    """Threads for steps of a few rows (decode) and of many (prefill)."""

    decode: int
    prefill: int


def physical_cores() -> int:
    """Return the number of physical cores that this process may use."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(allowed, psutil.cpu_count(logical=False) or allowed))


def cores_are_shared() -> bool:
    """Return True while other programs use the cores: what is measured now does not hold for later."""
    if not hasattr(os, "getloadavg"):
        return False
    return os.getloadavg()[0] > 0.5 * physical_cores()


def candidates(n_cores: int) -> tuple[int, ...]:
    """Return the counts worth trying, fewest first: 1, a quarter, half, three quarters, all but one, all."""
    counts = {1, n_cores // 4, n_cores // 2, n_cores * 3 // 4, n_cores - 1, n_cores}
    return tuple(sorted(count for count in counts if count >= 1))


def fewest_that_pay(seconds: dict[int, float]) -> int:
    """Return the smallest count whose step takes at most 5 % longer than the best one's."""
    best = min(seconds.values())
    return min(count for count, value in seconds.items() if value <= best * (1 + _WORTH))


def measure(step: Callable[[int], None], counts: tuple[int, ...]) -> dict[int, float]:
    """Return the shortest time of ``step(count)`` for each count, in seconds, within about a quarter of a second.

    Slow models are measured from the most threads down, and the search stops where fewer threads are clearly worse.
    """
    results: dict[int, float] = {}
    share = _BUDGET_SECONDS / len(counts)
    for count in reversed(counts):
        spent, best = 0.0, float("inf")
        step(count)
        for _ in range(_PROBES):
            began = time.perf_counter()
            step(count)
            taken = time.perf_counter() - began
            best, spent = min(best, taken), spent + taken
            if spent > share:
                break
        results[count] = best
        if best > 1.5 * min(results.values()) and best > share:
            break
    return results


class ThreadMemory:
    """Choices made before, in one small file; a file that cannot be read or written only costs a new measurement."""

    def __init__(self, path: Path) -> None:
        """``path`` need not exist."""
        self._path = path

    def recall(self, key: str) -> ThreadChoice | None:
        """Return the choice made for ``key``."""
        entry = self._read().get(key)
        try:
            return ThreadChoice(int(entry["decode"]), int(entry["prefill"])) if isinstance(entry, dict) else None
        except (KeyError, TypeError, ValueError):
            return None

    def keep(self, key: str, choice: ThreadChoice) -> None:
        """Remember a choice."""
        entries = self._read()
        entries[key] = asdict(choice)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            fresh = self._path.with_suffix(f".{os.getpid()}.tmp")
            fresh.write_text(json.dumps(entries, indent=1))
            fresh.replace(self._path)
        except OSError as error:
            _log.warning("The thread choice could not be kept: %s", error)

    def _read(self) -> dict[str, object]:
        try:
            entries = json.loads(self._path.read_text())
        except (OSError, ValueError):
            return {}
        return entries if isinstance(entries, dict) else {}


def choice_key(path: str, n_bytes: int, n_gpu_layers: int) -> str:
    """Return the key of a choice: the model file, where its layers are, and the cores there are."""
    name = f"{os.path.basename(path)}:{n_bytes}:{n_gpu_layers}:{physical_cores()}"
    return hashlib.sha256(name.encode()).hexdigest()[:16]
