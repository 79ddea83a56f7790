"""The highest rate at which the weights of a token can come from where they lie. Pure."""

from __future__ import annotations

from models.estimate.speed.machine import Machine, MachineDevice
from models.estimate.speed.work import Placement, bytes_on
from models.facts.model_facts import ModelFacts


def peak_of(facts: ModelFacts, placement: Placement, machine: Machine) -> float | None:
    """Return bytes per second, None where it was not measured for a device that holds some of them.

    Devices work one after the other, each at the highest rate that was measured there.
    """
    share = facts.n_experts_used / facts.n_experts if facts.n_experts else 0.0
    read = bytes_on(facts, placement, len(machine.devices), share)
    seconds = 0.0
    for device, n_bytes in zip(machine.devices, read, strict=True):
        rate = _highest(device)
        if n_bytes and not rate:
            return None
        seconds += n_bytes / rate if rate else 0.0
    return sum(read) / seconds if seconds else None


def _highest(device: MachineDevice) -> float | None:
    """The bandwidth, or the highest rate at which matrices of any type were read."""
    if device.bandwidth is not None:
        return device.bandwidth
    return max(device.probe.weights.values(), default=None) if device.probe is not None else None
