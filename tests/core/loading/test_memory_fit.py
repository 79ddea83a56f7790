"""How a load is planned on machines of all kinds: what is asked for is kept, the rest adapts and is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from core.loading.memory_fit import ALL_LAYERS, LoadPlan, fit
from core.loading.memory_need import pool_cells
from core.values.engine_options import EngineOptions
from core.values.errors import ModelDoesNotFit
from models.estimate.fit.memory import USABLE_SHARE
from models.estimate.fit.plan import LoadSetting, plan_of
from models.estimate.speed.machine import DeviceKind, Machine, MachineDevice, machine_of
from models.facts.model_facts import ModelFacts, read_model
from tests.support.made_up_machines import larger
from tools.model_factory.gguf_factory import EMBER, EMBER_DRAFT, Recipe, cached

GB = 10**9
DENSE = larger(read_model(EMBER), 200)
EXPERTS = larger(read_model(cached(Recipe(n_experts=4, n_experts_used=2))), 200)


def machine(*gpus: int, host: int = 20 * GB) -> Machine:
    cpu = MachineDevice("CPU", DeviceKind.CPU, host, host)
    return machine_of([cpu, *(MachineDevice(f"GPU{at}", DeviceKind.GPU, n, n) for at, n in enumerate(gpus))])


def fitted(facts: ModelFacts, here: Machine, **options: Any) -> LoadPlan:
    return fit(facts, EngineOptions(str(EMBER), **options), here, lambda options: None)


def room(facts: ModelFacts, kv_type: str, n_ctx: int) -> Machine:
    """A processor with just the memory for a cache of this type."""
    options = EngineOptions(str(EMBER), n_ctx=n_ctx, n_slots=1, kv_type=kv_type)  # type: ignore[arg-type]
    roomy = fit(facts, options, machine(), lambda options: None)
    assert roomy.size.n_ctx == n_ctx
    alone = plan_of(facts, machine(), LoadSetting(0, 0, kv_type, n_ctx)).total
    return machine(host=int((alone + 2_000_000) / USABLE_SHARE))


def test_with_room_for_all_nothing_is_said():
    found = fitted(DENSE, machine())
    assert (found.options.kv_type, found.options.n_cpu_moe, found.n_gpu_layers) == ("f16", 0, 0)
    assert (found.size.n_ctx, found.size.n_cells, found.notices) == (1024, 4096, ())
    assert fitted(EXPERTS, machine(40 * GB)).n_gpu_layers == ALL_LAYERS


def test_experts_stay_on_the_processor_by_themselves_and_it_is_said():
    found = fitted(EXPERTS, machine(3 * GB))
    assert 0 < (found.options.n_cpu_moe or 0) <= 6
    (notice,) = found.notices
    assert f"the experts of {found.options.n_cpu_moe} layers on the processor" in notice
    assert notice.startswith("Because this fits the free memory and is fastest, it is loaded with ")


def test_a_shorter_context_is_only_for_those_who_asked_for_none():
    long = replace(DENSE, n_ctx_train=8192)
    here = room(long, "q4_0", 4096)
    found = fitted(long, here, n_slots=1, speculation="off")
    assert (found.size.n_ctx, found.options.kv_type) == (4096, "q4_0")
    assert "a context of 4,096 tokens instead of 8,192" in found.notices[0]
    with pytest.raises(ModelDoesNotFit, match=r"without asking for 8,192 tokens of context: q4_0 cache for 4,096"):
        fitted(long, here, n_ctx=8192, n_slots=1, speculation="off")


def test_no_more_context_is_proposed_than_the_model_was_trained_on():
    with pytest.raises(ModelDoesNotFit, match=r"tokens of context: f16 cache for 1,024 tokens"):
        fitted(DENSE, machine(), n_ctx=999_999_999)


@pytest.mark.parametrize(
    ("asked", "open_instead"),
    [
        ({"n_gpu_layers": 7, "n_cpu_moe": 0}, "experts of 0 layers on the processor: 7 layers on GPUs, experts of"),
        ({"n_cpu_moe": 0, "n_gpu_layers": 6, "n_ctx": 256}, "experts of 0 layers on the processor: 6 layers on GPUs"),
    ],
)
def test_what_is_asked_for_and_does_not_fit_is_refused_with_what_would(asked, open_instead):
    with pytest.raises(ModelDoesNotFit, match=f"of memory on GPU0, .* It fits without asking for {open_instead}"):
        fitted(EXPERTS, machine(3 * GB), **asked)


def test_what_is_asked_for_and_fits_is_kept():
    asked = {"n_gpu_layers": 4, "n_cpu_moe": 6, "kv_type": "q5_1", "n_ctx": 300}
    found = fitted(EXPERTS, machine(3 * GB), **asked)
    assert found.options == replace(EngineOptions(str(EMBER), **asked), n_cells=300)
    assert (found.n_gpu_layers, found.size.n_ctx, found.notices) == (4, 300, ())
    assert fitted(EXPERTS, machine(), n_cpu_moe=99).options.n_cpu_moe == 6
    assert fitted(DENSE, machine(), n_cpu_moe=3).options.n_cpu_moe == 0
    cells = fitted(DENSE, machine(), n_cells=600).size
    assert (cells.n_ctx, cells.n_cells) == (600, 768)


def test_nothing_helps_a_model_that_is_too_large():
    with pytest.raises(ModelDoesNotFit, match="Choose a smaller quantisation") as caught:
        fitted(DENSE, machine(host=GB))
    assert caught.value.needed > caught.value.free > 0


def test_what_llama_cpp_says_of_its_buffers_decides_where_it_is_close():
    here = room(DENSE, "f16", 1024)
    options = EngineOptions(str(EMBER), n_slots=1, speculation="off")
    assert fit(DENSE, options, here, lambda options: None).options.kv_type == "f16"
    asked: list[EngineOptions] = []

    def compute(options: EngineOptions) -> int:
        asked.append(options)
        return 1 << 27

    with pytest.raises(ModelDoesNotFit):
        fit(DENSE, options, here, compute)
    (tried,) = asked
    assert (tried.kv_type, tried.n_ctx, tried.n_cells, tried.n_gpu_layers) == ("f16", 1024, 1024, 0)
    fit(DENSE, options, machine(), compute)
    assert len(asked) == 1


def test_cells_for_several_requests_never_cost_the_fit():
    for free in range(int(2.2e9), int(3.2e9), 10_000_000):
        here = machine(host=free)
        try:
            found = fitted(DENSE, here, n_ctx=8192, draft_path=str(EMBER_DRAFT))
        except ModelDoesNotFit:
            continue
        assert found.size.n_ctx == 8192
        assert found.size.n_cells >= 8192
        kv_type = found.options.kv_type or ""
        setting = LoadSetting(0, 0, kv_type, found.size.n_cells)
        assert plan_of(DENSE, here, setting, read_model(EMBER_DRAFT)).use() <= USABLE_SHARE


@pytest.mark.parametrize(
    ("n_ctx", "n_slots", "free", "expected"),
    [
        (4096, 4, 10**9, 16384),
        (1000, 4, 10**9, 4000),
        (100_000, 4, 10**9, 250_000),
        (100_000, 1, 10**9, 100_000),
        (4096, 4, 8_000_000, 4096),
        (4096, 4, 0, 4096),
        (4096, 4, -5, 4096),
    ],
)
def test_every_slot_has_a_context_where_a_quarter_of_the_memory_is_enough(
    n_ctx: int, n_slots: int, free: int, expected: int
) -> None:
    assert pool_cells(n_ctx, n_slots, 1000, free) == expected
