"""What is made of which model: refuses what would lose, and names the result. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from models.facts.model_facts import ModelFacts
from models.files.errors import UnsafeName
from models.files.safe_path import safe_parts
from models.hub.quantisation import without_quantisation
from models.quantise.errors import QuantiseRefused
from models.quantise.target_types import ORIGINALS, TARGETS, TargetType, target_type

FOLDER = "quantised"


@dataclass(frozen=True, slots=True)
class QuantisePlan:
    """Make ``target`` (a file that is not there yet) of the model that begins at ``source``.

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
    """What to do to make a ``type_name`` of the model ``name`` in the models' folder; raises QuantiseRefused.

    ``output`` names the result; it is otherwise the model's name with the other quantisation.
    """
    type_ = target_type(type_name)
    if facts.is_head:
        raise QuantiseRefused(
            f"{name} is a head that drafts for a larger model: it is small as it is. Quantise the model it belongs to."
        )
    if facts.problem is not None:
        raise QuantiseRefused(f"{name} cannot be quantised: {facts.problem}")
    check_gain(name, facts, type_)
    if facts.quantisation not in ORIGINALS and not may_requantise:
        raise QuantiseRefused(
            f"{name} is quantised already ({facts.quantisation}): to quantise it again loses more than to quantise the "
            f"original once. Get its {type_.name} from the maker, or quantise the F16 or BF16 file, or allow it.",
            "--allow-requantize",
        )
    target = folder / FOLDER / f"{result_name(name, type_, output)}.gguf"
    if target.exists():
        raise QuantiseRefused(
            f"There is a model called {target.stem} already: {target}. Remove it first, or give the result another "
            "name.",
            "--output",
        )
    return QuantisePlan(
        facts.files[0], name, facts.quantisation, facts.weight_bytes, target, type_, may_requantise=may_requantise
    )


def check_gain(name: str, facts: ModelFacts, type_: TargetType) -> None:
    """Raise QuantiseRefused where the result would be no smaller: nothing that is lost comes back."""
    bits = facts.weight_bytes * 8 / max(1, facts.n_params)
    usual = next((target.bits for target in TARGETS if target.name == facts.quantisation), bits)
    if type_.name == facts.quantisation or type_.bits >= min(bits, usual):
        raise QuantiseRefused(no_gain(name, facts.quantisation, bits, type_))


def no_gain(name: str, source_type: str, bits: float, type_: TargetType) -> str:
    """The sentence about a result that would be no smaller."""
    smaller = [target.name for target in TARGETS if target.bits < min(bits, type_.bits)]
    what_to_do = f"Choose a smaller type: {', '.join(smaller)}." if smaller else "Use it as it is."
    return (
        f"{name} is {source_type} with {bits:.1f} bits per weight: as {type_.name} it would be neither smaller nor "
        f"better. {what_to_do}"
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
            f"{output or chosen!r} cannot be a model's name. Give one that has no slashes or special characters and "
            "does not begin with a point.",
            "--output",
        )
    return chosen
