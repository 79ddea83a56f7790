"""A machine as predictions see it: devices with their memory, and the cost of each kind of work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from enum import StrEnum

from models.estimate.speed.efficiency import Constant, Efficiency, Observation, learn, over_link, prior
from models.estimate.speed.probe import Probe
from models.estimate.speed.work import STEP, Placement, bytes_on
from models.facts.model_facts import ModelFacts


class DeviceKind(StrEnum):
    """A processor with its memory, or a GPU with memory of its own or shared."""

    CPU = "cpu"
    GPU = "gpu"
    IGPU = "igpu"


@dataclass(frozen=True, slots=True)
class Link:
    """The network to another machine: seconds of a round trip, and bytes per second."""

    latency: float
    bandwidth: float


@dataclass(frozen=True, slots=True)
class Lent:
    """The facts of a device that ``worker`` (rpc://HOST:PORT) lends: its kind and speed there."""

    worker: str
    kind: DeviceKind
    link: Link
    bandwidth: float | None = None
    probe: Probe | None = None


@dataclass(frozen=True, slots=True)
class MachineDevice:
    """One device: bytes of memory in ``total`` and ``free``, ``bandwidth`` in bytes per second if it is known.

    A device ``lent`` by another machine is used like a GPU.
    """

    name: str
    kind: DeviceKind
    total: int
    free: int
    bandwidth: float | None = None
    probe: Probe | None = None
    lent: Lent | None = None

    @property
    def is_cpu(self) -> bool:
        """Whether this is this machine's processor, whose memory is always used."""
        return self.kind is DeviceKind.CPU

    @property
    def cache(self) -> float:
        """How many bytes of weights stay in its own cache between two reads; 0: none."""
        return self.probe.cache if self.probe is not None else 0.0

    @property
    def is_processor(self) -> bool:
        """Whether a processor computes, here or on another machine: each of its heads reads the keys on its own."""
        return self.is_cpu or (self.lent is not None and self.lent.kind is DeviceKind.CPU)


@dataclass(frozen=True, slots=True)
class Machine:
    """The processor first, then GPUs; ``efficiency`` has the known costs of work."""

    devices: tuple[MachineDevice, ...]
    efficiency: Efficiency

    @property
    def gpus(self) -> tuple[int, ...]:
        """Numbers of the devices that are GPUs."""
        return tuple(number for number, device in enumerate(self.devices) if not device.is_cpu)


def machine_of(devices: Iterable[MachineDevice], runs: Sequence[Observation] = ()) -> Machine:
    """The machine with these devices, learnt from ``runs``; raises ValueError without a processor."""
    ordered = tuple(sorted(devices, key=lambda device: not device.is_cpu))
    if not ordered or not ordered[0].is_cpu:
        raise ValueError("a machine needs a processor and its memory")
    before: dict[str, Constant] = {}
    for device in ordered:
        before |= prior(device.name, is_cpu=device.is_processor, bandwidth=device.bandwidth, probe=device.probe)
        if device.lent is not None and f"{device.name}: {STEP}" in before:
            before |= over_link(device.name, before[f"{device.name}: {STEP}"], *astuple(device.lent.link))
    return Machine(ordered, learn(before, runs))


def peak_of(facts: ModelFacts, placement: Placement, machine: Machine) -> float | None:
    """Return the peak in bytes per second; None if a device that holds weights was not measured.

    Devices work one after the other, each at its highest measured rate.
    """
    read = bytes_on(facts, placement, len(machine.devices), facts.expert_share)
    seconds = 0.0
    for device, n_bytes in zip(machine.devices, read, strict=True):
        rate = highest_rate(device)
        if n_bytes and not rate:
            return None
        seconds += n_bytes / rate if rate else 0.0
    return sum(read) / seconds if seconds else None


def highest_rate(device: MachineDevice) -> float | None:
    """The bandwidth, or the highest rate at which matrices of any type were read, in bytes per second."""
    if device.bandwidth is not None:
        return device.bandwidth
    return max(device.probe.weights.values(), default=None) if device.probe is not None else None
