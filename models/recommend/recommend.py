"""Recommends one of a repository's quantisations for a machine, with the reason in one sentence. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from models.estimate.fit.summary import FitVerdict
from models.facts.quantisation_rank import is_needless, rank
from models.formatting.figures import expected_speed
from models.formatting.sentence import Sentence
from models.recommend.fit_report import FitReport

# Tokens per second: about twice as fast as most people read.
ENOUGH = 10.0


@dataclass(frozen=True, slots=True)
class QuantisationOption:
    """One quantisation of a model, judged."""

    name: str
    quantisation: str
    n_bytes: int
    judgement: FitReport


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The recommended candidate (None: none fits), and the reason."""

    candidate: QuantisationOption | None
    sentence: str


def recommend(candidates: Sequence[QuantisationOption]) -> Recommendation:
    """The best quality that fits well and is quick enough, else the fastest that fits.

    Types larger than Q8_0 are left out if there is another: they are no better by any measure.
    """
    usable = [one for one in candidates if one.judgement.verdict is not FitVerdict.UNUSABLE]
    usable = [one for one in usable if not is_needless(one.quantisation)] or usable
    if not usable:
        return Recommendation(None, Sentence("There is no model here that can be used."))
    fitting = [one for one in usable if one.judgement.fits]
    if not fitting:
        smallest = min(usable, key=lambda one: one.n_bytes)
        return Recommendation(
            None, Sentence("None fits this machine. The smallest: {sentence}", sentence=smallest.judgement.sentence)
        )
    green = [one for one in fitting if one.judgement.verdict is FitVerdict.GREEN]
    quick = [one for one in green if _rate(one) >= ENOUGH]
    if quick:
        best = min(quick, key=_quality)
        return Recommendation(
            best,
            Sentence(
                "{quantisation}, the best quality that fits well and is quick enough: {pace}.",
                quantisation=_called(best, candidates),
                pace=_pace(best),
            ),
        )
    if any(_rate(one) for one in fitting):
        fastest = max(fitting, key=_rate)
        why = Sentence("is the fastest that fits") if green else Sentence("is the fastest that fits at all")
        return Recommendation(
            fastest,
            Sentence(
                "{quantisation}. None that fits well keeps {enough:g} tokens/s while its context fills; this "
                "one {why}: {pace}.",
                quantisation=_called(fastest, candidates),
                enough=ENOUGH,
                why=why,
                pace=_pace(fastest),
            ),
        )
    best = min(green or fitting, key=_quality)
    how = Sentence("fits well") if green else "fits"
    return Recommendation(
        best,
        Sentence(
            "{quantisation}, the best quality that {how}; how fast it is here is not known yet.",
            quantisation=_called(best, candidates),
            how=how,
        ),
    )


def _called(one: QuantisationOption, candidates: Sequence[QuantisationOption]) -> str:
    """Its quantisation, or its name where others have the same."""
    same = [other for other in candidates if other.quantisation == one.quantisation]
    return one.quantisation if len(same) == 1 else one.name


def _rate(one: QuantisationOption) -> float:
    """Tokens per second halfway between an empty and a full context; 0 if not known."""
    speed = one.judgement.speed
    return 2.0 / (1.0 / speed.empty + 1.0 / speed.full) if speed is not None else 0.0


def _pace(one: QuantisationOption) -> str:
    """The speed as the fit report of the same file has it."""
    speed = one.judgement.speed
    if speed is None:
        return Sentence("how fast it is here is not known")
    empty, full = speed.empty, speed.full
    if expected_speed(full) == expected_speed(empty):
        return Sentence("{empty:expected} here", empty=empty)
    return Sentence(
        "{empty:expected} here, {full:expected} after {n_ctx:,} tokens", empty=empty, full=full, n_ctx=speed.n_ctx
    )


def _quality(one: QuantisationOption) -> tuple[float, int]:
    """Sort better quantisations first; unknown names come last, larger files first."""
    place = rank(one.quantisation)
    return (float("inf") if place is None else place), -one.n_bytes
