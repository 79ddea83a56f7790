"""The types that a model can be quantised to here, best first."""

from __future__ import annotations

from dataclasses import dataclass

from models.quantise.errors import QuantiseRefused


@dataclass(frozen=True, slots=True)
class TargetType:
    """``file_type`` is llama.cpp's ``llama_ftype``; ``bits`` per weight are those of a usual model."""

    name: str
    file_type: int
    bits: float

    @property
    def quality(self) -> str:
        """What is left of the original, as a sentence; by size, as no two models lose the same."""
        return next(sentence for bits, sentence in _QUALITIES if self.bits >= bits)


# What perplexities in llama.cpp's tools/quantize/README.md and its discussions of the types say, in words.
_QUALITIES = (
    (16.0, "Nothing that could be noticed is lost."),
    (8.0, "Hardly to be told from the original."),
    (6.0, "Very near the original."),
    (5.4, "Near the original; a little is lost."),
    (4.4, "Good for most uses; some is lost."),
    (3.7, "Noticeably worse: for what does not fit otherwise."),
    (0.0, "Much worse: a smaller model is often better."),
)
# Bits per weight: measured on Llama 3.1 8B by llama.cpp (tools/quantize/README.md), else those of the tensor type.
TARGETS = (
    TargetType("F16", 1, 16.0),
    TargetType("BF16", 32, 16.0),
    TargetType("Q8_0", 7, 8.5),
    TargetType("Q6_K", 18, 6.56),
    TargetType("Q5_1", 9, 6.0),
    TargetType("Q5_K_M", 17, 5.7),
    TargetType("Q5_K_S", 16, 5.57),
    TargetType("Q5_0", 8, 5.5),
    TargetType("Q4_1", 3, 5.0),
    TargetType("Q4_K_M", 15, 4.89),
    TargetType("Q4_K_S", 14, 4.67),
    TargetType("IQ4_NL", 25, 4.68),
    TargetType("Q4_0", 2, 4.5),
    TargetType("IQ4_XS", 30, 4.46),
    TargetType("Q3_K_L", 13, 4.3),
    TargetType("Q3_K_M", 12, 4.0),
    TargetType("IQ3_M", 27, 3.76),
    TargetType("IQ3_S", 26, 3.66),
    TargetType("Q3_K_S", 11, 3.64),
    TargetType("Q2_K", 10, 3.16),
)
# llama.cpp refuses these without a measurement of which weights matter (tensor_requires_imatrix in llama-quant.cpp).
_NEED_IMPORTANCE = frozenset({"IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ2_M", "IQ3_XXS", "IQ3_XS", "Q2_K_S"})
# What models are trained and published in: nothing was rounded to blocks yet.
ORIGINALS = frozenset({"F32", "F16", "BF16"})


def target_type(name: str) -> TargetType:
    """The type of this name, in any case; raises QuantiseRefused with those there are."""
    wanted = name.strip().upper().replace("-", "_")
    found = next((target for target in TARGETS if target.name == wanted), None)
    if found is not None:
        return found
    names = ", ".join(target.name for target in TARGETS)
    if wanted in _NEED_IMPORTANCE:
        raise QuantiseRefused(
            f"{wanted} needs an importance matrix, measured while the original model reads texts, and would be poor "
            f"without. Download it from a maker that has one, or choose one of: {names}."
        )
    raise QuantiseRefused(f"There is no type {name!r} to quantise to. Choose one of: {names}.")
