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
class DeviceUse:
    """What a plan takes of a device, in bytes."""

    device: str
    total: int
    free: int


@dataclass(frozen=True, slots=True)
class FitFacts:
    """The numbers in the sentence of a verdict, for those who say it in other words.

    ``uses`` are those of the plan, for a model that does not fit that of the device which lacks most. ``is_as_wanted``
    says that context and cache are as they were asked for, ``n_ctx_wanted``; ``may_shorten`` that the context could
    have been shorter. ``n_ctx_fitting`` tokens would fit with a ``kv_type_fitting`` cache, 0 where none would.
    """

    n_ctx: int
    kv_type: str
    uses: tuple[DeviceUse, ...]
    n_ctx_wanted: int = 0
    is_as_wanted: bool = True
    may_shorten: bool = True
    n_ctx_fitting: int = 0
    kv_type_fitting: str = ""


@dataclass(frozen=True, slots=True)
class FitSummary:
    """The verdict on a model on a machine.

    ``sentence`` gives the verdict with its numbers, which ``facts`` has too; ``notes`` further facts. ``speed`` is None
    if it does not fit or this machine was not measured. ``with_draft`` is the speed at an empty context with a draft
    model or heads.
    """

    verdict: FitVerdict
    sentence: str
    speed: SpeedPrediction | None = None
    with_draft: DraftSpeed | None = None
    measured: MeasuredSpeed | None = None
    notes: tuple[str, ...] = ()
    facts: FitFacts | None = None

    @property
    def fits(self) -> bool:
        """Whether it can be loaded."""
        return self.verdict in (FitVerdict.GREEN, FitVerdict.TIGHT)

    @property
    def lacks_speed(self) -> bool:
        """Whether it would have a predicted speed if this machine had been measured."""
        return self.fits and self.speed is None
