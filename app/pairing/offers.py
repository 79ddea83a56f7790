"""What could be downloaded to draft for a model. The Hub is asked with little patience."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from app.environment.paths import models_folder
from app.library.hub_access import hub
from app.pairing.conditions import conditions_of
from app.pairing.decision import LOOKUPS
from core.values.errors import SlipstreamError
from models.catalog.catalog import ModelEntry
from models.facts.model_facts import ModelFacts
from models.files.provenance import read_record
from models.gguf.errors import GgufError
from models.hub.client import Hub
from models.hub.errors import HubError
from models.pairing.gain import WORTH
from models.pairing.head_offers import hub_heads
from models.pairing.offers import DownloadOffer, HubAnswer, curated_offers, each_name, hub_offers
from models.pairing.partner import PairingConditions
from models.pairing.vocabulary import FileVocabulary

_HUB_CALL_SECONDS = 4.0
_HUB_SECONDS = 12.0


@dataclass(frozen=True, slots=True)
class FoundOffers:
    """What could be downloaded to draft, and sentences about what else there is."""

    offers: tuple[DownloadOffer, ...]
    notes: tuple[str, ...]


def offers(entry: ModelEntry, *, asks_hub: bool = True) -> FoundOffers:
    """Return what could be downloaded to draft for a model, and never nothing without a sentence.

    The Hub has some seconds to answer; without it, the list of this project says what would fit.
    """
    facts = entry.facts
    if facts is None or entry.problem is not None:
        return FoundOffers((), (entry.problem or "The model cannot be read.",))
    conditions = conditions_of(facts)
    record = read_record(models_folder(), entry.path)
    repo_id = record.repo_id if record is not None and record.repo_id else None
    names = tuple(each_name(entry.title, entry.name, repo_id))
    listed = curated_offers(facts, names, row_cost=conditions.row_cost, room=conditions.room)
    answers: tuple[HubAnswer, ...] = ()
    if asks_hub and not entry.is_toy:
        answers = ask_hub(*questions(facts, names, repo_id, conditions))
    notes = dict.fromkeys(note for answer in answers for note in answer.notes)
    return FoundOffers(ranked([offer for answer in answers for offer in answer.offers], listed), (*notes, LOOKUPS))


def ranked(asked: Iterable[DownloadOffer], listed: Iterable[DownloadOffer]) -> tuple[DownloadOffer, ...]:
    """Return offers of the Hub and those of this project's list whose repository the Hub has not offered, best first.

    Those that are not worth it are left out.
    """
    asked = tuple(asked)
    found = {offer.repo_id for offer in asked}
    every = [*asked, *(offer for offer in listed if offer.repo_id not in found)]
    return tuple(sorted((offer for offer in every if offer.gain >= WORTH), key=lambda offer: -offer.gain))


HubQuestion = Callable[[Hub], HubAnswer]


def questions(
    facts: ModelFacts,
    names: tuple[str, ...],
    repo_id: str | None,
    conditions: PairingConditions,
    vocabulary: FileVocabulary | None = None,
) -> tuple[HubQuestion, HubQuestion]:
    """Return what the Hub is asked: for small siblings of a model, and for heads that were made for it."""
    row_cost, room, no_head = conditions.row_cost, conditions.room, conditions.why_no_head
    return (
        lambda hub: hub_offers(hub, facts, names, row_cost=row_cost, room=room, vocabulary=vocabulary),
        lambda hub: hub_heads(
            hub, facts, names, repo_id, row_cost=row_cost, room=room, why_no_head=no_head, vocabulary=vocabulary
        ),
    )


def ask_hub(*asked: HubQuestion) -> tuple[HubAnswer, ...]:
    """Ask all at once and with little patience: the answers are a help, and nobody should wait for them."""
    boxes: list[HubAnswer | None] = [None] * len(asked)

    def ask(number: int) -> None:
        try:
            client = hub()
            boxes[number] = asked[number](Hub(replace(client.settings, timeout=_HUB_CALL_SECONDS)))
        except (HubError, GgufError, SlipstreamError) as error:
            boxes[number] = HubAnswer((), (error.message,))

    # Daemons: a Hub that trickles must not keep the program from ending.
    threads = [threading.Thread(target=ask, args=(n,), name="pair-offers", daemon=True) for n in range(len(asked))]
    for thread in threads:
        thread.start()
    end = time.monotonic() + _HUB_SECONDS
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    return tuple(box or HubAnswer((), ("The Hub answers too slowly. Try again later.",)) for box in boxes)
