"""The verdict on a model before it is loaded: does it fit, and how fast would it be. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from models.estimate.speed.speeds import DraftSpeed, MeasuredSpeed, SpeedPrediction


class FitVerdict(StrEnum):
    """Whether a model fits."""

    GREEN = "green"
    TIGHT = "tight"
    NO = "will not fit"
    UNUSABLE = "cannot be used"


@dataclass(frozen=True, slots=True)
class FitSummary:
    """The verdict on a model on a machine.

    ``sentence`` gives the verdict with its numbers, and ``notes`` further facts. ``speed`` is None if it does not fit
    or this machine was not measured. ``with_draft`` is the speed at an empty context with a draft model or heads.
    """

    verdict: FitVerdict
    sentence: str
    speed: SpeedPrediction | None = None
    with_draft: DraftSpeed | None = None
    measured: MeasuredSpeed | None = None
    notes: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether it can be loaded."""
        return self.verdict in (FitVerdict.GREEN, FitVerdict.TIGHT)

    @property
    def lacks_speed(self) -> bool:
        """Whether it would have a predicted speed if this machine had been measured."""
        return self.fits and self.speed is None
