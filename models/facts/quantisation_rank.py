"""Quantisations from the best to the smallest.

Sorted by the Kullback-Leibler divergence from the unquantised model: the LLaMA 3 8B scoreboard in llama.cpp's
tools/perplexity/README.md. What is not in it stands where its size puts it; MXFP4 and NVFP4, in which some models are
trained, stand above the four-bit types.
"""

from __future__ import annotations

_ORDER = (
    *("F32", "BF16", "F16", "Q8_0", "Q6_K", "Q5_K_M", "Q5_K_S", "Q5_1", "Q5_0", "MXFP4", "NVFP4"),
    *("Q4_K_L", "Q4_K_M", "Q4_K_S", "IQ4_NL", "IQ4_XS", "Q4_1", "Q4_0", "Q3_K_XL", "Q3_K_L", "Q3_K_M"),
    *("IQ3_M", "IQ3_S", "IQ3_XS", "IQ3_XXS", "Q3_K_S", "IQ2_M", "Q2_K_L", "Q2_K", "Q2_K_S", "IQ2_S", "IQ2_XS"),
    *("IQ2_XXS", "TQ2_0", "TQ1_0", "IQ1_M", "IQ1_S", "Q2_0", "Q1_0"),
)
_RANKS = {name: rank for rank, name in enumerate(_ORDER)}
# Larger files than this type's are no better by any measure.
LOSSLESS = "Q8_0"
# The main type of these mixtures is not in their name.
_MAIN_TYPES = {"IQ3_M": "IQ3_S", "IQ3_XS": "IQ3_XXS", "IQ2_M": "IQ2_S"}


def rank(quantisation: str) -> int | None:
    """Place in the order, 0 for the best; None for names that are not in it."""
    name = _plain(quantisation)
    if name in _RANKS:
        return _RANKS[name]
    # Publishers' own mixtures are as good as those they are made like: Q4_K_XL as Q4_K_L, Q6_K_L as Q6_K.
    for ending, instead in (("_XL", "_L"), ("_XL", "_M"), ("_L", "_M"), ("_XL", ""), ("_L", "")):
        if name.endswith(ending) and (other := name.removesuffix(ending) + instead) in _RANKS:
            return _RANKS[other]
    return None


def is_needless(quantisation: str) -> bool:
    """Whether it is larger than what cannot be told from it."""
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
