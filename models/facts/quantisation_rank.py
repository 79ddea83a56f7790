"""Quantisations from the best to the smallest, and the facts of one scaled from those of another.

Sorted by the Kullback-Leibler divergence from the unquantised model: the LLaMA 3 8B scoreboard in llama.cpp's
tools/perplexity/README.md. Types that are not in it are placed by size; MXFP4 and NVFP4, in which some models are
trained, rank above the four-bit types.
"""

from __future__ import annotations

from dataclasses import replace

from models.facts.layer_weights import BytesByType, LayerWeights
from models.facts.model_facts import ModelFacts, WeightBytes
from models.gguf.tensor_types import BY_NAME

_ORDER = (
    *("F32", "BF16", "F16", "Q8_0", "Q6_K", "Q5_K_M", "Q5_K_S", "Q5_1", "Q5_0", "MXFP4", "NVFP4"),
    *("Q4_K_L", "Q4_K_M", "Q4_K_S", "IQ4_NL", "IQ4_XS", "Q4_1", "Q4_0", "Q3_K_XL", "Q3_K_L", "Q3_K_M"),
    *("IQ3_M", "IQ3_S", "IQ3_XS", "IQ3_XXS", "Q3_K_S", "IQ2_M", "Q2_K_L", "Q2_K", "Q2_K_S", "IQ2_S", "IQ2_XS"),
    *("IQ2_XXS", "TQ2_0", "TQ1_0", "IQ1_M", "IQ1_S", "Q2_0", "Q1_0"),
)
_RANKS = {name: rank for rank, name in enumerate(_ORDER)}
# Larger types than this are no better by any measure.
LOSSLESS = "Q8_0"
# The main type of these mixtures is not in their name.
_MAIN_TYPES = {"IQ3_M": "IQ3_S", "IQ3_XS": "IQ3_XXS", "IQ2_M": "IQ2_S"}


def rank(quantisation: str) -> int | None:
    """Place in the order, 0 for the best; None for names that are not in it."""
    name = _plain(quantisation)
    if name in _RANKS:
        return _RANKS[name]
    # Publishers' own mixtures rank like the type they are based on: Q4_K_XL like Q4_K_L, Q6_K_L like Q6_K.
    for ending, instead in (("_XL", "_L"), ("_XL", "_M"), ("_L", "_M"), ("_XL", ""), ("_L", "")):
        if name.endswith(ending) and (other := name.removesuffix(ending) + instead) in _RANKS:
            return _RANKS[other]
    return None


def is_needless(quantisation: str) -> bool:
    """Whether it is larger than Q8_0, which is as good by any measure."""
    found = rank(quantisation)
    return found is not None and found < _RANKS[LOSSLESS]


def main_type(quantisation: str) -> str:
    """The tensor type that holds most of such a file: "Q4_K" of "Q4_K_M"."""
    name = _plain(quantisation)
    if name in _MAIN_TYPES:
        return _MAIN_TYPES[name]
    parts = name.split("_")
    return "_".join(parts[:2]) if len(parts) > 2 else name


def _plain(quantisation: str) -> str:
    return quantisation.upper().removeprefix("UD-").removesuffix("_MOE")


def resized(facts: ModelFacts, quantisation: str, n_bytes: int) -> ModelFacts:
    """The facts of another quantisation of the same model, whose file has ``n_bytes``.

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
