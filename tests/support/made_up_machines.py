"""Models as large as one likes, on machines that do not exist."""

from __future__ import annotations

from dataclasses import replace

from models.estimate.speed.machine import DeviceKind, Machine, MachineDevice, machine_of
from models.estimate.speed.probe import Probe
from models.facts.layer_weights import LayerWeights
from models.facts.model_facts import ModelFacts

GB = 10**9


def machine(
    *gpus: int,
    host: int = 20 * GB,
    rate: float | None = 25e9,
    gpu_rate: float | None = 500e9,
    probe: Probe | None = None,
) -> Machine:
    """A processor, and GPUs with so many bytes; ``rate`` and ``gpu_rate`` are bytes per second from their memories."""
    cpu = MachineDevice("CPU", DeviceKind.CPU, host, host, rate, probe)
    return machine_of([cpu, *(MachineDevice(f"GPU{at}", DeviceKind.GPU, n, n, gpu_rate) for at, n in enumerate(gpus))])


def larger(facts: ModelFacts, factor: int) -> ModelFacts:
    """A model whose matrices are ``factor`` times as large."""

    def layer(weights: LayerWeights) -> LayerWeights:
        return LayerWeights(
            tuple((name, n * factor) for name, n in weights.shared),
            tuple((name, n * factor) for name, n in weights.experts),
        )

    parts = facts.weight_map
    grown = replace(
        parts, layers=tuple(map(layer, parts.layers)), output=layer(parts.output), tables=parts.tables * factor
    )
    return replace(facts, weight_bytes=facts.weight_bytes * factor, weight_map=grown)
