"""The best plan of a model on a machine: a search over layers on GPUs, experts on the processor, KV type, context.

The context that is wanted comes first: it is only shortened where nothing fits. Among plans of one context the
predicted speed at the end of that context decides, and where it is not known, how much of the model is on GPUs. A
coarser KV type is looked at only where the finer one leaves a part of the model beside the GPUs, or does not fit at
all, and must then be clearly faster to be chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from models.fit.plan import Plan, Setting, plan_of
from models.machine import Machine
from models.memory import USABLE_SHARE
from models.model_facts import ModelFacts
from models.speed.work import work

KV_TYPES = ("f16", "q8_0", "q4_0")
SHORTEST_CTX = 2048
# What a coarser KV type must gain.
_WORTH_COARSER = 1.25
# With experts, about so many numbers of layers are tried.
_TRIED_LAYERS = 32


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a plan is looked for: context in tokens, KV types that may be used (finest first), a draft, and slots.

    ``compute`` are the bytes of compute buffers where they are known better than they can be estimated.
    """

    n_ctx: int
    kv_types: tuple[str, ...] = KV_TYPES
    draft: ModelFacts | None = None
    n_slots: int = 1
    compute: int | None = None


def best_plan(facts: ModelFacts, machine: Machine, wanted: Wanted) -> Plan | None:
    """Return the plan to choose, or None where none fits."""
    if facts.weight_bytes > sum(device.free for device in machine.devices):
        return None
    for n_ctx in _contexts(wanted.n_ctx):
        chosen: Plan | None = None
        for kv_type in wanted.kv_types:
            plans = [plan for plan in _plans(facts, machine, wanted, kv_type, n_ctx) if fits(plan)]
            if not plans:
                continue
            best = max(plans, key=lambda plan: _merit(facts, machine, plan))
            if chosen is None or _is_worth_it(facts, machine, best, chosen):
                chosen = best
            if not _is_split(facts, machine, chosen):
                return chosen
        if chosen is not None:
            return chosen
    return None


def least_plan(facts: ModelFacts, machine: Machine, wanted: Wanted) -> Plan:
    """Return the plan that needs the least memory, to say how much is lacking."""
    n_ctx = list(_contexts(wanted.n_ctx))[-1]
    plans = _plans(facts, machine, wanted, wanted.kv_types[-1], n_ctx)
    return min(plans, key=lambda plan: plan.use())


def fits(plan: Plan) -> bool:
    """Whether every device has the memory, and keeps a little."""
    return plan.use() <= USABLE_SHARE


def seconds_of(facts: ModelFacts, machine: Machine, plan: Plan, n_past: int) -> float | None:
    """Predicted seconds of a token behind ``n_past`` others; None where the machine is not known well enough."""
    amounts = work(facts, plan.placement, machine.traits, n_past=n_past, kv_type=plan.setting.kv_type)
    return machine.efficiency.seconds(amounts)


def _contexts(wanted: int) -> Iterator[int]:
    yield wanted
    n_ctx = wanted // 2
    while n_ctx >= SHORTEST_CTX:
        yield n_ctx
        n_ctx //= 2


def _plans(facts: ModelFacts, machine: Machine, wanted: Wanted, kv_type: str, n_ctx: int) -> Iterator[Plan]:
    """All that can be best: everything on the processor, and as much as fits on GPUs, layers or experts first."""

    def plan(n_gpu_layers: int, n_cpu_moe: int = 0) -> Plan:
        setting = Setting(n_gpu_layers, n_cpu_moe, kv_type, n_ctx)
        return plan_of(facts, machine, setting, wanted.draft, wanted.n_slots, wanted.compute)

    yield plan(0)
    if not machine.gpus:
        return
    everything = facts.n_layers + 1
    whole = _most(everything, lambda n: fits(plan(n)))
    yield plan(whole)
    if whole == everything or not facts.n_experts:
        return
    # Further layers have room where experts of the first ones stay behind.
    for n in range(everything, whole, -max(1, everything // _TRIED_LAYERS)):
        kept = _most(facts.n_layers, lambda k, n=n: fits(plan(n, facts.n_layers - k)))  # type: ignore[misc]
        yield plan(n, facts.n_layers - kept)


def _most(limit: int, is_possible: Callable[[int], bool]) -> int:
    """The largest number up to ``limit`` that is possible, where fewer always are; 0 where none is."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if is_possible(middle):
            low = middle
        else:
            high = middle - 1
    return low


def _merit(facts: ModelFacts, machine: Machine, plan: Plan) -> tuple[float, int]:
    seconds = seconds_of(facts, machine, plan, plan.setting.n_ctx)
    on_gpus = sum(need.weights for need in plan.needs[1:])
    return (1.0 / seconds if seconds else 0.0), on_gpus


def _is_split(facts: ModelFacts, machine: Machine, plan: Plan) -> bool:
    """Whether a part of the model is computed by the processor although there are GPUs."""
    setting = plan.setting
    return bool(machine.gpus) and (setting.n_gpu_layers <= facts.n_layers or setting.n_cpu_moe > 0)


def _is_worth_it(facts: ModelFacts, machine: Machine, coarser: Plan, finer: Plan) -> bool:
    (rate, on_gpus), (rate_now, on_gpus_now) = _merit(facts, machine, coarser), _merit(facts, machine, finer)
    return rate > _WORTH_COARSER * rate_now if rate_now else on_gpus > _WORTH_COARSER * on_gpus_now
