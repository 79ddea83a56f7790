"""What this machine can do, measured once in some seconds: each device's kernels, and a model pair that is always here.

``python -m core.machine_probe MODEL...`` prints the result as JSON: in a process of its own, because what a backend
does not like ends the process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from core.machine import Machine, last_level_cache, this_machine
from core.openmp import WAITING
from core.side_process import run_aside
from models.memory import free_memory
from models.speed.probe import Probe, probe_of
from models.whole_file import write_whole

FILE_NAME = "probe.json"
CPU = "CPU"
_CHILD_SECONDS = 120
_SMALLEST_SET, _LARGEST_SET, _SHARE_OF_FREE = 64 << 20, 1 << 30, 8
_CACHES = 2
_TIMING_SECONDS = 0.5
# Behind so many tokens each model is timed: none to speak of, and a few hundred.
_PROMPTS = (8, 512)
_MOST_CHARACTERS = 1 << 20


@dataclass(frozen=True, slots=True)
class TimedModel:
    """A model that was timed on device ``device``: seconds of one decoded token behind ``n_past`` others."""

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

    def is_of(self, machine: Machine) -> bool:
        """Whether this was measured on ``machine``."""
        return (self.cpu, self.ram) == (machine.cpu, machine.ram)


def measure(models: tuple[Path, ...]) -> MachineProbe | None:
    """Measure in a child process, with these models; None where the child fails."""
    try:
        child = run_aside("core.machine_probe", *map(str, models), seconds=_CHILD_SECONDS, environment=WAITING)
    except (subprocess.TimeoutExpired, OSError):
        return None
    return _parse(child.stdout) if child.returncode == 0 else None


def remembered(folder: Path, machine: Machine) -> MachineProbe | None:
    """Return what was measured on this machine before, or None."""
    try:
        with open(folder / FILE_NAME, encoding="utf-8") as file:
            known = _parse(file.read(_MOST_CHARACTERS))
    except (OSError, ValueError):
        return None
    return known if known is not None and known.is_of(machine) else None


def remember(folder: Path, found: MachineProbe) -> None:
    """Keep a measurement for later; raises OSError where the folder cannot be written."""
    write_whole(folder / FILE_NAME, json.dumps(_as_dict(found)))


def _as_dict(found: MachineProbe) -> dict[str, Any]:
    devices = {name: probe.as_dict() for name, probe in found.devices.items()}
    timed = [asdict(model) for model in found.timed]
    return {"cpu": found.cpu, "ram": found.ram, "devices": devices, "timed": timed}


def _parse(text: str) -> MachineProbe | None:
    try:
        fields = json.loads(text)
        probes = {str(name): probe_of(value) for name, value in fields["devices"].items()}
        timed = tuple(
            TimedModel(str(each["path"]), str(each["device"]), int(each["n_past"]), float(each["seconds"]))
            for each in fields["timed"]
        )
        known = {name: probe for name, probe in probes.items() if probe is not None}
        return MachineProbe(str(fields["cpu"]), int(fields["ram"]), known, timed)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _measure_here(paths: list[str]) -> MachineProbe:
    from core.llama import log
    from core.llama.devices import list_devices
    from core.llama.matrix_probe import probe
    from core.loading import read_facts
    from core.measurements import physical_cores

    log.silence()
    for path in paths:
        read_facts(path)  # what cannot be loaded is better known before the seconds of a measurement
    machine, threads = this_machine(), physical_cores()
    found: dict[str, Probe] = {}
    timed: list[TimedModel] = []
    for device in list_devices():
        is_cpu = device.kind.value == "cpu"
        if not is_cpu and not device.is_gpu:
            continue
        free = free_memory() if is_cpu else device.free
        n_bytes = min(max(_SMALLEST_SET, _CACHES * last_level_cache()), _LARGEST_SET, free // _SHARE_OF_FREE)
        result = probe(device, n_threads=threads, n_bytes=n_bytes)
        if result is not None:
            found[device.name] = result
            timed += _timed_models(paths, device.name, is_cpu, threads)
    return MachineProbe(machine.cpu, machine.ram, found, tuple(timed))


def _timed_models(paths: list[str], device: str, is_cpu: bool, n_threads: int) -> list[TimedModel]:
    from core.decode_timing import time_decoding
    from core.loading import load_engine
    from core.options import EngineOptions

    timed = []
    for path in paths:
        options = EngineOptions(
            path,
            n_slots=1,
            n_threads=n_threads,
            n_gpu_layers=0 if is_cpu else None,
            devices=() if is_cpu else (device,),
            speculation="off",
        )
        engine, _ = load_engine(options, cache_folder=None)
        try:
            for n_prompt in _PROMPTS:
                timing = time_decoding(engine, n_prompt, _TIMING_SECONDS)
                timed.append(TimedModel(Path(path).name, device, timing.n_past, timing.seconds))
        finally:
            engine.close()
    return timed


def main(paths: list[str]) -> int:
    """Print what was measured as one JSON object."""
    print(json.dumps(_as_dict(_measure_here(paths))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
