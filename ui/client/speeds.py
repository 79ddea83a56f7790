"""How soon a reply is wanted: the choices of the chat, and how far a deep reply is. No Qt here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ui.language import tr


class Speed(StrEnum):
    """What the ``speed`` of a chat request says; AUTO says nothing and leaves it to what is set for the model."""

    AUTO = "auto"
    STANDARD = "standard"
    FAST = "fast"
    SPARK = "spark"
    DEEP = "deep"
    BATCH = "batch"


@dataclass(frozen=True, slots=True)
class SpeedChoice:
    """A speed as it is offered: its name and one line on what it does."""

    speed: Speed
    name: str
    line: str


CHOICES = (
    SpeedChoice(Speed.AUTO, "Auto", tr("As is set for the model in the library; Standard where nothing is set.")),
    SpeedChoice(Speed.STANDARD, "Standard", tr("Shares the machine. Never slower than plain decoding.")),
    SpeedChoice(Speed.FAST, "Fast", tr("The same model and quality, ahead of everything else that runs.")),
    SpeedChoice(Speed.SPARK, "Spark", tr("The small partner model answers alone: much faster, less capable.")),
    SpeedChoice(Speed.DEEP, "Deep", tr("Several drafts at once, distilled into one answer. For hard questions.")),
    SpeedChoice(Speed.BATCH, "Batch", tr("Uses what the others leave, and may wait.")),
)
CHOICE_OF = {choice.speed: choice for choice in CHOICES}


def speed_of(value: object, otherwise: Speed = Speed.STANDARD) -> Speed:
    """Return the speed of this name, ``otherwise`` for anything else."""
    return Speed(value) if isinstance(value, str) and value in set(Speed) else otherwise


@dataclass(frozen=True, slots=True)
class DeepProgress:
    """How far a deep reply is, from the ``progress`` of a chunk.

    ``stage`` is drafting, distilling, refining, or plain with the ``reason``; ``tokens`` counts all stages.
    """

    stage: str
    drafts: int = 0
    drafts_done: int = 0
    tokens: int = 0
    reason: str | None = None

    @classmethod
    def from_object(cls, found: object) -> DeepProgress | None:
        """Read the server's object; None where it is not one."""
        if not isinstance(found, dict) or not isinstance(found.get("stage"), str):
            return None
        reason = found.get("reason")
        counts = {name: _count(found.get(name)) for name in ("drafts", "drafts_done", "tokens")}
        return cls(found["stage"], **counts, reason=reason if isinstance(reason, str) else None)


@dataclass(frozen=True, slots=True)
class DeepStage:
    """What one stage of a deep reply took: milliseconds and generated tokens."""

    stage: str
    ms: float
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class DeepReceipt:
    """How a deep reply came about; without stages it was answered plainly, for the ``reason``."""

    drafts: int = 0
    drafts_used: int = 0
    stages: tuple[DeepStage, ...] = ()
    reason: str | None = None

    @classmethod
    def from_object(cls, found: object) -> DeepReceipt | None:
        """Read the server's object, or what the store kept of it; None where it is not one."""
        if not isinstance(found, dict):
            return None
        reason = found.get("reason")
        stages = tuple(_stage(one) for one in found.get("stages") or () if isinstance(one, dict))
        counts = {name: _count(found.get(name)) for name in ("drafts", "drafts_used")}
        return cls(**counts, stages=stages, reason=reason if isinstance(reason, str) else None)


def _stage(found: dict[str, Any]) -> DeepStage:
    ms = found.get("ms")
    return DeepStage(
        str(found.get("stage")),
        float(ms) if isinstance(ms, int | float) else 0.0,
        _count(found.get("completion_tokens")),
    )


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
