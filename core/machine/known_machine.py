"""What is known of this machine: measurements, kept in files; a probe of its devices; and the machine for load plans.

A probe takes some seconds. It times each device's kernels, in a child process, because a backend can abort the process.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from core.llama.build import gpu_backends
from core.machine import bandwidth
from core.machine.host import Host, OtherPrograms, core_count, cpu_name, others_are_busy, this_machine
from core.process.child_process import run_module
from core.values.engine_options import Device
from models.estimate.fit.memory import total_memory
from models.estimate.speed.machine import DeviceKind, Machine, MachineDevice, machine_of
from models.estimate.speed.probe import Probe
from models.estimate.speed.runs import ModelRun, observations, read_runs
from models.files.disk import read_json, write_whole
from models.formatting.json_values import plain, value_of
from models.formatting.system_error import system_reason

_log = logging.getLogger(__name__)
MEASURED_FILE = "measured.json"
# A larger file was not written by Slipstream.
_MOST_BYTES = 4 << 20


class Measurements:
    """JSON objects by key. If the file cannot be read or written, the values are measured again.

    ``entries`` are those that this process has measured, even if the file lacks them.
    """

    def __init__(self, path: Path | None, others: OtherPrograms | None = None) -> None:
        """``path`` need not exist; None keeps nothing."""
        self._path = path
        self._others = others or OtherPrograms()
        self.entries: dict[str, dict[str, Any]] = {}

    def recall(self, key: str) -> dict[str, Any] | None:
        """Return the entry for ``key``. If there is none, start to watch other programs' load."""
        entry = self._read().get(key)
        found = entry if isinstance(entry, dict) else self.entries.get(key)
        if found is None:
            self._others.busy_cores()
        return found

    def keep(self, key: str, entry: dict[str, Any]) -> bool:
        """Keep an entry, and return whether it can be trusted: other programs left the cores alone since ``recall``.

        The file gets no others.
        """
        self.entries[key] = entry
        if others_are_busy(self._others):
            return False
        if self._path is None:
            return True
        entries = self._read()
        entries[key] = entry
        try:
            write_whole(self._path, json.dumps(entries, indent=1))
        except OSError as error:
            _say_not_kept(self._path, system_reason(error))
        return True

    def _read(self) -> dict[str, Any]:
        entries = read_json(self._path, _MOST_BYTES) if self._path is not None else None
        return entries if isinstance(entries, dict) else {}


@cache  # once, not for each measurement
def _say_not_kept(path: Path, reason: str) -> None:
    _log.warning("Measurements are not kept: %s cannot be written: %s.", path, reason)


def measurement_key(*parts: object) -> str:
    """Return the key of a measurement: ``parts``, the machine, and the versions of llama-cpp-python and its kernels."""
    where = (cpu_name(), core_count(), version("llama_cpp_python"), _PROBE_FORMAT)
    text = ":".join(str(part) for part in (*parts, *where))
    return hashlib.sha256(os.fsencode(text)).hexdigest()[:16]


def runs_key() -> str:
    """Return the key of kept runs: processor, threads, memory and version of llama-cpp-python."""
    machine = this_machine()
    parts = (machine.cpu, f"{machine.n_threads} threads", f"{machine.ram} bytes")
    return ", ".join((*parts, f"llama-cpp-python {version('llama-cpp-python')}"))


def known_runs(folder: Path) -> tuple[ModelRun, ...]:
    """Return the kept runs of models on this machine from ``folder``."""
    return read_runs(folder, runs_key())


def known_machine(
    devices: Iterable[Device | MachineDevice], free: int, folder: Path | None = None, runs: Iterable[ModelRun] = ()
) -> Machine:
    """Return the machine with those of ``devices`` that are GPUs, and ``free`` bytes of host memory.

    ``folder`` has measurements of this machine (None: none), and ``runs`` are earlier runs of models on it.
    """
    probe = remembered_probe(folder, this_machine()) if folder is not None else None
    return machine_of(_devices(devices, free, folder, probe), observations(runs))


