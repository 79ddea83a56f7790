"""What to download along with a model of the Hub, so that it drafts for it."""

from __future__ import annotations

import threading

from app.library.hub_access import hub
from app.library_service.hub import HubService
from app.library_service.models import ModelService
from app.library_service.pairs import offer_row
from app.pairing.offers import DraftSearch
from models.library.values import DraftOffer


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
