"""Plans with devices of other machines: their memory counts, and so does the network that leads to them."""

from __future__ import annotations

import pytest

from core.loading.memory_fit import LoadPlan, fit, why_so
from core.values.engine_options import EngineOptions
from models.estimate.speed.machine import DeviceKind, Lent, Link, Machine, MachineDevice, machine_of
from models.estimate.speed.work import Placement, work
from models.facts.model_facts import read_model
from tests.support.made_up_machines import larger
from tools.model_factory.gguf_factory import EMBER

GB = 10**9
WORKER = "rpc://10.0.0.2:8643"
MODEL = larger(read_model(EMBER), 400)
OPTIONS = EngineOptions(str(EMBER), devices=(WORKER,))
LAN = Link(latency=0.0004, bandwidth=110e6)


def machine(host: int, link: Link | None = LAN, kind: DeviceKind = DeviceKind.GPU, rate: float = 400e9) -> Machine:
    """A processor with ``host`` bytes, and a device with room for all behind ``link`` (None: in this machine)."""
    cpu = MachineDevice("CPU", DeviceKind.CPU, host, host, 20e9)
    lent = Lent(WORKER, kind, link, rate) if link is not None else None
    return machine_of([cpu, MachineDevice(f"{WORKER}/X", DeviceKind.GPU, 40 * GB, 40 * GB, rate, None, lent)])


def planned(here: Machine) -> tuple[LoadPlan, str]:
    plan = fit(MODEL, OPTIONS, here, lambda options: None)
    (sentence,) = why_so(MODEL, plan, here)
    return plan, sentence


def test_a_model_larger_than_this_machine_is_loaded_with_the_memory_of_a_worker():
    slow = {"kind": DeviceKind.CPU, "rate": 10e9}
    plan, sentence = planned(machine(2 * GB, **slow))
    n_there = sum(where == 1 for where in plan.placement.layers)
    assert n_there > 0
    assert sentence.startswith(
        f"{n_there} of 6 layers are on {WORKER}, over 110 MB/s with 0.40 ms there and back: about "
    )
    assert sentence.endswith("tokens/s are expected (an estimate).")


@pytest.mark.parametrize(
    ("link", "kind", "rate"),
    [
        (LAN, DeviceKind.CPU, 20e9),  # a machine just like this one
        (Link(latency=2.0, bandwidth=110e6), DeviceKind.GPU, 400e9),
        (Link(latency=0.0004, bandwidth=10e3), DeviceKind.GPU, 400e9),
    ],
)
def test_a_worker_that_would_make_it_slower_is_not_used(link: Link, kind: DeviceKind, rate: float):
    plan, sentence = planned(machine(20 * GB, link, kind, rate))
    assert plan.n_gpu_layers == 0
    assert sentence.startswith("This machine alone is expected to be faster")


def test_a_fast_device_over_a_fast_network_is_used_although_there_is_room_here():
    plan, _ = planned(machine(20 * GB))
    assert set(plan.placement.layers) == {1}


def test_a_token_takes_the_round_trip_and_the_logits_more():
    def seconds(here: Machine) -> float:
        amounts = work(MODEL, Placement.all_on(1, MODEL.n_layers), here.traits, n_past=0)
        return here.efficiency.seconds(amounts) or 0.0

    n_bytes = 4 * (MODEL.n_embd + MODEL.n_vocab)
    more = seconds(machine(GB)) - seconds(machine(GB, link=None))
    assert more == pytest.approx(LAN.latency + n_bytes / LAN.bandwidth)
