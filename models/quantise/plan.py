"""Types to quantise to, the plan for one result, and what can go wrong. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from models.facts.model_facts import ModelFacts
from models.files.errors import UnsafeName
from models.files.safe_path import safe_parts
from models.formatting.sentence import Sentence, SentenceError
from models.hub.repository import without_quantisation


class QuantiseError(SentenceError):
    """Base of every error about quantising: its text says what happened and what to do."""


class QuantiseRefused(QuantiseError):
    """The request makes no sense for this model, or the name of the result is taken; nothing was begun.

    ``option`` is the command's option that allows it, or "".
    """

    def __init__(self, text: str, /, option: str = "", **facts: object) -> None:
        super().__init__(text, **facts)
        self.option = option


class QuantiseFailed(QuantiseError):
    """Quantising failed after it had begun; no file is left."""


class QuantiseCancelled(QuantiseError):
    """The user cancelled it; no file is left."""

    def __init__(self) -> None:
        super().__init__(Sentence("Cancelled. Nothing of it is left on the disk."))


FOLDER = "quantised"
WORTH_IT = 0.95  # the most that is left of a model for which a copy is worth what it loses
# Bits per weight and quality, by the perplexities in llama.cpp's tools/quantize/README.md and its discussions.
_QUALITIES = (
    (16.0, Sentence("No noticeable loss.")),
    (8.0, Sentence("Hard to tell from the original.")),
    (6.0, Sentence("Very near the original.")),
    (5.4, Sentence("Near the original; a little is lost.")),
    (4.4, Sentence("Good for most uses; some is lost.")),
    (3.7, Sentence("Noticeably worse: for what does not fit otherwise.")),
    (0.0, Sentence("Much worse: a smaller model is often better.")),
)
# llama.cpp refuses these without a measurement of which weights matter (tensor_requires_imatrix in llama-quant.cpp).
_NEED_IMPORTANCE = frozenset({"IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ2_M", "IQ3_XXS", "IQ3_XS", "Q2_K_S"})
# Types that models are published in, before any rounding to blocks.
ORIGINALS = frozenset({"F32", "F16", "BF16"})


@dataclass(frozen=True, slots=True)
class QuantisePlan:
    """Make ``target`` (a new file) from the model that begins at ``source``.

    ``weight_bytes`` are those of the source. ``source_name`` and ``source_type`` are for sentences.
    """

    source: Path
    source_name: str
    source_type: str
    weight_bytes: int
    target: Path
    type: TargetType
    may_requantise: bool = False

    @property
    def name(self) -> str:
        """The result's name."""
        return self.target.stem


def make_plan(
    facts: ModelFacts,
    *,
    name: str,
    type_name: str,
    folder: Path,
    output: str | None = None,
    may_requantise: bool = False,
) -> QuantisePlan:
    """The plan to make a ``type_name`` of the model ``name`` in the models' folder; raises QuantiseRefused.

    ``output`` names the result; it is otherwise the model's name with the other quantisation.
    """
    type_ = target_type(type_name)
    if facts.is_head:
        raise QuantiseRefused(
            "{name} is a head that drafts for a larger model: it is small as it is. Quantise the model it belongs to.",
            name=name,
        )
    if facts.problem is not None:
        raise QuantiseRefused("{name} cannot be quantised: {problem}", name=name, problem=facts.problem)
    if not is_gain(facts, type_):
        raise _no_gain(name, facts, type_)
    if facts.quantisation not in ORIGINALS and not may_requantise:
        raise QuantiseRefused(
            "{name} is quantised already ({quantisation}): to quantise it again loses more than to "
            "quantise the original once. Get its {type} from the maker, or quantise the F16 or "
            "BF16 file, or allow it.",
            "--allow-requantize",
            name=name,
            quantisation=facts.quantisation,
            type=type_.name,
        )
    target = folder / FOLDER / f"{result_name(name, type_, output)}.gguf"
    if target.exists():
        raise QuantiseRefused(
            "There is a model called {stem} already: {target}. Remove it first, or give the result another name.",
            "--output",
            stem=target.stem,
            target=target,
        )
    return QuantisePlan(
        facts.files[0], name, facts.quantisation, facts.weight_bytes, target, type_, may_requantise=may_requantise
    )


def is_gain(facts: ModelFacts, type_: TargetType) -> bool:
    """Whether the result would be smaller by 5 %."""
    usual = next((target.bits for target in TARGETS if target.name == facts.quantisation), float("inf"))
    return type_.name != facts.quantisation and type_.bits <= WORTH_IT * min(_bits(facts), usual)


def _bits(facts: ModelFacts) -> float:
    """Bits per weight."""
    return facts.weight_bytes * 8 / max(1, facts.n_params)


def _no_gain(name: str, facts: ModelFacts, type_: TargetType) -> QuantiseRefused:
    smaller = [target.name for target in TARGETS if is_gain(facts, target)]
    what_to_do = (
        Sentence("Choose a smaller type: {smaller}.", smaller=", ".join(smaller))
        if smaller
        else Sentence("Use it as it is.")
    )
    return QuantiseRefused(
        "{name} is {source_type} with {bits:.1f} bits per weight: as {type} it would be "
        "less than 5 % smaller and no better. {what_to_do}",
        name=name,
        source_type=facts.quantisation,
        bits=_bits(facts),
        type=type_.name,
        what_to_do=what_to_do,
    )


def result_name(name: str, type_: TargetType, output: str | None) -> str:
    """The result's name; raises QuantiseRefused for one that cannot be a file's name."""
    stem = name.rpartition("/")[2].replace(":", "-")
    chosen = f"{without_quantisation(stem)}-{type_.name}" if output is None else output.strip()
    chosen = chosen[:-5] if chosen.lower().endswith(".gguf") else chosen
    try:
        parts = safe_parts(f"{chosen}.gguf") if chosen else ()
    except UnsafeName:
        parts = ()
    if len(parts) != 1:
        raise QuantiseRefused(
            "{output} cannot be a model's name. Give one that has no slashes or special characters and "
            "does not begin with a point.",
            "--output",
            output=repr(output or chosen),
        )
    return chosen


@dataclass(frozen=True, slots=True)
class TargetType:
    """``file_type`` is llama.cpp's ``llama_ftype``; ``bits`` per weight are those of a usual model."""

    name: str
    file_type: int
    bits: float

    @property
    def quality(self) -> str:
        """The quality as a sentence, by size only: how much is lost depends on the model."""
        return next(sentence for bits, sentence in _QUALITIES if self.bits >= bits)


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


def target_type(name: str) -> TargetType:
    """The type with this name, in any case; raises QuantiseRefused, which lists the types."""
    wanted = name.strip().upper().replace("-", "_")
    found = next((target for target in TARGETS if target.name == wanted), None)
    if found is not None:
        return found
    names = ", ".join(target.name for target in TARGETS)
    if wanted in _NEED_IMPORTANCE:
        raise QuantiseRefused(
            "{wanted} needs an importance matrix, measured while the original model reads texts, and "
            "would be poor without. Download it from a maker that has one, or choose one of: {names}.",
            wanted=wanted,
            names=names,
        )
    raise QuantiseRefused(
        "There is no type {name} to quantise to. Choose one of: {names}.", name=repr(name), names=names
    )
