"""The work of one decoded token on each device, counted from a model's header. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from models.facts.layer_weights import LayerWeights
from models.facts.model_facts import LayerCache, ModelFacts

if TYPE_CHECKING:
    from models.estimate.speed.machine import MachineDevice

STEP, LAYER, EXPERT_LAYER, STATE, LINK = "step", "layer", "expert layer", "state", "link"
# Weights of up to _ALL_STAYS times the cache's size stay in the cache. Of more than _NONE_STAYS times its size nothing
# stays: each byte is evicted before it is read again. In between, a part stays (measured on deep models of 8 to 500
# MB).
_ALL_STAYS, _NONE_STAYS = 0.6, 1.2
Amounts = Mapping[str, float]
"""Amounts of work by name: "weights Q4_0" in bytes, "layer" in layers, and so on."""


def weights(type_name: str) -> str:
    """Name of the amount: bytes of matrices of this tensor type that every token reads."""
    return f"weights {type_name.upper()}"


def experts(type_name: str) -> str:
    """Name of the amount: bytes of chosen experts of this tensor type."""
    return f"experts {type_name.upper()}"


def near(name: str) -> str:
    """Name of the amount: the bytes of another amount that are found in the device's own cache."""
    return f"near {name}"


def cached(kv_type: str) -> str:
    """Name of the amount: bytes of keys and values of this type that attention reads."""
    return f"cached {kv_type.upper()}"


@dataclass(frozen=True, slots=True)
class Placement:
    """Which device (by number) holds each layer, each layer's experts, and the output."""

    layers: tuple[int, ...]
    experts: tuple[int, ...]
    output: int

    @classmethod
    def all_on(cls, device: int, n_layers: int) -> Placement:
        """Everything on one device."""
        return cls((device,) * n_layers, (device,) * n_layers, device)


def work(
    facts: ModelFacts, placement: Placement, devices: Sequence[MachineDevice], *, n_past: int, kv_type: str = "f16"
) -> Amounts:
    """Amounts of one decoded token after ``n_past`` others; names are "DEVICE: AMOUNT"."""
    done: list[dict[str, float]] = [defaultdict(float) for _ in devices]
    # Each token chooses other experts, so all of them compete for the cache.
    count = len(devices)
    sizes = bytes_on(facts, placement, count) if any(device.cache for device in devices) else [0.0] * count
    far = [_far_share(device, size) for device, size in zip(devices, sizes, strict=True)]

    def read(where: int, name: str, n_bytes: float) -> None:
        if far[where] > 0.0:
            done[where][name] += n_bytes * far[where]
        if far[where] < 1.0:
            done[where][near(name)] += n_bytes * (1.0 - far[where])

    for layer, where, of_experts in zip(facts.weight_map.layers, placement.layers, placement.experts, strict=True):
        done[where][LAYER] += 1
        for type_name, n_bytes in layer.shared:
            read(where, weights(type_name), n_bytes)
        for type_name, n_bytes in layer.experts:
            read(of_experts, experts(type_name), n_bytes * facts.expert_share)
        if layer.experts:
            done[of_experts][EXPERT_LAYER] += 1
    for type_name, n_bytes in facts.weight_map.output.shared:
        read(placement.output, weights(type_name), n_bytes)
    for cache in facts.caches:
        if cache.layer < len(placement.layers):
            where = placement.layers[cache.layer]
            per_head = _heads_per_key(facts, cache) if devices[where].is_processor else 1.0
            seen = min(n_past, cache.window) if cache.window else n_past
            done[where][cached(kv_type)] += seen * per_head * cache.n_bytes(kv_type)
    for where, device in enumerate(devices):
        if device.lent is not None and done[where]:
            n_out = facts.n_vocab if placement.output == where else facts.n_embd
            done[where][LINK] = 4.0 * (facts.n_embd + n_out)
    if facts.state_elements and placement.layers:
        done[placement.layers[-1]][STATE] += facts.state_bytes
    return {
        f"{device.name}: {name}": amount
        for device, amounts in zip(devices, done, strict=True)
        for name, amount in ({STEP: 1.0} | amounts if amounts else {}).items()
    }


def bytes_on(facts: ModelFacts, placement: Placement, n_devices: int, expert_share: float = 1.0) -> list[float]:
    """Bytes of weights on each device, with ``expert_share`` of the experts."""
    sizes = [0.0] * n_devices
    for layer, where, of_experts in zip(facts.weight_map.layers, placement.layers, placement.experts, strict=True):
        sizes[where] += layer.n_bytes - layer.expert_bytes
        sizes[of_experts] += layer.expert_bytes * expert_share
    sizes[placement.output] += facts.weight_map.output.n_bytes
    return sizes


def _far_share(device: MachineDevice, size: float) -> float:
    """The share of ``size`` bytes of weights that a device reads from memory instead of its cache."""
    if not device.cache:
        return 1.0
    return min(max((size / device.cache - _ALL_STAYS) / (_NONE_STAYS - _ALL_STAYS), 0.0), 1.0)


def _heads_per_key(facts: ModelFacts, cache: LayerCache) -> float:
    """Query heads that share one head of keys."""
    n_kv = facts.n_kv_heads[cache.layer] if cache.layer < len(facts.n_kv_heads) else 0
    return facts.n_heads / n_kv if n_kv and facts.n_heads > n_kv else 1.0


def reads_of_file(head: ModelFacts, target: ModelFacts) -> LayerWeights:
    """The weights that a head in a file of its own reads for a token, beside the model ``target``.

    The encoder of the model's hidden states is included, although it is read for accepted tokens only.
    """
    borrowed = () if head.has_output else (target.weight_map.output,)
    layers = head.weight_map.layers
    return LayerWeights().with_shared(*layers, head.weight_map.output, *borrowed)


def head_work(reads: LayerWeights, model: ModelFacts, device: MachineDevice, n_layers: int) -> Amounts:
    """Amounts of one drafted token on a device; ``model`` says how many of the experts are chosen."""
    done = {STEP: 1.0, LAYER: float(n_layers)}
    for type_name, n_bytes in reads.shared:
        done[weights(type_name)] = float(n_bytes)
    for type_name, n_bytes in reads.experts:
        done[experts(type_name)] = n_bytes * model.expert_share
        done[EXPERT_LAYER] = 1.0
    return {f"{device.name}: {name}": amount for name, amount in done.items()}
