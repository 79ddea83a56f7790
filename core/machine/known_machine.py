"""This machine as input for load plans: its free memory now, and earlier measurements.

Nothing is measured here; ``doctor`` and the server measure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path

from core.machine import bandwidth
from core.machine import probe as machine_probe
from core.machine.host import this_machine
from core.machine.probe import CPU, MachineProbe
from core.values.engine_options import Device
from models.catalog.catalog import STARTER, STARTER_DRAFT
from models.estimate.speed.efficiency import Observation
from models.estimate.speed.machine import DeviceKind, Machine, MachineDevice, machine_of
from models.estimate.speed.runs import ModelRun, observations, read_runs
from models.estimate.speed.work import Placement, work
from models.facts.model_facts import read_model


def identity() -> str:
    """Return the key of kept runs: processor, threads, memory and version of llama-cpp-python."""
    machine = this_machine()
    parts = (machine.cpu, f"{machine.n_threads} threads", f"{machine.ram} bytes")
    return ", ".join((*parts, f"llama-cpp-python {version('llama-cpp-python')}"))


def known_runs(folder: Path) -> tuple[ModelRun, ...]:
    """Return the kept runs of models on this machine from ``folder``."""
    return read_runs(folder, identity())


def known_machine(
    devices: Iterable[Device | MachineDevice], free: int, folder: Path | None = None, runs: Iterable[ModelRun] = ()
) -> Machine:
    """Return the machine with those of ``devices`` that are GPUs, and ``free`` bytes of host memory.

    ``folder`` has measurements of this machine (None: none), and ``runs`` are earlier runs of models on it.
    """
    probe = machine_probe.remembered(folder, this_machine()) if folder is not None else None
    found = tuple(_devices(devices, free, folder, probe))
    known = observations(runs)
    if probe is not None:
        known = [*_pair_runs(probe, machine_of(found)), *known]
    return machine_of(found, known)


def _devices(
    devices: Iterable[Device | MachineDevice], free: int, folder: Path | None, probe: MachineProbe | None
) -> Iterator[MachineDevice]:
    """Yield the processor and the GPUs that llama.cpp can use; devices of unknown kinds are left out."""
    machine = this_machine()
    known = bandwidth.remembered(folder, machine) if folder is not None else None
    probes = probe.devices if probe is not None else {}
    rate = known.bytes_per_second if known is not None else None
    yield MachineDevice(CPU, DeviceKind.CPU, machine.ram, free, rate, probes.get(CPU))
    for device in devices:
        if (lent := device.lent) is not None:
            speed = (lent.bandwidth, lent.probe)
            yield MachineDevice(device.name, DeviceKind.GPU, device.total, device.free, *speed, lent=lent)
        elif device.kind in (DeviceKind.GPU, DeviceKind.IGPU):
            kind = DeviceKind(device.kind)
            yield MachineDevice(device.name, kind, device.total, device.free, None, probes.get(device.name))


def _pair_runs(probe: MachineProbe, machine: Machine) -> Iterator[Observation]:
    """Yield the runs of the bundled model pair, which the probe has timed on each device."""
    numbers = {device.name: number for number, device in enumerate(machine.devices)}
    facts = {path.name: read_model(path) for path in (STARTER, STARTER_DRAFT)}
    for run in probe.timed:
        if run.device in numbers and run.path in facts:
            model = facts[run.path]
            placement = Placement.all_on(numbers[run.device], model.n_layers)
            yield Observation(work(model, placement, machine.traits, n_past=run.n_past), run.seconds)
