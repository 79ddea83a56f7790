"""Probes this machine once in some seconds: each device's kernels, and the bundled model pair.

A child process measures, because a backend can abort the process.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from core.ipc.child_process import run_module
from core.machine.host import Host
from models.estimate.speed.probe import Probe
from models.files.disk import write_whole
from models.formatting.json_values import plain, value_of

FILE_NAME = "probe.json"
CPU = "CPU"
# Seconds for a probe, which takes some seconds for each device; and bytes of a file that is read.
_CHILD_SECONDS = 300
_MOST_CHARACTERS = 1 << 20
# Increased when a new value is measured: a value missing in an older file is not 0.
_FORMAT = 2


@dataclass(frozen=True, slots=True)
class TimedModel:
    """A model that was timed on device ``device``: seconds of one decoded token after ``n_past`` others."""

    path: str
    device: str
    n_past: int
    seconds: float


@dataclass(frozen=True, slots=True)
class MachineProbe:
    """The probes of the devices by name, and the models that were timed, on the machine with this CPU and memory."""

    cpu: str
    ram: int
    devices: dict[str, Probe]
    timed: tuple[TimedModel, ...]


def measure(models: tuple[Path, ...], should_stop: Callable[[], bool] = lambda: False) -> MachineProbe | None:
    """Measure in a child process, with these models; None where the child fails, or once ``should_stop`` says so."""
    try:
        child = run_module(
            "core.process.probe_worker", *map(str, models), seconds=_CHILD_SECONDS, should_stop=should_stop
        )
    except (subprocess.TimeoutExpired, OSError):
        return None
    return _parse(child.stdout) if child.returncode == 0 else None


def remembered(folder: Path, machine: Host) -> MachineProbe | None:
    """Return the kept measurement of this machine by this version of the program, or None."""
    try:
        with open(folder / FILE_NAME, encoding="utf-8") as file:
            known = _parse(file.read(_MOST_CHARACTERS))
    except (OSError, ValueError):
        return None
    return known if known is not None and (known.cpu, known.ram) == (machine.cpu, machine.ram) else None


def remember(folder: Path, found: MachineProbe) -> None:
    """Keep a measurement for later; raises OSError where the folder cannot be written."""
    write_whole(folder / FILE_NAME, json.dumps(as_dict(found)))


def as_dict(found: MachineProbe) -> dict[str, Any]:
    """Return a measurement as a JSON object."""
    return {"program": _program(), **plain(found)}


def _program() -> str:
    """Return the version of the program that measures: other kernels have other rates."""
    return f"{_FORMAT}, llama-cpp-python {version('llama-cpp-python')}"


def _parse(text: str) -> MachineProbe | None:
    try:
        fields = json.loads(text)
        if fields["program"] != _program():
            return None
        found: MachineProbe = value_of(MachineProbe, fields)
        return replace(found, devices={name: probe for name, probe in found.devices.items() if probe.is_possible})
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
