"""What would draft for a model of the Hub, found before the model is downloaded."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from app.pairing.conditions import conditions_of, machine_key
from app.pairing.decision import decide
from app.pairing.offers import ask_hub, questions, ranked
from app.pairing.service import store
from models.catalog.catalog import ModelEntry
from models.facts.model_facts import ModelFacts
from models.gguf.header import read_header, read_header_from
from models.hub.client import Hub
from models.hub.remote_source import RemoteSource
from models.hub.repository import RemoteModel, Repository
from models.pairing.offers import DownloadOffer, curated_offers, each_name, has_room, priced
from models.pairing.partner import PairingConditions, partners
from models.pairing.vocabulary import FileVocabulary, why_not


@dataclass(frozen=True, slots=True)
class DraftFound:
    """What to download along with a model; without an ``offer``, ``why`` is the reason."""

    offer: DownloadOffer | None
    why: str = ""


class DraftSearch:
    """Looks for drafts for the models of one repository, which are one model in several types.

    So the vocabulary is read and the Hub asked once for all of them, and what was found is priced for each. May be
    asked from any thread; methods raise HubError and GgufError.
    """

    def __init__(self, hub: Hub, repository: Repository) -> None:
        self.repository = repository
        self._hub = hub
        self._lock = threading.Lock()
        self._vocabulary: FileVocabulary | None = None
        self._found: tuple[DownloadOffer, ...] = ()
        self._asked_for = 0

    def find(self, model: RemoteModel, facts: ModelFacts, here: Sequence[ModelEntry]) -> DraftFound:
        """Return what would draft best for a model with these facts, unless something that is ``here`` does."""
        with self._lock:
            conditions = conditions_of(facts)
            kept = store()
            if not kept.is_empty:
                conditions = replace(conditions, machine=machine_key())
            entry = _entry(model, facts)
            found = partners(entry, here, kept, conditions, lambda path: self._other_words(model, path))
            if any(partner.is_worth_it for partner in found):
                return DraftFound(None, decide(found, None).why)
            offers = self._offers(model, facts, conditions)
            return DraftFound(offers[0]) if offers else DraftFound(None, "Nothing is known that would draft for it.")

    def _offers(
        self, model: RemoteModel, facts: ModelFacts, conditions: PairingConditions
    ) -> tuple[DownloadOffer, ...]:
        repo_id = self.repository.repo_id
        names = tuple(each_name(facts.title or "", model.name, repo_id))
        # What is too slow for a small file may be worth it for a larger one of the same model.
        if facts.weight_bytes > self._asked_for and not self._found:
            self._asked_for = facts.weight_bytes
            vocabulary = self._words(model)
            answers = ask_hub(*questions(facts, names, repo_id, conditions, vocabulary))
            self._found = tuple(offer for answer in answers for offer in answer.offers)
        row_cost, room = conditions.row_cost, conditions.room
        asked = (priced(offer, facts, row_cost) for offer in self._found if has_room(offer, room))
        return ranked(asked, curated_offers(facts, names, row_cost=row_cost, room=room))

    def _other_words(self, model: RemoteModel, path: Path) -> str | None:
        return why_not(self._words(model), FileVocabulary(read_header(path)))

    def _words(self, model: RemoteModel) -> FileVocabulary:
        if self._vocabulary is None:
            file = model.files[0]
            with RemoteSource(self._hub, self.repository.repo_id, self.repository.commit, file) as source:
                vocabulary = FileVocabulary(read_header_from(source))
                vocabulary.read()
            self._vocabulary = vocabulary
        return self._vocabulary


def _entry(model: RemoteModel, facts: ModelFacts) -> ModelEntry:
    """The model as it will be listed; it has no file yet."""
    return ModelEntry(
        name=model.name,
        path=Path(model.files[0].path),
        title=facts.title or model.name,
        architecture=facts.architecture,
        quantisation=facts.quantisation,
        n_params=facts.n_params,
        n_bytes=model.n_bytes,
        n_ctx_train=facts.n_ctx_train,
        licence=facts.licence,
        is_toy=False,
        problem=facts.problem,
        facts=facts,
    )
