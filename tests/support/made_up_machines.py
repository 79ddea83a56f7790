"""Models as large as one likes, on machines that do not exist."""

from __future__ import annotations

from dataclasses import replace

from models.facts.layer_weights import LayerWeights
from models.facts.model_facts import ModelFacts


def larger(facts: ModelFacts, factor: int) -> ModelFacts:
    """A model whose matrices are ``factor`` times as large."""

    def layer(weights: LayerWeights) -> LayerWeights:
        return LayerWeights(
            tuple((name, n * factor) for name, n in weights.shared),
            tuple((name, n * factor) for name, n in weights.experts),
        )

    parts = facts.weight_map
    grown = replace(
        parts, layers=tuple(map(layer, parts.layers)), output=layer(parts.output), tables=parts.tables * factor
    )
    return replace(facts, weight_bytes=facts.weight_bytes * factor, weight_map=grown)
