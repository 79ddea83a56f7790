"""The machine and the versions that a measurement depends on, as named in kept results."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import psutil

from core.machine.host import cpu_name


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
