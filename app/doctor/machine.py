"""This machine and its programs, as reports of check-ups, verifications and benches name them."""

from __future__ import annotations

import os
import platform
import re
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import psutil

from core.machine.host import cpu_name, what_says


def machine() -> dict[str, Any]:
    """Describe this machine without its host name."""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": cpu_name(),
        "physical_cores": psutil.cpu_count(logical=False),
        "logical_cores": psutil.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "gpus": nvidia_gpus(),
        "load_average": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    }


def versions() -> dict[str, str]:
    """Return the versions that a result depends on."""
    packages = ("llama-cpp-python", "numpy", "fastapi", "uvicorn", "PySide6-Essentials")
    return {"python": platform.python_version()} | {name: package_version(name) or "not installed" for name in packages}


def package_version(package: str) -> str | None:
    """Return the version of a package; None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def nvidia_gpus() -> list[str]:
    """Return the names of NVIDIA's GPUs as its driver gives them ("NVIDIA H100 80GB HBM3")."""
    return re.findall(r"^GPU \d+: (.+?)(?: \(UUID.*)?$", what_says(["nvidia-smi", "-L"]), re.MULTILINE)
