"""The models to begin with, as they would be on this machine: no header is read and no network asked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from app.fit_reports.fit_reports import CurrentMachine, as_fields, report_remote
from models.estimate.fit.summary import FitVerdict
from models.library.values import SuggestionTier
from models.recommend.fit_report import FitReport

if TYPE_CHECKING:
    from models.catalog.curated import CuratedFile, CuratedModel


# For those who begin, by the list's own words: a model for code is a choice of its own.
_CODE = "code"
# Shares of ``ENOUGH`` tokens per second: the best model is as fast as most people read, a quick one six times that.
_BEST, _QUICK = 0.5, 3.0


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A model of the list, and the one of its files to take here, judged."""

    model: CuratedModel
    file: CuratedFile
    judgement: FitReport

    @property
    def name(self) -> str:
        """The name that ``models pull`` takes."""
        return f"{self.model.repo_id}:{self.file.quantisation}"

    @property
    def rate(self) -> float | None:
        """Predicted tokens per second of one request at an empty context; None where it is not known."""
        speed = self.judgement.speed
        return speed.empty if speed is not None and self.judgement.fits else None

    @property
    def drafted_rate(self) -> float | None:
        """Predicted tokens per second with the heads in its own file; None where it has none, or they do not pay."""
        drafted = self.judgement.with_draft
        return drafted.rate if drafted is not None and drafted.depth and self.judgement.fits else None

    def as_fields(self) -> dict[str, Any]:
        """The suggestion as JSON has it."""
        model, facts = self.model, self.model.facts
        return {
            "title": model.title,
            "use": model.use,
            "repo_id": model.repo_id,
            "quantisation": self.file.quantisation,
            "n_bytes": self.file.n_bytes,
            "is_size_estimate": self.file.is_estimate,
            "architecture": facts.architecture,
            "n_params": facts.n_params,
            "n_active_params": facts.n_active_params,
            "n_ctx_train": facts.n_ctx_train,
            "n_layers": facts.n_layers,
            "n_mtp_layers": facts.n_mtp_layers,
            "n_experts": facts.n_experts,
            "n_experts_used": facts.n_experts_used,
            "kv_bytes_per_token": facts.kv_bytes_per_token(),
            "licence": model.licence,
            "good_for": model.good_for,
            "drafting": model.drafting,
            "is_tested": model.is_tested,
            "checked": model.checked,
            "sources": list(model.sources),
            "judgement": as_fields(self.judgement),
        }


def suggestions(here: CurrentMachine) -> tuple[Suggestion, ...]:
    """Judge the list for a machine; within each use, what fits it best comes first."""
    from models.catalog.curated import curated

    found: list[Suggestion] = []
    for _, models in groupby(curated().models, key=lambda model: model.use):
        found += sorted((_suggested(model, here) for model in models), key=_place)
    return tuple(found)


def first_choices(found: Iterable[Suggestion]) -> dict[SuggestionTier, Suggestion]:
    """Return what to offer to a newcomer: a quick model, the best one that is quick enough, and one in between.

    There are fewer if one model is both, and none until speeds are known.
    """
    from models.recommend.recommend import ENOUGH

    usable = [
        (one.rate, one.model.n_params, one)
        for one in found
        if one.judgement.verdict is FitVerdict.GREEN and one.rate and one.model.use != _CODE
    ]
    if not usable:
        return {}

    def largest(rate: float) -> tuple[float, int, Suggestion]:
        fast = [one for one in usable if one[0] >= rate]
        return max(fast, key=lambda one: one[1]) if fast else max(usable, key=lambda one: one[0])

    quick, best = largest(_QUICK * ENOUGH), largest(_BEST * ENOUGH)
    chosen = {SuggestionTier.QUICK: quick[2]}
    between = [one for one in usable if quick[1] < one[1] < best[1] and one[0] >= best[0]]
    if enough := [one for one in between if one[0] >= ENOUGH] or between:
        chosen[SuggestionTier.BALANCED] = max(enough, key=lambda one: one[1])[2]
    return chosen | ({SuggestionTier.BEST: best[2]} if best is not quick else {})


def _suggested(model: CuratedModel, here: CurrentMachine) -> Suggestion:
    from models.recommend.recommend import QuantisationOption, recommend

    judged = [
        QuantisationOption(model.title, file.quantisation, file.n_bytes, report_remote(model.facts_of(file), here))
        for file in model.files
    ]
    # Where none fits, the smallest is the one that misses least.
    chosen = recommend(judged).candidate or min(judged, key=lambda one: one.n_bytes)
    return Suggestion(model, model.files[judged.index(chosen)], chosen.judgement)


def _place(one: Suggestion) -> tuple[int, float]:
    """Return the sort key: models that fit well and are quick enough, the largest first; then slower ones, by speed.

    Those that fit tightly and those that do not fit come last. If no speed is known, bytes per token decide.
    """
    from models.recommend.recommend import ENOUGH

    if not one.judgement.fits:
        return 3, float(one.file.n_bytes)
    if one.judgement.verdict is FitVerdict.TIGHT:
        return 2, -(one.rate or 0.0)
    if one.rate is None:
        return 0, float(one.model.facts_of(one.file).active_bytes_per_token)
    return (0, -float(one.model.n_params)) if one.rate >= ENOUGH else (1, -one.rate)
