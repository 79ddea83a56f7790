"""The rate at which weights can come from the devices that hold them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from models.estimate.speed.machine import DeviceKind, Machine, MachineDevice, machine_of, peak_of
from models.estimate.speed.probe import Probe
from models.estimate.speed.work import Placement
from models.facts.model_facts import read_model
from tools.model_factory.gguf_factory import EMBER, Recipe, cached

GB = 10**9
DENSE = read_model(EMBER)
EXPERTS = read_model(cached(Recipe(n_experts=4, n_experts_used=2)))
CPU, GPU = 0, 1


def machine(*, cpu: float | None = 20 * GB, gpu: Probe | None = None) -> Machine:
    return machine_of(
        [
            MachineDevice("CPU", DeviceKind.CPU, 16 * GB, 16 * GB, cpu),
            MachineDevice("CUDA0", DeviceKind.GPU, 8 * GB, 8 * GB, None, gpu),
        ]
    )


PROBED = machine(gpu=Probe({"Q4_0": 300.0 * GB, "F16": 400.0 * GB}))


def test_on_one_device_it_is_what_was_measured_there() -> None:
    assert peak_of(DENSE, Placement.all_on(CPU, DENSE.n_layers), PROBED) == pytest.approx(20 * GB)
    assert peak_of(DENSE, Placement.all_on(GPU, DENSE.n_layers), PROBED) == pytest.approx(400 * GB)
    unknown = machine(cpu=None)
    assert peak_of(DENSE, Placement.all_on(CPU, DENSE.n_layers), unknown) is None
    assert peak_of(DENSE, Placement.all_on(GPU, DENSE.n_layers), unknown) is None
    # A device that holds nothing need not be known.
    assert peak_of(DENSE, Placement.all_on(CPU, DENSE.n_layers), machine()) == pytest.approx(20 * GB)


def test_on_two_devices_the_time_of_both_counts() -> None:
    everywhere = Placement.all_on(GPU, DENSE.n_layers)
    first = DENSE.weight_map.layers[0].n_bytes
    split = replace(everywhere, layers=(CPU, *everywhere.layers[1:]), experts=(CPU, *everywhere.experts[1:]))
    rest = sum(layer.n_bytes for layer in DENSE.weight_map.layers[1:]) + DENSE.weight_map.output.n_bytes
    seconds = first / (20 * GB) + rest / (400 * GB)
    assert peak_of(DENSE, split, PROBED) == pytest.approx((first + rest) / seconds)


def test_of_experts_those_count_that_a_token_reads() -> None:
    on_host = replace(Placement.all_on(GPU, EXPERTS.n_layers), experts=(CPU,) * EXPERTS.n_layers)
    layers = EXPERTS.weight_map.layers
    read = sum(layer.expert_bytes for layer in layers) / 2
    rest = sum(layer.n_bytes - layer.expert_bytes for layer in layers) + EXPERTS.weight_map.output.n_bytes
    assert read > 0
    assert peak_of(EXPERTS, on_host, PROBED) == pytest.approx((read + rest) / (read / (20 * GB) + rest / (400 * GB)))
