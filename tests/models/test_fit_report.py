"""Judgements on machines of all kinds: what fits where, what is said of it, and what bad input gets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from models.estimate.fit.memory import EngineShape, estimate
from models.estimate.fit.plan import LoadSetting, place, plan_of
from models.estimate.fit.search import FitRequest, best_plan, fits, seconds_of
from models.estimate.fit.summary import FitVerdict
from models.estimate.speed.machine import DeviceKind, MachineDevice, machine_of
from models.estimate.speed.probe import Probe
from models.estimate.speed.work import Placement, work
from models.facts.model_facts import read_model
from models.facts.projector import read_projector
from models.pairing.gain import AcceptanceCounts
from models.recommend.fit_report import fit_report
from tests.support.made_up_machines import GB, larger, machine
from tools.model_factory import head_factory
from tools.model_factory.gguf_factory import EMBER, EMBER_DRAFT, Recipe, cached
from tools.model_factory.projector_factory import projector

FACTS = read_model(EMBER)
MOE = read_model(cached(Recipe(n_experts=4, n_experts_used=2)))


def test_the_map_of_weights_adds_up():
    for facts in (FACTS, MOE):
        parts = facts.weight_map
        inside = sum(layer.n_bytes for layer in parts.layers)
        # Ember's output is its table of tokens.
        assert inside + parts.output.n_bytes == facts.weight_bytes
        assert inside + parts.output.n_bytes + parts.tables > facts.weight_bytes


def test_a_processor_alone_gets_the_whole_model():
    judgement = fit_report(FACTS, machine())
    assert judgement.verdict is FitVerdict.GREEN
    assert judgement.plan.setting == LoadSetting(0, 0, "f16", 1024)
    assert "1,024 tokens" in judgement.sentence
    assert "20.0 GB free on CPU" in judgement.sentence
    assert judgement.speed.empty > judgement.speed.full > 0
    (need,) = plan_of(FACTS, machine(), LoadSetting(0, 0, "q8_0", 1024)).needs
    known = estimate(FACTS, 1024, kv_type="q8_0")
    assert (need.weights, need.kv_cache, need.compute) == (known.weights, known.kv_cache, known.compute)


def test_a_coarser_cache_is_for_where_the_finer_one_has_no_room():
    attention = Probe({"Q8_0": 25e9}, {"F16": 1e9, "Q8_0": 20e9, "Q4_0": 20e9})
    cpu = MachineDevice("CPU", DeviceKind.CPU, 20 * GB, 20 * GB, 25e9, attention)
    roomy = fit_report(FACTS, machine_of([cpu]))
    assert (roomy.verdict, roomy.plan.setting.kv_type) == (FitVerdict.GREEN, "f16")
    need = roomy.plan.needs[0].total
    tight = fit_report(FACTS, machine_of([replace(cpu, total=need, free=need)]))
    assert (tight.verdict, tight.plan.setting.kv_type) == (FitVerdict.TIGHT, "q8_0")


def test_a_gpu_gets_what_fits_unless_it_is_slow():
    facts = larger(FACTS, 100)
    judgement = fit_report(facts, machine(8 * GB))
    assert judgement.plan.setting.n_gpu_layers == 7
    assert judgement.plan.placement.layers == (1,) * 6
    assert judgement.speed.empty > 5 * fit_report(facts, machine()).speed.empty
    assert fit_report(FACTS, machine(8 * GB, rate=100e9, gpu_rate=5e9)).plan.setting.n_gpu_layers == 0
    facts = larger(FACTS, 200)
    judgement = fit_report(facts, machine(int(1.2 * GB)))
    setting = judgement.plan.setting
    assert 0 < setting.n_gpu_layers < 7
    assert setting.n_ctx == 1024
    more = plan_of(facts, machine(int(1.2 * GB)), replace(setting, n_gpu_layers=setting.n_gpu_layers + 1))
    assert more.use() > 0.95


def test_a_gpu_that_was_not_measured_yet_is_used_although_the_processor_was():
    facts = larger(FACTS, 100)
    judgement = fit_report(facts, machine(8 * GB, rate=25e9, gpu_rate=None))
    assert judgement.plan.setting.n_gpu_layers == 7
    assert judgement.speed is None
    setting = fit_report(facts, machine(int(0.6 * GB), rate=25e9, gpu_rate=None)).plan.setting
    assert 0 < setting.n_gpu_layers < 7


def test_experts_stay_on_the_processor_where_a_gpu_has_no_room_for_them():
    facts = larger(MOE, 200)
    judgement = fit_report(facts, machine(3 * GB))
    setting = judgement.plan.setting
    assert setting.n_gpu_layers > 3
    assert judgement.plan.placement.experts.count(0) > judgement.plan.placement.layers.count(0)
    placed = place(6, machine(3 * GB, 4 * GB), LoadSetting(7, 0, "f16", 1024))
    assert placed.layers == (1, 1, 1, 2, 2, 2)
    assert placed.output == 2


def test_the_best_plan_is_as_fast_as_any():
    facts, here = larger(MOE, 200), machine(3 * GB)
    best = best_plan(facts, here, FitRequest(1024, ("f16",)))
    every = [
        plan_of(facts, here, LoadSetting(n_layers, n_moe, "f16", 1024)) for n_layers in range(8) for n_moe in range(7)
    ]
    fastest = min(seconds_of(facts, here, plan, 1024) for plan in every if fits(plan))
    assert seconds_of(facts, here, best, 1024) <= 1.05 * fastest


def test_training_and_little_memory_shorten_the_context_and_say_so():
    judgement = fit_report(FACTS, machine(), n_ctx=9_000)
    assert judgement.plan.setting.n_ctx == 1024
    assert "trained for 1,024 tokens" in judgement.notes[0]
    long = replace(FACTS, n_ctx_train=1 << 20)
    judgement = fit_report(long, machine(host=300_000_000), wanted=FitRequest(1 << 18))
    assert judgement.verdict is FitVerdict.TIGHT
    assert judgement.plan.setting.n_ctx < 1 << 18
    assert "There is no room for 262,144 tokens" in judgement.notes[0]


def test_a_context_that_is_asked_for_and_has_no_room_does_not_fit():
    long, here = replace(FACTS, n_ctx_train=1 << 20), machine(host=300_000_000)
    judgement = fit_report(long, here, n_ctx=1 << 18)
    assert (judgement.verdict, judgement.fits, judgement.speed) == (FitVerdict.NO, False, None)
    fitting = judgement.fitting
    assert fitting is not None
    assert "It does not fit with 262,144 tokens of context: it needs" in judgement.sentence
    assert "on CPU even with a q4_0 cache, and 300 MB is free" in judgement.sentence
    assert f"{fitting.setting.n_ctx:,} tokens fit" in judgement.sentence
    longest = fitting.setting.n_ctx
    assert fit_report(long, here, n_ctx=longest).fits
    assert not fit_report(long, here, n_ctx=longest + 256).fits
    assert fit_report(long, here, wanted=FitRequest(1 << 18, may_shorten=False)).fitting == fitting


def test_no_memory_is_said_with_both_numbers():
    judgement = fit_report(FACTS, machine(host=8_000_000))
    assert (judgement.verdict, judgement.speed) == (FitVerdict.NO, None)
    assert "8.0 MB is free" in judgement.sentence
    assert "It needs 24 MB on CPU" in judgement.sentence
    judgement = fit_report(FACTS, machine(host=8_000_000), n_ctx=1024)
    assert (judgement.verdict, judgement.fitting) == (FitVerdict.NO, None)
    assert "nor with fewer" in judgement.sentence


def test_a_draft_takes_memory_and_may_bring_speed():
    draft, deep = read_model(EMBER_DRAFT), larger(FACTS, 50)
    quiet = machine(host=GB)
    with_draft = FitRequest(1024, draft=draft)
    alone, drafted = (
        fit_report(deep, quiet),
        fit_report(deep, quiet, wanted=with_draft, judged=AcceptanceCounts(1_000, 900)),
    )
    assert drafted.plan.total > alone.plan.total + draft.weight_bytes
    assert drafted.with_draft.rate > alone.speed.empty
    assert drafted.with_draft.is_acceptance_measured
    assert fit_report(deep, quiet, wanted=with_draft, judged=AcceptanceCounts(1_000, 0)).with_draft.depth == 0


def test_heads_are_judged_like_small_models_and_only_where_the_library_runs_them(tmp_path):
    facts = read_model(head_factory.cached_mtp_counter(16))
    wanted = FitRequest(1024, shape=EngineShape(uses_heads=True))
    found = fit_report(facts, machine(), wanted=wanted, judged=AcceptanceCounts(1_000, 950))
    assert found.with_draft.rate > 1.1 * found.speed.empty
    assert found.with_draft.is_acceptance_measured
    assert fit_report(facts, machine(), wanted=FitRequest(1024)).with_draft is None
    lacking = fit_report(facts, machine(), wanted=wanted, why_no_head=lambda kind: f"It lacks what {kind} needs.")
    assert lacking.with_draft is None
    assert "Its prediction heads cannot draft here. It lacks what mtp needs." in lacking.notes
    eagle = read_model(head_factory.eagle_head(tmp_path / "head.gguf"))
    beside = FitRequest(1024, draft=eagle)
    assert fit_report(larger(FACTS, 50), machine(), wanted=beside).with_draft.depth > 0
    lacking = fit_report(FACTS, machine(), wanted=beside, why_no_head=lambda kind: f"It lacks what {kind} needs.")
    assert (lacking.with_draft, lacking.notes[-1]) == (
        None,
        "Its EAGLE-3 head cannot draft here. It lacks what eagle3 needs.",
    )
    block = read_model(head_factory.dflash_head(tmp_path / "block.gguf"))
    lacking = fit_report(FACTS, machine(), wanted=FitRequest(1024, draft=block), why_no_head=lambda kind: f"No {kind}.")
    assert lacking.notes[-1] == "Its DFlash head cannot draft here. No dflash."


def test_a_draft_that_need_not_be_costs_neither_context_nor_precision():
    draft = read_model(EMBER_DRAFT)
    may, must = (FitRequest(1024, draft=draft, must_draft=must) for must in (False, True))
    alone = plan_of(FACTS, machine(), LoadSetting(0, 0, "f16", 1024)).total
    coarse = plan_of(FACTS, machine(), LoadSetting(0, 0, "q4_0", 1024), draft).total
    tight = machine(host=int(max(alone, coarse) / 0.95) + 1)
    left_out, kept = fit_report(FACTS, tight, wanted=may), fit_report(FACTS, tight, wanted=must)
    assert (left_out.plan.setting.kv_type, left_out.plan.has_draft, left_out.with_draft) == ("f16", False, None)
    assert "no room for its draft" in left_out.notes[0]
    assert (kept.plan.setting.kv_type, kept.plan.has_draft) == ("q4_0", True)
    assert fit_report(FACTS, machine(), wanted=may).plan.has_draft


def test_what_was_asked_for_is_kept():
    facts, here = larger(MOE, 200), machine(3 * GB)
    chosen = best_plan(facts, here, FitRequest(1024)).setting
    assert chosen.n_cpu_moe > 0
    more = FitRequest(1024, n_cpu_moe=6, n_gpu_layers=5, kv_types=("q8_0",))
    assert best_plan(facts, here, more).setting == LoadSetting(5, 6, "q8_0", 1024)
    assert best_plan(facts, here, FitRequest(1024, n_gpu_layers=7)).setting.n_cpu_moe > 0
    assert best_plan(facts, here, FitRequest(1024, n_gpu_layers=7, n_cpu_moe=0)) is None
    assert best_plan(facts, here, FitRequest(1024, n_gpu_layers=0)).setting == LoadSetting(0, 0, "f16", 1024)
    assert best_plan(facts, machine(), FitRequest(1024, n_gpu_layers=7, n_cpu_moe=9)).setting.n_cpu_moe == 6
    assert best_plan(FACTS, machine(host=40_000_000), FitRequest(1 << 20, may_shorten=False)) is None


@pytest.mark.parametrize("changes", [{"key_length": 80}, {"architecture": "grok"}])
def test_a_coarser_cache_is_only_for_models_that_llama_cpp_gives_one(changes):
    tight = machine(host=plan_of(FACTS, machine(), LoadSetting(0, 0, "f16", 1024)).total)
    assert best_plan(FACTS, tight, FitRequest(1024)).setting.kv_type == "q8_0"
    facts = replace(FACTS, **changes)
    assert best_plan(facts, tight, FitRequest(1024)) is None
    assert best_plan(facts, tight, FitRequest(1024, ("q8_0",))).setting.kv_type == "q8_0"


def test_a_machine_nobody_measured_has_no_speed_but_a_fit():
    judgement = fit_report(FACTS, machine(8 * GB, rate=None, gpu_rate=None))
    assert judgement.verdict is FitVerdict.GREEN
    assert (judgement.speed, judgement.lacks_speed) == (None, True)
    assert judgement.plan.setting.n_gpu_layers == 7


@pytest.mark.parametrize("n_ctx", [0, -5, 1 << 31, 1 << 60])
def test_a_context_that_cannot_be_is_refused(n_ctx):
    judgement = fit_report(FACTS, machine(), n_ctx=n_ctx)
    assert (judgement.verdict, judgement.plan) == (FitVerdict.UNUSABLE, None)
    assert f"{n_ctx:,} tokens is not possible" in judgement.sentence


def test_what_is_no_model_or_no_machine_is_refused():
    empty = replace(FACTS, n_layers=0, weight_map=replace(FACTS.weight_map, layers=()))
    assert "has no layers" in fit_report(empty, machine()).sentence
    assert fit_report(replace(FACTS, problem="It is broken."), machine()).sentence == "It is broken."
    with pytest.raises(ValueError, match="processor"):
        machine_of([MachineDevice("GPU0", DeviceKind.GPU, GB, GB)])


def test_windows_and_other_heads_limit_what_is_read():
    whole = work(FACTS, Placement.all_on(0, 6), machine().devices, n_past=1000)
    windowed = replace(FACTS, caches=tuple(replace(cache, window=100) for cache in FACTS.caches))
    part = work(windowed, Placement.all_on(0, 6), machine().devices, n_past=1000)
    assert part["CPU: cached F16"] == whole["CPU: cached F16"] / 10
    # Ember's keys serve two heads each.
    assert whole["CPU: cached F16"] == 2 * 1000 * FACTS.kv_bytes_per_token()


@pytest.mark.parametrize(("n_gpu_layers", "device"), [(0, 0), (7, 1)])
def test_a_projector_is_counted_where_it_works(n_gpu_layers: int, device: int) -> None:
    path = projector("gemma3")
    facts = read_projector(path)
    assert facts.weight_bytes == pytest.approx(path.stat().st_size, abs=8_192)
    assert facts.work_bytes > 0
    setting = LoadSetting(n_gpu_layers, 0, "f16", 1024)
    plain = plan_of(FACTS, machine(GB), setting).needs
    seeing = plan_of(FACTS, machine(GB), setting, shape=EngineShape(projector_bytes=facts.n_bytes)).needs
    more = [after.total - before.total for after, before in zip(seeing, plain, strict=True)]
    assert more[device] == facts.n_bytes
    assert sum(more) == facts.n_bytes
