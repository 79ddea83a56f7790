"""Chooses how to load a model on this machine: the best plan for its options, before anything is loaded.

``python -m core.loading.memory_fit`` is the process of a dry run: it reads options as JSON, lets llama.cpp build the
context without allocating, and prints the bytes. llama.cpp aborts on many bad files.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from core.llama.build import HUGE_PAGES, features
from core.llama.devices import list_devices
from core.llama.heads import why_unavailable
from core.llama.library import listening
from core.llama.model import Model
from core.loading.contexts import open_context
from core.loading.memory_need import ContextSize, fit_request_of, pool_cells, read_facts, with_setting
from core.machine.host import gives_huge_pages
from core.machine.known_machine import known_machine, known_runs
from core.values.engine_options import Device, EngineOptions
from core.values.errors import ModelDoesNotFit, SlipstreamError
from models.estimate.fit.memory import CELL_PADDING, USABLE_SHARE, MemoryNeed, free_memory
from models.estimate.fit.plan import PlacementPlan, plan_of
from models.estimate.fit.search import (
    KV_TYPES,
    FitRequest,
    best_plan,
    fits,
    is_close,
    least_plan,
    most_possible,
    usual_ctx,
)
from models.estimate.speed.machine import Machine
from models.estimate.speed.work import Placement, work
from models.facts.model_facts import ModelFacts, read_model
from models.formatting.json_values import plain
from models.formatting.program import advice
from models.formatting.sentence import Sentence, joined
from models.gguf.errors import GgufError
from models.pairing import heads as rules
from models.pairing.gain import ProposerKind

# Reading a file takes up to half a second longer for each GB than mapping it, and the system's cache of it takes memory
# too for a while. So it is read only if it needs no more than this share of free memory.
_READ_SHARE = 0.25
# llama.cpp's number of GPU layers for all.
ALL_LAYERS = -1
ComputeBytes = Callable[[EngineOptions], int | None]
"""Gives the bytes of compute buffers with these options by a dry run; None if that fails."""


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """How to load a model: ``options`` with all choices made, and without a draft that does not fit.

    ``n_gpu_layers`` -1 is all layers; ``placement`` assigns layers to devices. ``notices`` are sentences about choices
    made and parts left out.
    """

    options: EngineOptions
    n_gpu_layers: int
    size: ContextSize
    placement: Placement
    notices: tuple[str, ...] = ()


def why_no_mtp_here(facts: ModelFacts) -> str | None:
    """Return why a model's prediction heads cannot be used, as a sentence; None where they can."""
    return rules.why_no_mtp(facts) or why_unavailable(ProposerKind.MTP)


def wants_mtp(facts: ModelFacts, options: EngineOptions) -> bool:
    """Return whether to load a model's prediction heads; with speculation "draft", a draft file replaces them."""
    if options.speculation == "off" or not options.uses_heads:
        return False
    if options.speculation == "draft" and options.draft_path is not None:
        return False
    return why_no_mtp_here(facts) is None


def usable_gpus(options: EngineOptions) -> tuple[Device, ...]:
    """Return the GPUs that the options allow, those of workers first."""
    gpus = [device for device in list_devices() if device.is_gpu]
    # A worker that another load has used is connected for good.
    borrowed = [gpu for gpu in gpus if gpu.lent is not None and gpu.lent.worker in options.workers]
    own = [gpu for gpu in gpus if gpu.lent is None]
    return (*borrowed, *(gpu for gpu in own if not options.devices or gpu.name in options.devices))


def machine_with(gpus: tuple[Device, ...], cache_folder: Path | None) -> Machine:
    """Return this machine with these GPUs; earlier measurements are read only if there are GPUs to choose."""
    if not gpus or cache_folder is None:
        return known_machine(gpus, free_memory())
    return known_machine(gpus, free_memory(), cache_folder, known_runs(cache_folder))


