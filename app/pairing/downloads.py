"""What could be downloaded to draft for a model. The Hub is asked with little patience."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from app.library import hub
from app.pairing.conditions import conditions_of
from app.pairing.decision import LOOKUPS
from app.paths import models_folder
from core.errors import SlipstreamError
from models.catalog import ModelEntry
from models.download.records import read_record
from models.gguf_errors import GgufError
from models.hub.client import Hub
from models.hub.errors import HubError
from models.pairing.offers import HubAnswer, Offer, curated_offers, each_name, hub_offers

_HUB_CALL_SECONDS = 4.0
_HUB_SECONDS = 12.0


@dataclass(frozen=True, slots=True)
class Offers:
    """What could be downloaded to draft, and sentences about what else there is."""

    offers: tuple[Offer, ...]
    notes: tuple[str, ...]


def offers(entry: ModelEntry, *, asks_hub: bool = True) -> Offers:
    """Return what could be downloaded to draft for a model, and never nothing without a sentence.

    The Hub has some seconds to answer; without it, the list of this project says what would fit.
    """
    facts = entry.facts
    if facts is None or entry.problem is not None:
        return Offers((), (entry.problem or "The model cannot be read.",))
    conditions = conditions_of(facts)
    record = read_record(models_folder(), entry.path)
    names = tuple(each_name(entry.title, entry.name, record.repo_id if record is not None else None))
    row_cost, room = conditions.row_cost, conditions.room
    listed = curated_offers(facts, names, row_cost=row_cost, room=room)
    answer = HubAnswer((), ())
    if asks_hub and not entry.is_toy:
        answer = _ask_hub(lambda hub: hub_offers(hub, facts, names, row_cost=row_cost, room=room))
    found = {offer.repo_id for offer in answer.offers}
    every = sorted([*answer.offers, *(offer for offer in listed if offer.repo_id not in found)], key=lambda o: -o.gain)
    return Offers(tuple(every), (*answer.notes, LOOKUPS))


def _ask_hub(question: Callable[[Hub], HubAnswer]) -> HubAnswer:
    """Ask with little patience: the answer is a help, and nobody should wait for it."""
    box: list[HubAnswer] = []

    def ask() -> None:
        try:
            client = hub()
            box.append(question(Hub(replace(client.settings, timeout=_HUB_CALL_SECONDS))))
        except (HubError, GgufError, SlipstreamError) as error:
            box.append(HubAnswer((), (error.message,)))

    # A daemon: a Hub that trickles must not keep the program from ending.
    thread = threading.Thread(target=ask, name="pair-offers", daemon=True)
    thread.start()
    thread.join(_HUB_SECONDS)
    return box[0] if box else HubAnswer((), ("The Hub answers too slowly. Try again later.",))
