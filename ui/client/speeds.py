"""How soon a reply is wanted: the choices of the chat, and how far a deep reply is. No Qt here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from models.formatting.figures import count
from ui.language import dotted, of_data, tr


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
    SpeedChoice(Speed.AUTO, tr("Auto"), tr("As set for the model in the library; Standard if nothing is set.")),
    SpeedChoice(Speed.STANDARD, tr("Standard"), tr("Shares the machine with whatever else runs.")),
    SpeedChoice(Speed.FAST, tr("Fast"), tr("The same model and quality, ahead of everything else that runs.")),
    SpeedChoice(Speed.SPARK, tr("Spark"), tr("The small partner model answers alone: much faster, less capable.")),
    SpeedChoice(Speed.DEEP, tr("Deep"), tr("Several drafts at once, distilled into one answer. For hard questions.")),
    SpeedChoice(Speed.BATCH, tr("Batch"), tr("Uses what the others leave, and may wait.")),
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
    seconds: float = 0.0
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class PromptProgress:
    """How much of a prompt was read, from the ``prompt_progress`` of a chunk: ``processed`` of ``total`` tokens.

    ``cache`` of them were there already.
    """

    total: int = 0
    cache: int = 0
    processed: int = 0

    @property
    def share(self) -> float:
        """What was read of all that had to be, of 1."""
        return (self.processed - self.cache) / max(self.total - self.cache, 1)


STAGES = {"drafting": tr("Drafting"), "distilling": tr("Distilling"), "refining": tr("Writing the answer")}


def deep_progress(progress: DeepProgress, seconds: float) -> str:
    """Return how far a deep reply is, without the name of its stage."""
    if progress.stage == "plain":
        return (
            tr("Answered directly: {reason}", reason=of_data(progress.reason))
            if progress.reason
            else tr("Answered directly")
        )
    parts = [
        tr("{drafts_done} of {drafts} drafts done", drafts_done=progress.drafts_done, drafts=progress.drafts)
        if progress.stage == "drafting"
        else "",
        tr("{tokens} of thought", tokens=tokens_of(progress.tokens)) if progress.tokens else "",
        tr("{seconds:.1f} s", seconds=seconds),
    ]
    return dotted(*parts)


def tokens_of(number: int) -> str:
    """Return a count of tokens in words."""
    return tr("1 token") if number == 1 else tr("{number} tokens", number=count(number))


def share_of(progress: DeepProgress) -> float:
    """Return about how far a deep reply is, of 1: each of its stages is a third."""
    names = list(STAGES)
    if progress.stage not in names:
        return 0.0
    part = progress.drafts_done / max(progress.drafts, 1) if progress.stage == "drafting" else 0.0
    return (names.index(progress.stage) + min(part, 1.0)) / len(names)


@dataclass(frozen=True, slots=True)
class DeepStage:
    """What one stage of a deep reply took: milliseconds and generated tokens."""

    stage: str
    ms: float = 0.0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class DeepReceipt:
    """How a deep reply came about; without stages it was answered plainly, for the ``reason``."""

    drafts: int = 0
    drafts_used: int = 0
    stages: tuple[DeepStage, ...] = ()
    reason: str | None = None