def _devices(
    devices: Iterable[Device | MachineDevice], free: int, folder: Path | None, probe: MachineProbe | None
) -> Iterator[MachineDevice]:
    """Yield the processor and the GPUs that llama.cpp can use; devices of unknown kinds are left out."""
    machine = this_machine()
    known = bandwidth.remembered(folder, machine) if folder is not None else None
    probes = probe.devices if probe is not None else {}
    rate = known.bytes_per_second if known is not None else None
    yield MachineDevice(CPU, DeviceKind.CPU, total_memory(), free, rate, probes.get(CPU))
    for device in devices:
        if (lent := device.lent) is not None:
            speed = (lent.bandwidth, lent.probe)
            yield MachineDevice(device.name, DeviceKind.GPU, device.total, device.free, *speed, lent=lent)
        elif device.kind in (DeviceKind.GPU, DeviceKind.IGPU):
            kind = DeviceKind(device.kind)
            yield MachineDevice(device.name, kind, device.total, device.free, None, probes.get(device.name))


PROBE_FILE = "probe.json"
CPU = "CPU"
# Seconds for a probe, which takes some seconds for each device.
_CHILD_SECONDS = 300
# Increased when a new value is measured, since a value missing in an older file is not 0, and when a patch makes
# kernels faster: all that was measured of a machine and its models is then measured anew.
_PROBE_FORMAT = 6


@dataclass(frozen=True, slots=True)
class MachineProbe:
    """The probes of the devices by name, on the machine with this CPU and memory.

    ``is_estimate``: other programs were busy meanwhile, so they may be faster. ``is_partial``: of GPUs alone, and their
    most used types.
    """

    cpu: str
    ram: int
    devices: dict[str, Probe]
    is_estimate: bool = False
    is_partial: bool = False


# Argument of the child that measures what ``is_partial`` says.
ONLY_GPUS = "--only-gpus"


def probe_machine(should_stop: Callable[[], bool] = lambda: False, *, is_partial: bool = False) -> MachineProbe | None:
    """Measure in a child process; None where the child fails, or once ``should_stop`` says so.

    ``is_partial`` takes a second or two, and not ten.
    """
    arguments = (ONLY_GPUS,) if is_partial else ()
    try:
        child = run_module("core.machine.kernel_probe", *arguments, seconds=_CHILD_SECONDS, should_stop=should_stop)
        return _probe_in(json.loads(child.stdout)) if child.returncode == 0 else None
    except (subprocess.TimeoutExpired, OSError, ValueError):
        return None


def remembered_probe(folder: Path, machine: Host) -> MachineProbe | None:
    """Return the kept measurement of this machine by this version of the program, or None."""
    known = _probe_in(read_json(folder / PROBE_FILE, _MOST_BYTES))
    return known if known is not None and (known.cpu, known.ram) == (machine.cpu, machine.ram) else None


def remember_probe(folder: Path, found: MachineProbe) -> None:
    """Keep a measurement for later, but for an estimate; raises OSError where the folder cannot be written.

    Beside two busy programs two cores multiplied at a fiftieth of their rate, since each thread waits for the others.
    """
    if not found.is_estimate:
        write_whole(folder / PROBE_FILE, json.dumps(as_dict(found)))


def as_dict(found: MachineProbe) -> dict[str, Any]:
    """Return a measurement as a JSON object."""
    return {"program": _probing_program(), **plain(found)}


def _probing_program() -> str:
    """Return the version of the program that measures, and its kinds of GPUs: other kernels have other rates."""
    return ", ".join((f"{_PROBE_FORMAT}", f"llama-cpp-python {version('llama-cpp-python')}", *gpu_backends()))


def _probe_in(fields: Any) -> MachineProbe | None:
    """Return what this version of the program has measured; devices with impossible values are left out."""
    try:
        if fields["program"] != _probing_program():
            return None
        found: MachineProbe = value_of(MachineProbe, fields)
    except (ValueError, KeyError, TypeError):
        return None
    return replace(found, devices={name: probe for name, probe in found.devices.items() if probe.is_possible})