def fit(facts: ModelFacts, options: EngineOptions, machine: Machine, compute: ComputeBytes) -> LoadPlan:
    """Return how to load a model; raises ModelDoesNotFit with needed and free memory, and with what would fit."""
    draft = _draft(options)
    wanted = fit_request_of(facts, options, draft, uses_heads=wants_mtp(facts, options))
    tried = best_plan(facts, machine, wanted) or least_plan(facts, machine, wanted)
    if is_close(tried):
        wanted = replace(wanted, compute=compute(with_setting(options, tried.setting)))
    plan = best_plan(facts, machine, wanted)
    if plan is None:
        needed = wanted if wanted.must_draft else replace(wanted, draft=None)
        raise _does_not_fit(least_plan(facts, machine, needed), _way_out(facts, machine, needed))
    found = with_setting(options, plan.setting)
    notices = _notices(facts, machine, wanted, plan)
    if draft is not None and not plan.has_draft:
        both = plan_of(facts, machine, plan.setting, draft, wanted.shape, wanted.compute)
        name = Path(options.draft_path or "").name
        why = _does_not_fit(both, Sentence("Close other programs, or let it be."))
        notices = (
            Sentence("{name} does not draft: with it there is too little memory. {why}", name=name, why=why),
            *notices,
        )
        found = replace(found, draft_path=None)
    n_gpu_layers = ALL_LAYERS if plan.setting.n_gpu_layers > facts.n_layers else plan.setting.n_gpu_layers
    found = replace(found, mmap=is_mapped(facts, found, n_gpu_layers, machine.devices[0].free))
    size = _size(facts, options, machine, wanted, plan)
    if options.n_ctx is None and size.n_ctx == facts.n_ctx_short < usual_ctx(replace(facts, n_ctx_short=0)):
        how = advice("--ctx", Sentence("a context in the model's settings"))
        notices = (
            *notices,
            Sentence(
                "The context has {n_ctx:,} tokens: in a longer one the model reads every text in another way, short "
                "ones less well. Longer texts need {how}, up to {n_ctx_train:,} tokens.",
                n_ctx=size.n_ctx,
                how=how,
                n_ctx_train=facts.n_ctx_train,
            ),
        )
    return LoadPlan(found, n_gpu_layers, size, plan.placement, notices)


def is_mapped(facts: ModelFacts, options: EngineOptions, n_gpu_layers: int, free: int) -> bool:
    """Return whether to map a model's file into memory instead of reading it, with ``free`` bytes of host memory.

    Weights that were read lie in huge pages if llama.cpp and the system allow that. The processor's steps are then 4 to
    12 % faster.
    """
    if options.mmap is not None:
        return options.mmap
    can_gain = n_gpu_layers == 0 and HUGE_PAGES in features() and gives_huge_pages()
    return not can_gain or facts.n_bytes > free * _READ_SHARE


def why_so(facts: ModelFacts, plan: LoadPlan, machine: Machine) -> tuple[str, ...]:
    """Return a sentence on the layers on workers and the expected speed; empty without workers."""
    workers = " and ".join(plan.options.workers)
    if not workers:
        return ()
    used = {*plan.placement.layers, plan.placement.output}
    lent = [device.lent for number, device in enumerate(machine.devices) if number in used and device.lent is not None]
    if not lent:
        how = advice("--gpu-layers", Sentence("a number of GPU layers in the model's settings"))
        return (
            Sentence(
                "This machine alone is expected to be faster, so nothing is on {workers}; {how} insists.",
                workers=workers,
                how=how,
            ),
        )
    n_layers = sum(machine.devices[where].lent is not None for where in plan.placement.layers)
    amounts = work(facts, plan.placement, machine.devices, n_past=0, kv_type=plan.options.cache_type)
    seconds = machine.efficiency.seconds(amounts)
    slowest = min((one.link for one in lent), key=lambda link: link.bandwidth)
    return (
        Sentence(
            "{n_layers} of {n_all} layers are on {workers}, over {pace:,.0f} MB/s with {latency:.2f} ms there and "
            "back{speed}.",
            n_layers=n_layers,
            n_all=facts.n_layers,
            workers=workers,
            pace=slowest.bandwidth / 1e6,
            latency=slowest.latency * 1000,
            speed=Sentence(": {rate:expected} (an estimate)", rate=1.0 / seconds) if seconds else "",
        ),
    )


