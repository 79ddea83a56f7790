"""The facts of another quantisation of a model, scaled from those of one."""

from __future__ import annotations

from dataclasses import replace

from models.facts.layer_weights import BytesByType, LayerWeights
from models.facts.model_facts import ModelFacts, WeightBytes
from models.facts.quantisation_rank import main_type
from models.gguf.tensor_types import BY_NAME


def resized(facts: ModelFacts, quantisation: str, n_bytes: int) -> ModelFacts:
    """The facts that another quantisation of the same model has, as its file of ``n_bytes`` says.

    One header is enough to judge all files of a repository: matrices scale with the file, small tensors do not matter.
    """
    ratio = n_bytes / max(facts.n_bytes, 1)
    name = main_type(quantisation) if main_type(quantisation).lower() in BY_NAME else main_type(facts.quantisation)

    def scaled(sizes: BytesByType) -> BytesByType:
        total = sum(size for type_name, size in sizes if type_name != "F32")
        kept = tuple(item for item in sizes if item[0] == "F32")
        return (*kept, (name, round(total * ratio))) if total else kept

    def layer(weights: LayerWeights) -> LayerWeights:
        return LayerWeights(scaled(weights.shared), scaled(weights.experts))

    parts, active = facts.weight_map, facts.active_weights
    return replace(
        facts,
        quantisation=quantisation,
        n_bytes=n_bytes,
        weight_bytes=round(facts.weight_bytes * ratio),
        active_weights=WeightBytes(
            round(active.shared * ratio), round(active.experts * ratio), active.n_experts, active.n_experts_used
        ),
        mtp_head=layer(facts.mtp_head),
        weight_map=replace(
            parts,
            layers=tuple(layer(weights) for weights in parts.layers),
            output=layer(parts.output),
            tables=round(parts.tables * ratio),
        ),
    )
