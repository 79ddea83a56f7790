"""What one token of a drafting head makes a device do, counted from the headers of the head and its model. Pure.

A head is a layer or a few, and an output. Beside its own weights it may read its model's output.
"""

from __future__ import annotations

from models.estimate.speed.work import EXPERT_LAYER, LAYER, STEP, Amounts, DeviceTraits, experts, weights
from models.facts.layer_weights import LayerWeights
from models.facts.model_facts import ModelFacts


def reads_of_file(head: ModelFacts, target: ModelFacts) -> LayerWeights:
    """What a head in a file of its own reads for a token, beside the model ``target``.

    The map from the model's hidden states counts with it: it is read for what is accepted, not for each drafted token.
    """
    borrowed = () if head.has_output else (target.weight_map.output,)
    layers = head.weight_map.layers
    return LayerWeights().with_shared(*layers, head.weight_map.output, *borrowed)


def head_work(reads: LayerWeights, model: ModelFacts, device: DeviceTraits, n_layers: int = 1) -> Amounts:
    """Amounts of one drafted token on a device; ``model`` says how many of the experts are chosen."""
    share = model.n_experts_used / model.n_experts if model.n_experts else 0.0
    done = {STEP: 1.0, LAYER: float(n_layers)}
    for type_name, n_bytes in reads.shared:
        done[weights(type_name)] = float(n_bytes)
    for type_name, n_bytes in reads.experts:
        done[experts(type_name)] = n_bytes * share
        done[EXPERT_LAYER] = 1.0
    return {f"{device.key}: {name}": amount for name, amount in done.items()}
