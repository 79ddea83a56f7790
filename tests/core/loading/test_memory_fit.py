"""How a load is planned on machines of all kinds, with workers too, and what a dry run says of its memory."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from core.llama.build import HUGE_PAGES, features
from core.llama.library import listening
from core.llama.model import Model
from core.loading.contexts import open_context
from core.loading.memory_fit import ALL_LAYERS, LoadPlan, context_size, fit, why_so
from core.loading.memory_need import MemoryNeed, dry_run, pool_cells
from core.machine.host import gives_huge_pages
from core.values.engine_options import EngineOptions, whole_lines
from core.values.errors import LoadFailed, ModelDoesNotFit
from models.estimate.fit.memory import USABLE_SHARE
from models.estimate.fit.plan import LoadSetting, plan_of
from models.estimate.speed.machine import DeviceKind, Lent, Link, Machine, MachineDevice, machine_of
from models.estimate.speed.work import Placement, work
from models.facts.model_facts import ModelFacts, read_model
from tests.support import made_up_machines
from tests.support.engines import need_of
from tests.support.made_up_machines import GB, larger
from tools.model_factory import recurrent_factory
from tools.model_factory.gguf_factory import EMBER, EMBER_DRAFT, Recipe, cached

pytestmark = pytest.mark.usefixtures("forked_children")

DENSE = larger(read_model(EMBER), 200)
EXPERTS = larger(read_model(cached(Recipe(n_experts=4, n_experts_used=2))), 200)


# How fast it is is not known: what is on GPUs decides.
machine = partial(made_up_machines.machine, rate=None, gpu_rate=None)


def fitted(facts: ModelFacts, here: Machine, **options: Any) -> LoadPlan:
    return fit(facts, EngineOptions(str(EMBER), **options), here, lambda options: None)


def room(facts: ModelFacts, kv_type: str, n_ctx: int) -> Machine:
    """A processor with just the memory for a cache of this type."""
    options = EngineOptions(str(EMBER), n_ctx=n_ctx, n_slots=1, kv_type=kv_type)
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


@pytest.mark.skipif(
    HUGE_PAGES not in features() or not gives_huge_pages(), reason="no huge pages: files are always mapped"
)
def test_a_file_is_read_if_huge_pages_make_it_faster_and_memory_is_plentiful():
    size = EMBER.stat().st_size
    assert fitted(read_model(EMBER), machine()).options.mmap is False
    assert fitted(read_model(EMBER), machine(), mmap=True).options.mmap is True
    assert fitted(read_model(EMBER), machine(host=round(3.5 * size)), n_ctx=64, n_slots=1).options.mmap is True
    on_gpu = fitted(read_model(EMBER), machine(20 * GB), n_gpu_layers=1)
    assert on_gpu.n_gpu_layers
    assert on_gpu.options.mmap is True


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
    assert found.options == replace(EngineOptions(str(EMBER), **asked), n_cells=300, mmap=True)
    assert (found.n_gpu_layers, found.size.n_ctx, found.notices) == (4, 300, ())
    assert fitted(EXPERTS, machine(), n_cpu_moe=99).options.n_cpu_moe == 6
    assert fitted(DENSE, machine(), n_cpu_moe=3).options.n_cpu_moe == 0
    cells = fitted(DENSE, machine(), n_cells=600).size
    assert (cells.n_ctx, cells.n_cells) == (600, 768)


def test_nothing_helps_a_model_that_is_too_large():
    with pytest.raises(ModelDoesNotFit, match="Choose a smaller quantisation") as caught:
        fitted(DENSE, machine(host=GB))
    facts = caught.value.args[0].facts
    assert facts["needed"] > facts["free"] > 0


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


@pytest.mark.parametrize(
    ("n_ctx_short", "n_ctx_train", "wanted", "n_ctx"),
    [(4096, 131_072, None, 4096), (4096, 131_072, 6000, 6000), (4096, 4096, None, 4096), (32_768, 131_072, None, 8192)],
)
def test_the_usual_context_is_one_in_which_short_texts_are_read_as_trained(
    n_ctx_short: int, n_ctx_train: int, wanted: int | None, n_ctx: int
) -> None:
    facts = replace(DENSE, n_ctx_short=n_ctx_short, n_ctx_train=n_ctx_train)
    found = fitted(facts, machine(host=100 * GB), n_ctx=wanted, n_slots=4)
    assert (found.size.n_ctx, found.size.n_cells) == (n_ctx, -(-4 * n_ctx // 256) * 256)
    # Only what the user may change is said.
    is_shorter = wanted is None and n_ctx_short < min(n_ctx_train, 8192)
    assert [notice[: notice.index(":")] for notice in found.notices] == ["The context has 4,096 tokens"] * is_shorter
    assert all("Longer texts need --ctx, up to 131,072 tokens." in notice for notice in found.notices)


ROUNDING = 32 << 10  # llama.cpp's log rounds to 0.01 MiB
FAMILY = {
    "Ember": None,
    "deep Ember": Recipe(n_layers=24),
    "deep Ember in F16": Recipe(n_layers=12, tensor_type="F16"),
    "Ember with experts": Recipe(n_experts=4, n_experts_used=2),
}


def path_of(name: str) -> Path:
    recipe = FAMILY[name]
    return cached(recipe) if recipe is not None else EMBER


def needs(facts: ModelFacts, options: EngineOptions) -> tuple[MemoryNeed, MemoryNeed, Counter[str]]:
    """Return what a dry run says, what is estimated, and what a load allocates."""
    return dry_run(options), need_of(facts, options, context_size(facts, options).n_cells), load(options)


@pytest.mark.parametrize("name", FAMILY)
def test_estimate_dry_run_and_allocation_agree(name):
    options = EngineOptions(str(path_of(name)), n_ctx=1024, n_slots=4)
    facts = read_model(Path(options.model_path))
    tried, estimated, allocated = needs(facts, options)
    assert tried.kv_cache == pytest.approx(allocated["KV"], abs=ROUNDING)
    assert tried.compute == pytest.approx(allocated["compute"] + output_bytes(facts.n_vocab, options), abs=ROUNDING)
    # AMX's kernels write weights in a larger way, and what is both embedding and output once more.
    most = tried.weights * (1.3 if "AMX_INT8" in features() else 1.0)
    assert tried.weights - ROUNDING <= allocated["model"] <= most + ROUNDING
    assert estimated.kv_cache == pytest.approx(tried.kv_cache, abs=ROUNDING)
    assert estimated.compute == pytest.approx(tried.compute, rel=0.15)
    assert estimated.total == pytest.approx(tried.total, rel=0.05)


def test_what_windows_cut_off_takes_no_memory(tmp_path):
    options = EngineOptions(str(recurrent_factory.gemma3(tmp_path / "window.gguf", 32)), n_ctx=1024, n_slots=4)
    facts = read_model(Path(options.model_path))
    tried, estimated, allocated = needs(facts, options)
    assert tried.kv_cache == pytest.approx(allocated["KV"], abs=ROUNDING)
    assert estimated.kv_cache == pytest.approx(tried.kv_cache, abs=ROUNDING)
    # One layer keeps 4,096 tokens, and three keep 4 windows and the rows of a step.
    assert estimated.kv_cache == pytest.approx((4096 + 3 * 768) * facts.kv_bytes_per_token() / 4, rel=0.01)
    assert estimated.compute == pytest.approx(tried.compute, rel=0.15)


@pytest.mark.parametrize("n_slots", [1, 4])
def test_texts_whose_caches_are_apart_take_one_each(tmp_path: Path, n_slots: int) -> None:
    options = EngineOptions(str(recurrent_factory.deepseek4(tmp_path / "apart.gguf")), n_ctx=4096, n_slots=n_slots)
    facts = read_model(Path(options.model_path))
    tried, estimated, allocated = needs(facts, options)
    assert tried.kv_cache == pytest.approx(allocated["KV"], abs=ROUNDING)
    assert estimated.kv_cache == pytest.approx(tried.kv_cache, rel=0.05)
    one = facts.kv_bytes_per_further_token() * 4096
    assert context_size(facts, options, facts.weight_bytes + 4 * 4 * one).n_cells == 4096
    assert context_size(facts, options, facts.weight_bytes + 4 * 4 * 4 * one).n_cells == n_slots * 4096


def load(options: EngineOptions) -> Counter[str]:
    facts = read_model(Path(options.model_path))
    with listening() as allocated:
        # Without a map of the file, what is allocated for weights is what they take.
        model = Model(options.model_path, replace(options, mmap=False))
        size = context_size(facts, options)
        context = open_context(model, facts, options, size)
        context.close()
        model.close()
    return allocated


def output_bytes(n_vocab: int, options: EngineOptions) -> int:
    return n_vocab * 4 * whole_lines(options.n_slots * 17)


def test_a_draft_counts():
    plain = EngineOptions(str(EMBER), n_ctx=1024)
    drafted = replace(plain, draft_path=str(EMBER_DRAFT))
    facts = read_model(EMBER)
    size = context_size(facts, plain)
    need = need_of(facts, drafted, size.n_cells)
    assert need.draft > read_model(EMBER_DRAFT).weight_bytes
    assert need.total - need.draft >= need_of(facts, plain, size.n_cells).total
    assert need_of(facts, replace(drafted, speculation="off"), size.n_cells).draft == 0


def test_a_file_that_is_no_model_is_refused_with_a_sentence(tmp_path):
    path = tmp_path / "no.gguf"
    path.write_bytes(b"no model at all")
    with pytest.raises(LoadFailed, match=r"no\.gguf"):
        dry_run(EngineOptions(str(path)))


def test_a_file_that_llama_cpp_does_not_read_is_refused(tmp_path):
    with pytest.raises(LoadFailed, match="no file"):
        dry_run(EngineOptions(str(tmp_path / "missing.gguf")))


WORKER = "rpc://10.0.0.2:8643"
MODEL = larger(read_model(EMBER), 400)
OPTIONS = EngineOptions(str(EMBER), devices=(WORKER,))
LAN = Link(latency=0.0004, bandwidth=110e6)


def with_worker(host: int, link: Link | None = LAN, kind: DeviceKind = DeviceKind.GPU, rate: float = 400e9) -> Machine:
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
    plan, sentence = planned(with_worker(2 * GB, **slow))
    n_there = sum(where == 1 for where in plan.placement.layers)
    assert n_there > 0
    assert re.fullmatch(
        f"{n_there} of 6 layers are on {WORKER}, over 110 MB/s with 0.40 ms there and back: "
        r"≈ \d+(\.\d)? tok/s \(an estimate\)\.",
        sentence,
    )


@pytest.mark.parametrize(
    ("link", "kind", "rate"),
    [
        (LAN, DeviceKind.CPU, 20e9),  # a machine just like this one
        (Link(latency=2.0, bandwidth=110e6), DeviceKind.GPU, 400e9),
        (Link(latency=0.0004, bandwidth=10e3), DeviceKind.GPU, 400e9),
    ],
)
def test_a_worker_that_would_make_it_slower_is_not_used(link: Link, kind: DeviceKind, rate: float):
    plan, sentence = planned(with_worker(20 * GB, link, kind, rate))
    assert plan.n_gpu_layers == 0
    assert sentence.startswith("This machine alone is expected to be faster")


def test_a_fast_device_over_a_fast_network_is_used_although_there_is_room_here():
    plan, _ = planned(with_worker(20 * GB))
    assert set(plan.placement.layers) == {1}


def test_a_token_takes_the_round_trip_and_the_logits_more():
    def seconds(here: Machine) -> float:
        amounts = work(MODEL, Placement.all_on(1, MODEL.n_layers), here.devices, n_past=0)
        return here.efficiency.seconds(amounts) or 0.0

    n_bytes = 4 * (MODEL.n_embd + MODEL.n_vocab)
    more = seconds(with_worker(GB)) - seconds(with_worker(GB, link=None))
    assert more == pytest.approx(LAN.latency + n_bytes / LAN.bandwidth)