def context_size(facts: ModelFacts, options: EngineOptions, free: int | None = None) -> ContextSize:
    """Return the context sizes for the wanted length, with ``free`` bytes (None: the host's free memory)."""
    pool = int(free_memory() * USABLE_SHARE) if free is None else free
    n_ctx = options.n_ctx or min(usual_ctx(facts), options.n_cells or usual_ctx(facts))
    per_token = facts.kv_bytes_per_further_token(options.cache_type) * facts.n_caches(options.n_slots)
    room = pool - facts.weight_bytes
    n_cells = options.n_cells or pool_cells(n_ctx, options.n_slots, per_token, room)
    return ContextSize(n_ctx, -(-n_cells // CELL_PADDING) * CELL_PADDING)


def _draft(options: EngineOptions) -> ModelFacts | None:
    """Read the facts of the draft file; None if it cannot be read (loading it reports the error)."""
    if options.speculation == "off" or options.draft_path is None:
        return None
    try:
        return read_model(Path(options.draft_path))
    except GgufError:
        return None


def _size(
    facts: ModelFacts, options: EngineOptions, machine: Machine, wanted: FitRequest, plan: PlacementPlan
) -> ContextSize:
    """Return the sizes of a plan: cells for several requests only if there is enough room."""
    setting = plan.setting
    if options.n_cells is not None:
        return context_size(facts, options, 0)
    keeping = [need for need in plan.needs if need.kv_cache]
    room = sum(int(need.free * USABLE_SHARE) - need.weights for need in keeping)
    per_token = facts.kv_bytes_per_further_token(setting.kv_type) * facts.n_caches(options.n_slots)
    n_cells = pool_cells(setting.n_ctx, options.n_slots, per_token, room)

    def has_room(n_more: int) -> bool:
        larger = replace(setting, n_ctx=setting.n_ctx + n_more * CELL_PADDING)
        return fits(plan_of(facts, machine, larger, wanted.draft if plan.has_draft else None, wanted.shape))

    n_more = most_possible(-(-(n_cells - setting.n_ctx) // CELL_PADDING), has_room)
    n_cells = min(n_cells, setting.n_ctx + n_more * CELL_PADDING)
    return ContextSize(setting.n_ctx, -(-n_cells // CELL_PADDING) * CELL_PADDING)


def _notices(facts: ModelFacts, machine: Machine, wanted: FitRequest, plan: PlacementPlan) -> tuple[str, ...]:
    setting, everything = plan.setting, facts.n_layers + 1
    chosen = []
    if wanted.n_gpu_layers is None and machine.gpus and setting.n_gpu_layers < everything:
        chosen.append(
            Sentence(
                "{n_gpu_layers} of {everything} layers on GPUs",
                n_gpu_layers=setting.n_gpu_layers,
                everything=everything,
            )
        )
    if wanted.n_cpu_moe is None and setting.n_cpu_moe:
        chosen.append(Sentence("the experts of {n_cpu_moe} layers on the processor", n_cpu_moe=setting.n_cpu_moe))
    if setting.kv_type != wanted.kv_types[0]:
        chosen.append(
            Sentence(
                "a KV cache of type {kv_type} instead of {usual}", kv_type=setting.kv_type, usual=wanted.kv_types[0]
            )
        )
    if setting.n_ctx < wanted.n_ctx:
        chosen.append(
            Sentence(
                "a context of {n_ctx:,} tokens instead of {wanted_n_ctx:,}",
                n_ctx=setting.n_ctx,
                wanted_n_ctx=wanted.n_ctx,
            )
        )
    if not chosen:
        return ()
    parts = _and(chosen)
    return (Sentence("Because this fits the free memory and is fastest, it is loaded with {chosen}.", chosen=parts),)


def _does_not_fit(plan: PlacementPlan, advice: str) -> ModelDoesNotFit:
    setting, (device, needed, free) = plan.setting, plan.fullest
    weights, kv_cache = sum(need.weights for need in plan.needs), sum(need.kv_cache for need in plan.needs)
    drafts = sum(need.draft for need in plan.needs)
    detail = Sentence(
        "Weights take {weights:size}, the KV cache of {n_ctx:,} tokens in {kv_type} {kv_cache:size}{drafts}. {advice}",
        weights=weights,
        n_ctx=setting.n_ctx,
        kv_type=setting.kv_type,
        kv_cache=kv_cache,
        drafts=Sentence(", what drafts {drafts:size}", drafts=drafts) if drafts else "",
        advice=advice,
    )
    return ModelDoesNotFit(needed, int(free * USABLE_SHARE), detail, device if len(plan.needs) > 1 else "")


def _way_out(facts: ModelFacts, machine: Machine, wanted: FitRequest) -> str:
    """Return which set options to leave open so that the model fits; else general advice."""
    opened = list(_openings(facts, wanted))
    for names, changes in [*(([name], change) for name, change in opened), _together(opened)]:
        plan = best_plan(facts, machine, replace(wanted, **changes)) if names else None
        if plan is not None:
            return Sentence("It fits without asking for {names}: {text}.", names=_and(names), text=plan.setting.text)
    return Sentence("Choose a smaller quantisation or a smaller context, or close other programs.")


def _openings(facts: ModelFacts, wanted: FitRequest) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each set option by name, with the change that leaves it open."""
    if len(wanted.kv_types) == 1:
        yield Sentence("a KV cache of type {kv_type}", kv_type=wanted.kv_types[0]), {"kv_types": KV_TYPES}
    if wanted.n_cpu_moe is not None:
        yield (
            Sentence("experts of {n_cpu_moe} layers on the processor", n_cpu_moe=wanted.n_cpu_moe),
            {"n_cpu_moe": None},
        )
    if wanted.n_gpu_layers is not None:
        yield Sentence("{n_gpu_layers} GPU layers", n_gpu_layers=wanted.n_gpu_layers), {"n_gpu_layers": None}
    if not wanted.may_shorten:
        # Start from the trained context at most: beyond it a model's output is useless.
        n_ctx = min(wanted.n_ctx, facts.n_ctx_train or wanted.n_ctx)
        yield Sentence("{n_ctx:,} tokens of context", n_ctx=wanted.n_ctx), {"may_shorten": True, "n_ctx": n_ctx}
    if wanted.draft is not None:
        yield Sentence("a draft"), {"draft": None}


def _together(opened: list[tuple[str, dict[str, Any]]]) -> tuple[list[str], dict[str, Any]]:
    return [name for name, _ in opened], {key: value for _, change in opened for key, value in change.items()}


def _and(parts: Sequence[str]) -> str:
    *first, last = parts
    return Sentence("{first} and {last}", first=joined(first, ", "), last=last) if first else last


def layers_on_gpu(n_gpu_layers: int, n_layers: int) -> int:
    """Return the number of offloaded layers, with the output counted as one more."""
    return n_layers + 1 if n_gpu_layers == ALL_LAYERS else n_gpu_layers


# -- the process of a dry run -------------------------------------------------------------------------------------


def _dry_run_here(options: EngineOptions) -> MemoryNeed:
    facts = read_facts(options.model_path)
    with listening() as allocations:
        bounded = replace(options, n_cpu_moe=min(options.n_cpu_moe or 0, facts.n_layers))
        model = Model(options.model_path, bounded, n_gpu_layers=options.n_gpu_layers or 0, no_alloc=True)
        size = context_size(facts, options)
        context = open_context(model, facts, options, size)
        context.close()
        model.close()
    cache = allocations["llama_kv_cache"] + allocations["RS"]
    # The buffer for logits grows to this size with the first step that needs it.
    output = max(allocations["output"], context.n_outputs * context.n_vocab * 4)
    return MemoryNeed(facts.weight_bytes, cache, allocations["compute"] + output)


def main() -> int:
    """Print the bytes for the options on standard input."""
    try:
        fields = json.load(sys.stdin)
        options = EngineOptions(**{**fields, "devices": tuple(fields["devices"])})
        answer = asdict(_dry_run_here(replace(options, draft_path=None)))
    except SlipstreamError as error:
        answer = {"problem": plain(error.message)}
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
