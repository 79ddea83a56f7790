"""Draft models and heads that could be downloaded for a model. The Hub gets little time to answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from app.environment.paths import models_folder
from app.library.hub_access import hub
from app.pairing.conditions import conditions_of, machine_key
from app.pairing.decision import LOOKUPS, decide
from app.pairing.service import store
from core.values.errors import SlipstreamError
from models.catalog.catalog import ModelEntry
from models.facts.model_facts import ModelFacts
from models.files.provenance import read_record
from models.formatting.sentence import Sentence
from models.gguf.errors import GgufError
from models.gguf.header import read_header, read_header_from
from models.hub.client import Hub
from models.hub.errors import HubError
from models.hub.remote_source import RemoteSource
from models.hub.repository import HubModel, Repository
from models.pairing.gain import WORTH
from models.pairing.head_offers import hub_heads
from models.pairing.offers import DownloadOffer, FoundOffers, curated_offers, has_room, hub_offers, priced
from models.pairing.partner import PairingConditions, partners
from models.pairing.vocabulary import FileVocabulary, why_vocabularies_differ

_HUB_CALL_SECONDS = 4.0  # for one answer of the Hub
_HUB_SECONDS = 12.0  # for all of them: the user waits


def offers(entry: ModelEntry, *, asks_hub: bool = True) -> FoundOffers:
    """Return what could be downloaded to draft for a model; if nothing could, a sentence says why.

    The Hub has some seconds to answer; without it, the list of this project says what would fit.
    """
    facts = entry.facts
    if facts is None or entry.problem is not None:
        return FoundOffers((), (entry.problem or Sentence("The model cannot be read."),))
    conditions = conditions_of(facts)
    record = read_record(models_folder(), entry.path)
    repo_id = record.repo_id if record is not None and record.repo_id else None
    names = tuple(filter(None, (repo_id, entry.title, entry.name)))  # the most reliable first
    listed = curated_offers(facts, names, conditions)
    answers: tuple[FoundOffers, ...] = ()
    if asks_hub and not entry.is_toy:
        answers = ask_hub(*questions(facts, names, repo_id, conditions))
    notes = dict.fromkeys(note for answer in answers for note in answer.notes)
    return FoundOffers(best_offers([offer for answer in answers for offer in answer.offers], listed), (*notes, LOOKUPS))


def best_offers(asked: Iterable[DownloadOffer], listed: Iterable[DownloadOffer]) -> tuple[DownloadOffer, ...]:
    """Return offers of the Hub and those of this project's list whose repository the Hub has not offered, best first.

    Those that are not worth it are left out.
    """
    asked = tuple(asked)
    found = {offer.repo_id for offer in asked}
    every = [*asked, *(offer for offer in listed if offer.repo_id not in found)]
    return tuple(sorted((offer for offer in every if offer.gain >= WORTH), key=lambda offer: -offer.gain))


HubQuestion = Callable[[Hub], FoundOffers]


def questions(
    facts: ModelFacts,
    names: tuple[str, ...],
    repo_id: str | None,
    conditions: PairingConditions,
    vocabulary: FileVocabulary | None = None,
) -> tuple[HubQuestion, HubQuestion]:
    """Return what the Hub is asked: for small siblings of a model, and for heads that were made for it."""
    return (
        lambda hub: hub_offers(hub, facts, names, conditions, vocabulary),
        lambda hub: hub_heads(hub, facts, names, conditions, repo_id, vocabulary),
    )


def ask_hub(*asked: HubQuestion) -> tuple[FoundOffers, ...]:
    """Ask all at once, with short timeouts: nobody should wait for these answers."""
    boxes: list[FoundOffers | None] = [None] * len(asked)

    def ask(number: int) -> None:
        try:
            client = hub()
            boxes[number] = asked[number](Hub(replace(client.settings, timeout=_HUB_CALL_SECONDS)))
        except (HubError, GgufError, SlipstreamError) as error:
            boxes[number] = FoundOffers((), (str(error),))

    # Daemons: a Hub that trickles must not keep the program from ending.
    threads = [threading.Thread(target=ask, args=(n,), name="pair-offers", daemon=True) for n in range(len(asked))]
    for thread in threads:
        thread.start()
    end = time.monotonic() + _HUB_SECONDS
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    return tuple(box or FoundOffers((), (Sentence("The Hub answers too slowly. Try again later."),)) for box in boxes)


@dataclass(frozen=True, slots=True)
class DraftFound:
    """The draft to download along with a model; without an ``offer``, ``why`` is the reason."""

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

    def find(self, model: HubModel, facts: ModelFacts, here: Sequence[ModelEntry]) -> DraftFound:
        """Return what would draft best for a model with these facts, unless something that is ``here`` does."""
        with self._lock:
            conditions = conditions_of(facts)
            kept = store()
            if not kept.is_empty:
                conditions = replace(conditions, machine=machine_key())
            entry = ModelEntry(model.name, Path(model.files[0].path), model.n_bytes, facts.problem, facts)
            found = partners(entry, here, kept, conditions, lambda path: self._other_words(model, path))
            if any(partner.is_worth_it for partner in found):
                return DraftFound(None, decide(found, None).why)
            offers = self._offers(model, facts, conditions)
            return (
                DraftFound(offers[0])
                if offers
                else DraftFound(None, Sentence("Nothing is known that would draft for it."))
            )

    def _offers(self, model: HubModel, facts: ModelFacts, conditions: PairingConditions) -> tuple[DownloadOffer, ...]:
        repo_id = self.repository.repo_id
        names = tuple(filter(None, (repo_id, facts.title, model.name)))
        # A draft that is too slow for a small file may be worth it for a larger one of the same model.
        if facts.weight_bytes > self._asked_for and not self._found:
            self._asked_for = facts.weight_bytes
            vocabulary = self._words(model)
            answers = ask_hub(*questions(facts, names, repo_id, conditions, vocabulary))
            self._found = tuple(offer for answer in answers for offer in answer.offers)
        asked = (priced(one, facts, conditions.row_cost) for one in self._found if has_room(one, conditions.room))
        return best_offers(asked, curated_offers(facts, names, conditions))

    def _other_words(self, model: HubModel, path: Path) -> str | None:
        return why_vocabularies_differ(self._words(model), FileVocabulary(read_header(path)))

    def _words(self, model: HubModel) -> FileVocabulary:
        if self._vocabulary is None:
            file = model.files[0]
            with RemoteSource(self._hub, self.repository.repo_id, self.repository.commit, file) as source:
                vocabulary = FileVocabulary(read_header_from(source))
                vocabulary.read()
            self._vocabulary = vocabulary
        return self._vocabulary
