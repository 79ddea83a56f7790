"""This machine's processor, cores and memory."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

_CPU_INFO = Path("/proc/cpuinfo")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
# Bytes of a typical last-level cache, if the system does not say.
_USUAL_CACHE = 16 << 20
# The first of these keys in /proc/cpuinfo gives the processor's name: x86, then ARM boards, then others.
_NAME_KEYS = ("model name", "Model", "Hardware", "cpu model", "uarch")


@dataclass(frozen=True, slots=True)
class Host:
    """``cpu`` is the processor's name, ``n_cores`` physical cores, ``n_threads`` hardware threads it may use.

    ``ram`` is the memory of the machine in bytes.
    """

    cpu: str
    n_cores: int
    n_threads: int
    ram: int


def this_machine() -> Host:
    """Return the facts about this machine, from the system."""
    n_threads = _usable_threads()
    return Host(
        cpu=cpu_name(),
        n_cores=min(psutil.cpu_count(logical=False) or n_threads, n_threads),
        n_threads=n_threads,
        ram=psutil.virtual_memory().total,
    )


def cpu_name() -> str:
    """Return the processor's model name, else its architecture."""
    if sys.platform == "darwin":
        return _first_line(["sysctl", "-n", "machdep.cpu.brand_string"]) or platform.machine()
    try:
        return name_in(_CPU_INFO.read_text(encoding="utf-8", errors="replace")) or platform.machine()
    except OSError:
        return platform.processor() or platform.machine()


def name_in(cpu_info: str) -> str | None:
    """Return the processor's name in the text of /proc/cpuinfo."""
    pairs = [line.partition(":") for line in cpu_info.splitlines()]
    named = {key.strip(): value.strip() for key, _, value in reversed(pairs) if value.strip()}
    return next((named[key] for key in _NAME_KEYS if key in named), None)


def last_level_cache(folder: Path = _CACHES) -> int:
    """Return the size of the processor's largest cache in bytes; a typical size if the system gives none."""
    if sys.platform == "darwin":
        sizes = [_first_line(["sysctl", "-n", name]) for name in ("hw.l3cachesize", "hw.perflevel0.l2cachesize")]
        return max((int(size) for size in sizes if size.isdigit()), default=0) or _USUAL_CACHE
    return max((_cache_size(path) for path in folder.glob("index*/size")), default=0) or _USUAL_CACHE


def _cache_size(path: Path) -> int:
    """Return the size from a file with text like 32768K; 0 if there is none."""
    try:
        text = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return 0
    number, unit = text.rstrip("KMG"), text[-1:]
    scale = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(unit, 1)
    return int(number) * scale if number.isdigit() else 0


def _usable_threads() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _first_line(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=False).stdout.strip()
    except OSError:
        return ""


def machine() -> dict[str, Any]:
    """Describe this machine without its host name."""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": cpu_name(),
        "physical_cores": psutil.cpu_count(logical=False),
        "logical_cores": psutil.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "load_average": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    }


def versions() -> dict[str, str]:
    """Return the versions that a result depends on."""
    found = {"python": platform.python_version()}
    for package in ("llama-cpp-python", "numpy", "fastapi", "uvicorn", "PySide6-Essentials"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
