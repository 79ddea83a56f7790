"""The Hub's models, as the library shows them."""

from __future__ import annotations

import threading
from dataclasses import replace

from app.environment.exit_codes import ExitCode
from app.environment.paths import hub_file
from app.fit_reports.fit_reports import CurrentMachine, report_remote
from app.fit_reports.repository_reports import RepositoryReports
from app.fit_reports.suggestions import first_choices, suggestions
from app.library.errors import LibraryError, writing
from app.library.hub_access import hub, hub_facts, hub_settings
from app.library_service.machine import MachineService
from models.facts.header_facts import header_facts
from models.formatting.sentence import Sentence
from models.hub.repository import FoundRepository, Repository
from models.hub.settings import forget_token, keep_token, save_settings, saved_settings
from models.library.values import FoundModel, HubFacts, Recommended, RemoteFitReport, Suggested, SuggestedRow

N_FOUND = 50  # repositories; who wants others types more words
_N_KEPT = 32  # repositories, each with the headers that were read


class HubService:
    """Asks the Hub with the settings of the moment. Every method may block and raises HubError."""

    def __init__(self, machine: MachineService) -> None:
        self._machine = machine
        # The reports on repositories that are shown, made once: a model is judged the same wherever it is named. They
        # are of one Hub: another gets a new dictionary, and what the last one still answers is kept in its own.
        self._seen: dict[str, RepositoryReports] = {}
        self._lock = threading.Lock()

    def suggested(self) -> Suggested:
        """Return the models to begin with, judged for this machine by the figures in the list."""
        from models.catalog.curated import curated

        found = suggestions(self._machine.now())
        choices = {one.name: choice for choice, one in first_choices(found).items()}
        rows = tuple(
            SuggestedRow(
                title=one.model.title,
                use=one.model.use,
                repo_id=one.model.repo_id,
                quantisation=one.file.quantisation,
                n_params=one.model.n_params,
                n_active_params=one.model.facts.n_active_params,
                n_bytes=one.file.n_bytes,
                is_size_estimate=one.file.is_estimate,
                good_for=one.model.good_for,
                drafting=one.model.drafting,
                verdict=one.judgement.verdict,
                rate=one.rate,
                drafted_rate=one.drafted_rate,
                choice=choices.get(one.name),
            )
            for one in found
        )
        return Suggested(curated().date, curated().source, rows)

    def search(self, words: str, order: str) -> tuple[FoundModel, ...]:
        """Return repositories by words, best first, with what is estimated of a model of each."""
        from models.hub.client import SORTS, Search

        found = hub().search(Search(words, sort=SORTS.get(order, "downloads"), limit=N_FOUND))
        here = self._machine.now()
        return tuple(_estimated(one, here) for one in found)

    def repository(self, repo_id: str) -> Repository:
        """Return one repository, as it is now."""
        self._seen.pop(repo_id, None)
        return self._look(repo_id).repository

    def judge_of(self, repo_id: str) -> RepositoryReports:
        """Return what judges the models of a repository, as it was when it was last looked at."""
        return self._seen.get(repo_id) or self._look(repo_id)

    def _look(self, repo_id: str) -> RepositoryReports:
        seen, client = self._seen, hub()
        found = RepositoryReports(client, client.repository(repo_id), self._machine.now)
        with self._lock:
            while len(seen) >= _N_KEPT:
                seen.pop(next(iter(seen)))
            seen[repo_id] = found
        return found

    def judge(self, repo_id: str, wanted: str) -> RemoteFitReport:
        """Read the header of one model over the network; raises GgufError and NothingToChoose too."""
        from models.download.model_download import choose_one

        judge = self.judge_of(repo_id)
        model = choose_one(judge.repository, wanted)
        facts, judged = judge.judged(model)
        header = header_facts(facts)
        if header.licence is None:
            header = replace(header, licence=judge.repository.licence)
        return RemoteFitReport(repo_id, model.name, model.n_bytes, header, judged)

    def recommend(self, repo_id: str) -> Recommended:
        """Say which model of a repository to take here, by a header or two; raises GgufError too."""
        found = self.judge_of(repo_id).recommended()
        if found is None:
            return Recommended(repo_id, None, "")
        return Recommended(repo_id, found.candidate.name if found.candidate is not None else None, found.sentence)

    def facts(self) -> HubFacts:
        """Return how the Hub is reached; raises BadHubSetting."""
        return hub_facts()

    def change(self, address: str | None, proxy: str | None) -> HubFacts:
        """Reach the Hub at another address or through another proxy, None: as before; raises LibraryError too."""
        # Passwords are shown as stars, so a proxy that comes back with stars has not changed.
        keeps_proxy = proxy is None or "***@" in proxy
        with self._lock, writing(hub_file()):
            saved = saved_settings(hub_file())
            save_settings(
                hub_file(),
                address=saved.get("address") if address is None else address,
                proxy=saved.get("proxy") if keeps_proxy else proxy,
            )
        self._seen = {}
        return self.facts()

    def log_in(self, typed: str) -> HubFacts:
        """Keep a token in the system's keyring once the Hub has taken it; raises LibraryError for what can be none."""
        secret = typed.strip()
        if not secret or any(character.isspace() or not character.isprintable() for character in secret):
            raise LibraryError(
                Sentence("That is no access token. Make one in your account's settings on the Hub."), ExitCode.USAGE
            )
        client = hub()
        user = client.user_of(secret)
        keep_token(client.settings.address, secret)
        self._seen = {}
        return replace(self.facts(), user=user)

    def log_out(self) -> HubFacts:
        """Remove the token from the keyring."""
        forget_token(hub_settings().address)
        self._seen = {}
        return self.facts()


def _estimated(found: FoundRepository, here: CurrentMachine) -> FoundModel:
    """Judge the usual model of a repository by what the search says of it; where that does not fit, the smallest."""
    from models.facts.architectures import TEXT
    from models.recommend.outline import outline, smallest_quantisation, usual_quantisation

    if not found.n_params or found.architecture not in TEXT:
        return FoundModel(found)
    judged = FoundModel(found)
    usual, smallest = usual_quantisation(found.quantisations), smallest_quantisation(found.quantisations)
    for quantisation in dict.fromkeys((usual, smallest)):
        facts = outline(found.repo_id, found.architecture, found.n_params, quantisation, found.n_ctx_train)
        if facts is None:
            break
        report = report_remote(facts, here)
        judged = FoundModel(found, quantisation, report.verdict, report.speed.empty if report.speed else None)
        if report.fits:
            break
    return judged
