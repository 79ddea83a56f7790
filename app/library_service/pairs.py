"""One model judged for this machine: its fit, its speed, who drafts for it; tests of pairs, and drafts to download."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from app.environment.exit_codes import ExitCode
from app.environment.paths import cache_folder
from app.fit_reports.fit_reports import report_file
from app.jobs.pair_test.pair_test import PairTest, PairTestResult, PartnerTrial
from app.library.errors import LibraryError
from app.library.hub_access import hub
from app.library_service.hub import HubService
from app.library_service.machine import MachineService
from app.library_service.models import ModelService
from app.library_service.outbox import Stop, steps_of
from app.pairing.offers import DraftSearch, offers
from app.pairing.service import Pairing, choose, choose_automatically, pairing, uses_heads
from core.machine.known_machine import known_runs
from models.catalog.catalog import ModelEntry
from models.estimate.fit.summary import FitSummary, FitVerdict
from models.formatting.sentence import Sentence, joined
from models.library.requests import TestPair
from models.library.values import (
    Choosing,
    DraftOffer,
    DraftOffers,
    ModelFitReport,
    OfferRow,
    PairStep,
    PairTrial,
    PartnerRow,
    Partners,
)
from models.pairing.heads import KINDS
from models.pairing.offers import DownloadOffer
from models.pairing.partner import Partner

DISTURBED = Sentence("Replies were written meanwhile, so this may be off: test again when nothing else runs.")
PROGRESS_SECONDS = 0.1


class PairService:
    """Judges and pairs the models of a shelf. ``changed`` is told when who drafts for a model has changed."""

    def __init__(self, shelf: ModelService, machine: MachineService, changed: Callable[[ModelEntry], None]) -> None:
        self._shelf, self._machine, self._changed = shelf, machine, changed
        self._lock = threading.Lock()
        self._test: PairTest | None = None

    def judge(self, name: str) -> ModelFitReport:
        """Judge a model with the partner that drafts for it; raises UnknownModel."""
        entry = self._shelf.entry(name)
        if entry.facts is None or entry.problem is not None:
            return ModelFitReport(
                name, FitSummary(FitVerdict.UNUSABLE, entry.problem or Sentence("The model cannot be read."))
            )
        found = pairing(entry, self._shelf.listed)
        used = found.used
        drafting = self._shelf.find(used.path) if used is not None and used.path is not None else None
        draft = drafting.facts if drafting is not None else None
        heads = uses_heads(found)
        # Lists say what the last reply reached: what stands beside them is to say the same.
        here = replace(self._machine.now(), runs=known_runs(cache_folder()))
        judged = report_file(entry.facts, entry.path, here, draft=draft, uses_heads=heads)
        if used is None:
            return ModelFitReport(name, judged)
        # The gain that partners are ranked by, so that one pane does not give two answers.
        return ModelFitReport(name, judged, used.name, used.gain, used.measured is not None)

    def partners(self, name: str) -> Partners:
        """Return who drafts for a model and who else could; raises UnknownModel."""
        return _partners(name, pairing(self._shelf.entry(name), self._shelf.listed))

    def offers(self, name: str) -> DraftOffers:
        """Return what could be downloaded to draft for a model; raises UnknownModel."""
        found = offers(self._shelf.entry(name))
        return DraftOffers(name, tuple(map(offer_row, found.offers)), found.notes)

    def choose(self, name: str, way: str, partner: str) -> Partners:
        """Choose who drafts, instead of what the settings name; raises UnknownModel, CannotPair and LibraryError."""
        entry = self._shelf.entry(name)
        if way == Choosing.AUTOMATIC:
            choose_automatically(entry)
        else:
            choose(entry, partner if way == Choosing.NAMED else None, self._shelf.catalog)
        self._changed(entry)
        return self.partners(name)

    def test(self, wish: TestPair, stop: Stop) -> Iterator[PairStep]:
        """Measure until ``stop``, saying how far it is, and keep the winner.

        Raises Cancelled, CannotPair and LibraryError.
        """
        entry = self._shelf.entry(wish.name)
        with self._lock:
            if self._test is not None:
                raise LibraryError(Sentence("A pair is being tested already. Wait for it, or stop it."), ExitCode.ERROR)
            test = self._test = PairTest(entry, wish.partner or None, self._shelf.catalog)
        stop.calls(test.cancel)
        if wish.now:
            test.begin()

        def run(say: Callable[[PairStep], None]) -> PairTestResult:
            return test.run(_seldom(say))

        try:
            result = yield from steps_of(run)
            used = result.decision.used.name if result.decision.used is not None else None
            yield PairStep("", "done", 1.0, _results(result), tuple(map(_trial, result.trials)), used)
        finally:
            test.cancel()  # whoever leaves before the end waits for it no more
            with self._lock:
                self._test = None
            self._changed(entry)

    def begin_test(self) -> None:
        """Let the test that waits for other work begin."""
        with self._lock:
            test = self._test
        if test is not None:
            test.begin()


def _seldom(say: Callable[[PairStep], None]) -> Callable[[str, str, float], None]:
    """Return what tells of each new stage at once, and of progress within one some times a second."""
    latest, told_at = ("", ""), 0.0

    def tell(partner: str, stage: str, share: float) -> None:
        nonlocal latest, told_at
        now = time.monotonic()
        if (partner, stage) != latest or now - told_at >= PROGRESS_SECONDS:
            latest, told_at = (partner, stage), now
            say(PairStep(partner, stage, share))

    return tell


def _results(result: PairTestResult) -> tuple[str, ...]:
    return (*(_told(trial) for trial in result.trials), result.decision.why)


def _trial(trial: PartnerTrial) -> PairTrial:
    predicted = trial.partner.prediction.gain if trial.partner.prediction is not None else None
    if (measured := trial.measured) is None:
        return PairTrial(trial.partner.name, predicted, was_disturbed=trial.was_disturbed, problem=trial.problem)
    return PairTrial(
        trial.partner.name,
        predicted,
        measured.gain,
        measured.plain_rate,
        measured.drafted_rate,
        measured.acceptance,
        trial.was_disturbed,
    )


def _told(trial: PartnerTrial) -> str:
    measured = trial.measured
    if measured is None:
        return Sentence("{name} was not measured. {problem}", name=trial.partner.name, problem=trial.problem)
    if measured.acceptance is None:
        nothing = Sentence(
            "{name} drafted nothing: by what drafting costs here and how often it is right, plain decoding was "
            "expected to be faster at each step. A smaller draft may help. Without one nothing is lost.",
            name=trial.partner.name,
        )
        return joined((nothing, DISTURBED if trial.was_disturbed else ""))
    told = Sentence(
        "{name}: {gain:.2f}×, {drafted:rate} tokens/s instead of {plain:rate}.",
        name=trial.partner.name,
        gain=measured.gain,
        drafted=measured.drafted_rate,
        plain=measured.plain_rate,
    )
    accepted = Sentence("{share:.0%} of its tokens were accepted.", share=measured.acceptance)
    return joined((told, accepted, DISTURBED if trial.was_disturbed else ""))


def _partners(name: str, found: Pairing) -> Partners:
    decision = found.decision
    return Partners(
        name=name,
        used=decision.used.name if decision.used is not None else None,
        why=decision.why,
        choosing=_choosing(found),
        has_worthy=any(partner.is_worth_it for partner in found.partners),
        notices=(*found.problems, *decision.notices),
        partners=tuple(_partner(partner) for partner in found.partners),
    )


def _choosing(found: Pairing) -> Choosing:
    if found.decision.by_settings:
        return Choosing.SETTINGS
    if found.choice is None or found.choice.by != "user":
        return Choosing.AUTOMATIC
    return Choosing.NAMED if found.choice.draft is not None else Choosing.NONE


def _partner(partner: Partner) -> PartnerRow:
    return PartnerRow(
        partner.name,
        KINDS[partner.kind],
        partner.n_bytes,
        partner.memory,
        _expected(partner),
        partner.measured.gain if partner.measured is not None else None,
        partner.problem,
        drafted_nothing=partner.drafted_nothing,
    )


def offer_row(offer: DownloadOffer) -> OfferRow:
    """Return an offer as the window shows it."""
    return OfferRow(offer.repo_id, offer.wanted, offer.n_bytes, offer.gain, offer.is_checked, KINDS[offer.kind])


def _expected(partner: Partner) -> float | None:
    """Return the expected gain; for a measured partner, the one that was expected before."""
    if partner.prediction is None:
        return None
    return partner.gain if partner.measured is None else partner.measured.forecast


class DraftService:
    """Looks for drafts; what was found for the repository that was asked about last is kept."""

    def __init__(self, shelf: ModelService, hub_desk: HubService) -> None:
        self._shelf, self._hub_desk = shelf, hub_desk
        self._lock = threading.Lock()
        self._search: DraftSearch | None = None

    def find(self, repo_id: str, wanted: str) -> DraftOffer:
        """Return what to download along with a model; raises HubError, GgufError and NothingToChoose."""
        from models.download.model_download import choose_one

        judge = self._hub_desk.judge_of(repo_id)
        model = choose_one(judge.repository, wanted)
        facts, judgement = judge.judged(model)
        if facts.problem is not None or not judgement.fits:
            return DraftOffer(repo_id, wanted, None, facts.problem or judgement.sentence)
        with self._lock:
            if self._search is None or self._search.repository is not judge.repository:
                self._search = DraftSearch(hub(), judge.repository)
            search = self._search
        found = search.find(model, facts, self._shelf.models())
        offer = offer_row(found.offer) if found.offer is not None else None
        return DraftOffer(repo_id, wanted, offer, found.why)
