"""The best plan of a model on a machine: a search over layers on GPUs, experts on the processor, KV type, context.

The wanted context comes first: it is only shortened if nothing fits. Among plans of one context the predicted speed at
the end of that context decides; if it is unknown, the bytes on GPUs do. A coarser KV type is tried only if the finer
one does not fit or leaves a part of the model off the GPUs, and must then be clearly faster. A user's own settings are
never changed.

Fit reports and loads both take their plans from here, so a model is loaded as its report says.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from models.estimate.fit.memory import ONE_REQUEST, USABLE_SHARE, EngineShape
from models.estimate.fit.plan import LoadSetting, PlacementPlan, plan_of
from models.estimate.speed.machine import Machine
from models.estimate.speed.work import work
from models.facts import architectures
from models.facts.model_facts import ModelFacts
from models.gguf.tensor_types import BY_NAME

KV_TYPES = ("f16", "q8_0", "q4_0")
# Tokens: the default context, the shortest one that is offered, and the step of a search for the longest.
USUAL_CTX = 8192
SHORTEST_CTX = 2048
CTX_STEP = 256
# A coarser KV type must be faster by this factor.
_WORTH_COARSER = 1.25
# For a model with experts, about this many different numbers of GPU layers are tried.
_TRIED_LAYERS = 32
# A plan that takes a share of the free memory in this range is checked by a dry run of llama.cpp, because an estimate
# could decide wrongly.
_CLOSE = (0.7, 1.3)


@dataclass(frozen=True, slots=True)
class FitRequest:
    """The wishes of a plan: context in tokens, allowed KV types (the wanted one first), a draft.

    ``n_gpu_layers`` and ``n_cpu_moe`` are chosen if None. The context may be shortened if it ``may_shorten`` and
    nothing fits. Without ``must_draft`` a draft is left out if it would cost context or precision of the cache.
    ``shape`` is the engine's; ``compute`` are the bytes of compute buffers if a dry run has measured them.
    """

    n_ctx: int
    kv_types: tuple[str, ...] = KV_TYPES
    draft: ModelFacts | None = None
    shape: EngineShape = ONE_REQUEST
    compute: int | None = None
    n_gpu_layers: int | None = None
    n_cpu_moe: int | None = None
    may_shorten: bool = True
    must_draft: bool = True


def usual_ctx(facts: ModelFacts) -> int:
    """The default context: what the model was trained for, at most 8,192 tokens and those of ``n_ctx_short``."""
    return min(facts.n_ctx_train or USUAL_CTX, facts.n_ctx_short or USUAL_CTX, USUAL_CTX)


def best_plan(facts: ModelFacts, machine: Machine, wanted: FitRequest) -> PlacementPlan | None:
    """Return the best plan, or None if none fits."""
    if wanted.draft is None or wanted.must_draft:
        return _best(facts, machine, wanted)
    alone = _best(facts, machine, replace(wanted, draft=None))
    drafted = _best(facts, machine, wanted)
    return drafted if alone is not None and drafted is not None and _is_as_good(drafted, alone) else alone


def _is_as_good(one: PlacementPlan, other: PlacementPlan) -> bool:
    return (one.setting.n_ctx, one.setting.kv_type) == (other.setting.n_ctx, other.setting.kv_type)


def _best(facts: ModelFacts, machine: Machine, wanted: FitRequest) -> PlacementPlan | None:
    if facts.weight_bytes > sum(device.free for device in machine.devices):
        return None
    whole = _asked(facts, machine, wanted)
    for n_ctx in _contexts(wanted):
        chosen: PlacementPlan | None = None
        for kv_type in _kv_types(facts, wanted):
            plans = [plan for plan in _plans(facts, machine, wanted, kv_type, n_ctx) if fits(plan)]
            if not plans:
                continue
            merits = _merits(facts, machine, plans)
            best = plans[merits.index(max(merits))]
            if chosen is None or _is_worth_it(facts, machine, best, chosen):
                chosen = best
            if any((plan.setting.n_gpu_layers, plan.setting.n_cpu_moe) == whole for plan in plans):
                return chosen
        if chosen is not None:
            return chosen
    return None


def least_plan(facts: ModelFacts, machine: Machine, wanted: FitRequest) -> PlacementPlan:
    """Return the plan that needs the least memory, to say how much is lacking."""
    n_ctx = list(_contexts(wanted))[-1]
    plans = _plans(facts, machine, wanted, _kv_types(facts, wanted)[-1], n_ctx)
    return min(plans, key=lambda plan: plan.use())


def longest_plan(facts: ModelFacts, machine: Machine, wanted: FitRequest) -> PlacementPlan | None:
    """Return the plan with the longest context that fits, up to the wanted one; None if none fits."""

    def plan(n_steps: int) -> PlacementPlan | None:
        return best_plan(facts, machine, replace(wanted, n_ctx=n_steps * CTX_STEP, may_shorten=False))

    most = most_possible(wanted.n_ctx // CTX_STEP, lambda n_steps: plan(n_steps) is not None)
    return plan(most) if most else None


def fits(plan: PlacementPlan) -> bool:
    """Whether every device has enough usable memory."""
    return plan.use() <= USABLE_SHARE


def _fits_gpus(plan: PlacementPlan) -> bool:
    """Whether every GPU has enough memory: fewer layers make that likelier, and need more host memory."""
    return plan.gpu_use <= USABLE_SHARE


def is_close(plan: PlacementPlan) -> bool:
    """Whether the estimate is too close to call, so that a dry run of llama.cpp should decide."""
    return _CLOSE[0] <= plan.use() <= _CLOSE[1]


def seconds_of(facts: ModelFacts, machine: Machine, plan: PlacementPlan, n_past: int) -> float | None:
    """Predicted seconds of a token after ``n_past`` others; None if too little of the machine was measured."""
    amounts = work(facts, plan.placement, machine.devices, n_past=n_past, kv_type=plan.setting.kv_type)
    return machine.efficiency.seconds(amounts)


def _contexts(wanted: FitRequest) -> Iterator[int]:
    yield wanted.n_ctx
    n_ctx = wanted.n_ctx // 2
    while wanted.may_shorten and n_ctx >= SHORTEST_CTX:
        yield n_ctx
        n_ctx //= 2


def _kv_types(facts: ModelFacts, wanted: FitRequest) -> tuple[str, ...]:
    """The wanted type, and those after it that llama.cpp can use with this model (``llama_init_from_model``)."""
    first, *others = wanted.kv_types
    if not wanted.shape.flash_attention or facts.architecture in architectures.NO_FLASH_ATTENTION:
        return (first,)
    lengths = (facts.key_length, facts.value_length)
    blocks = {kv_type: BY_NAME[kv_type].block_size for kv_type in others}
    return (first, *(each for each in others if not any(length % blocks[each] for length in lengths)))


def _asked(facts: ModelFacts, machine: Machine, wanted: FitRequest) -> tuple[int, int]:
    """The most layers that may go to GPUs, and the fewest of them that leave their experts behind."""
    everything = facts.n_layers + 1 if machine.gpus else 0
    most = everything if wanted.n_gpu_layers is None else min(wanted.n_gpu_layers, everything)
    return most, min(wanted.n_cpu_moe or 0, facts.n_layers) if facts.n_experts else 0


def _plans(
    facts: ModelFacts, machine: Machine, wanted: FitRequest, kv_type: str, n_ctx: int
) -> Iterator[PlacementPlan]:
    """All candidates: everything on the processor, and as much as fits on GPUs, layers or experts first."""
    most, fewest = _asked(facts, machine, wanted)

    def plan(n_gpu_layers: int, n_cpu_moe: int = fewest) -> PlacementPlan:
        setting = LoadSetting(n_gpu_layers, n_cpu_moe, kv_type, n_ctx)
        return plan_of(facts, machine, setting, wanted.draft, wanted.shape, wanted.compute)

    def has_room(n_gpu_layers: int, n_with_experts: int) -> bool:
        return _fits_gpus(plan(n_gpu_layers, facts.n_layers - n_with_experts))

    may_choose = wanted.n_gpu_layers is None
    if may_choose or not most:
        yield plan(0)
    if not most:
        return
    whole = most_possible(most, lambda n: _fits_gpus(plan(n))) if may_choose else most
    yield plan(whole)
    if wanted.n_cpu_moe is not None or not facts.n_experts or (whole == most and fits(plan(most))):
        return
    # Further layers fit if experts of the first ones stay in host memory.
    for n in range(most, whole, -max(1, most // _TRIED_LAYERS)) if may_choose else (most,):
        kept = most_possible(facts.n_layers, partial(has_room, n))
        yield plan(n, facts.n_layers - kept)


def most_possible(limit: int, is_possible: Callable[[int], bool]) -> int:
    """The largest possible number up to ``limit``, if all smaller ones are possible; 0 if none is."""
    return bisect_left(range(1, limit + 1), True, key=lambda number: not is_possible(number))


def _merits(facts: ModelFacts, machine: Machine, plans: Sequence[PlacementPlan]) -> list[tuple[float, int]]:
    """Return what is to be as high as possible, for each plan: tokens per second, and bytes on GPUs.

    Speeds count only if that of every plan is known: a GPU that was not measured yet is not slower than a processor
    that was.
    """
    seconds = [seconds_of(facts, machine, plan, plan.setting.n_ctx) for plan in plans]
    on_gpus = [sum(need.weights for need in plan.needs[1:]) for plan in plans]
    return [(1.0 / each if each and all(seconds) else 0.0, n) for each, n in zip(seconds, on_gpus, strict=True)]


def _is_worth_it(facts: ModelFacts, machine: Machine, coarser: PlacementPlan, finer: PlacementPlan) -> bool:
    (rate, on_gpus), (rate_now, on_gpus_now) = _merits(facts, machine, (coarser, finer))
    return rate > _WORTH_COARSER * rate_now if rate_now else on_gpus > _WORTH_COARSER * on_gpus_now
