"""A plan for loading a model: what goes to which device, and the memory that each needs. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from models.estimate.fit.memory import ONE_REQUEST, EngineShape, cells_in_window
from models.estimate.speed.machine import DeviceKind, Machine
from models.estimate.speed.work import Placement, bytes_on
from models.facts.model_facts import ModelFacts
from models.formatting.sentence import Sentence, joined


@dataclass(frozen=True, slots=True)
class LoadSetting:
    """The settings of a load: layers on GPUs (the output counts as one), the first ``n_cpu_moe`` without their experts.

    ``n_ctx`` is the context in tokens, ``kv_type`` the type of keys and values.
    """

    n_gpu_layers: int
    n_cpu_moe: int
    kv_type: str
    n_ctx: int

    @property
    def text(self) -> str:
        """The setting in words."""
        layers = Sentence("{n_layers} layers on GPUs", n_layers=self.n_gpu_layers) if self.n_gpu_layers else ""
        experts = Sentence("experts of {n_layers} layers on the processor", n_layers=self.n_cpu_moe)
        cache = Sentence("{kv_type} cache for {n_ctx:,} tokens", kv_type=self.kv_type, n_ctx=self.n_ctx)
        return joined([layers, experts if self.n_cpu_moe else "", cache], ", ")


@dataclass(frozen=True, slots=True)
class DeviceNeed:
    """Bytes that one device needs, and those that are free there. ``draft`` is all that drafting takes."""

    device: str
    kind: DeviceKind
    weights: int
    kv_cache: int
    compute: int
    draft: int
    free: int

    @property
    def total(self) -> int:
        """Bytes altogether."""
        return self.weights + self.kv_cache + self.compute + self.draft


@dataclass(frozen=True, slots=True)
class PlacementPlan:
    """A setting, its placement, the memory needs of each device in use, and whether it includes a draft."""

    setting: LoadSetting
    placement: Placement
    needs: tuple[DeviceNeed, ...]
    has_draft: bool = False

    @property
    def total(self) -> int:
        """Bytes on all devices."""
        return sum(need.total for need in self.needs)

    def use(self) -> float:
        """The need of the fullest device as a share of its free memory; integrated GPUs use the host's memory.

        Infinite if something is needed and nothing is free.
        """
        _, needed, free = self.fullest
        return _share(needed, free)

    @property
    def host_use(self) -> float:
        """The same for host memory alone."""
        return _share(self._host_need, self.needs[0].free)

    @property
    def gpu_use(self) -> float:
        """The same for the fullest GPU alone; 0 without GPUs."""
        gpus = (need for need in self.needs if need.kind is not DeviceKind.CPU)
        return max((_share(need.total, need.free) for need in gpus), default=0.0)

    @property
    def _host_need(self) -> int:
        return sum(need.total for need in self.needs if need.kind is not DeviceKind.GPU)

    @property
    def fullest(self) -> tuple[str, int, int]:
        """The memory with the largest share needed: name of the device, bytes needed, bytes free."""
        gpus = [(need.device, need.total, need.free) for need in self.needs if need.kind is not DeviceKind.CPU]
        host = (self.needs[0].device, self._host_need, self.needs[0].free)
        return max([host, *gpus], key=lambda memory: _share(memory[1], memory[2]))

    @property
    def is_split(self) -> bool:
        """Whether the model is partly on GPUs, which are then as full as they may be."""
        used = {*self.placement.layers, *self.placement.experts, self.placement.output}
        return 0 in used and len(used) > 1


def _share(needed: int, free: int) -> float:
    return needed / free if free > 0 else (float("inf") if needed else 0.0)


def plan_of(
    facts: ModelFacts,
    machine: Machine,
    setting: LoadSetting,
    draft: ModelFacts | None = None,
    shape: EngineShape = ONE_REQUEST,
    compute: int | None = None,
) -> PlacementPlan:
    """Place a model as llama.cpp does with these settings, and add up the memory; ``compute`` None: estimate it."""
    placement = place(facts.n_layers, machine, setting)
    devices = machine.devices
    need = shape.need(facts, setting.n_ctx, setting.kv_type, draft)
    need = need if compute is None else replace(need, compute=compute)
    weights = [int(n_bytes) for n_bytes in bytes_on(facts, placement, len(devices))]
    # Tables, and weights outside of the main layers, stay in host memory.
    n_twice = facts.weight_map.output.n_bytes if placement.output and _is_tied(facts) else 0
    weights[0] = max(0, facts.weight_bytes - sum(weights[1:]) + n_twice)
    # mtmd takes the first GPU if layers are on GPUs.
    weights[machine.gpus[0] if machine.gpus and setting.n_gpu_layers else 0] += need.projector
    in_window = cells_in_window(facts, setting.n_ctx, shape.n_slots, shape.n_ubatch)
    caches = _caches(facts, placement, setting, in_window, need.kv_cache, len(devices))
    used = {0, *placement.layers, *placement.experts, placement.output}
    drafts = [0] * len(devices)
    drafts[placement.layers[-1] if placement.layers else 0] = need.draft
    return PlacementPlan(
        setting,
        placement,
        tuple(
            DeviceNeed(
                device.name,
                device.kind,
                weights[i],
                caches[i],
                need.compute if i in used else 0,
                drafts[i],
                device.free,
            )
            for i, device in enumerate(devices)
            if i in used
        ),
        draft is not None,
    )


def place(n_layers: int, machine: Machine, setting: LoadSetting) -> Placement:
    """Place layers: the last ``n_gpu_layers`` go to GPUs, in proportion to free memory.

    As ``load_tensors`` in llama-model.cpp does. The processor keeps the others, and the experts of the first
    ``n_cpu_moe`` layers.
    """
    offloaded = min(max(setting.n_gpu_layers, 0), n_layers + 1) if machine.gpus else 0
    first = n_layers + 1 - offloaded
    edges = list(accumulate(machine.devices[gpu].free for gpu in machine.gpus))
    total = edges[-1] if edges else 0

    def device(position: int) -> int:
        if position < first:
            return 0
        at = (position - first) / offloaded * total
        return machine.gpus[min(bisect_right(edges, at), len(edges) - 1)]

    # llama.cpp counts from the first layer, and the output comes last.
    layers = tuple(device(layer) for layer in range(n_layers))
    experts = tuple(0 if layer < setting.n_cpu_moe else where for layer, where in enumerate(layers))
    return Placement(layers, experts, device(n_layers))


def _is_tied(facts: ModelFacts) -> bool:
    """Whether the output is the table of embeddings, which stays in host memory too.

    Sizes scaled from another file's header are inexact, so the comparison tolerates half an output.
    """
    parts = facts.weight_map
    inside = sum(layer.n_bytes for layer in parts.layers)
    return inside + parts.tables + parts.output.n_bytes / 2 > facts.weight_bytes


def _caches(
    facts: ModelFacts, placement: Placement, setting: LoadSetting, in_window: int, n_bytes: int, n_devices: int
) -> list[int]:
    """Split the bytes of the cache by the layers of each device; layers with a cut window keep ``in_window`` tokens."""
    sizes = list(_cache_sizes(facts, setting, in_window))
    whole = sum(size for _, size in sizes)
    found = [0] * n_devices
    if not whole:
        found[placement.layers[-1] if placement.layers else 0] = n_bytes
        return found
    for layer, size in sizes:
        found[placement.layers[layer] if layer < len(placement.layers) else placement.output] += size
    shares = [n_bytes * size // whole for size in found]
    shares[0] += n_bytes - sum(shares) if shares[0] else 0
    return shares


def _cache_sizes(facts: ModelFacts, setting: LoadSetting, in_window: int) -> Iterator[tuple[int, int]]:
    for cache in facts.caches:
        if cache.layer >= facts.n_layers:
            continue  # of a prediction head
        n_cells = in_window if cache.window else setting.n_ctx
        yield cache.layer, n_cells * cache.n_bytes(setting.kv_type)


def shortage(plan: PlacementPlan) -> Sequence[DeviceNeed]:
    """The devices that lack memory."""
    return tuple(need for need in plan.needs if need.total > need.free)
