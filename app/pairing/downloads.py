"""What could be downloaded to draft for a model. The Hub is asked with little patience."""

from __future__ import annotations

import threading
import time
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
from models.pairing.head_offers import hub_heads
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
    answers: tuple[HubAnswer, ...] = ()
    if asks_hub and not entry.is_toy:
        repo_id = record.repo_id if record is not None and record.repo_id else None
        no_head = conditions.why_no_head
        answers = _ask_hub(
            lambda hub: hub_offers(hub, facts, names, row_cost=row_cost, room=room),
            lambda hub: hub_heads(hub, facts, names, repo_id, row_cost=row_cost, room=room, why_no_head=no_head),
        )
    asked = [offer for answer in answers for offer in answer.offers]
    found = {offer.repo_id for offer in asked}
    every = sorted([*asked, *(offer for offer in listed if offer.repo_id not in found)], key=lambda o: -o.gain)
    notes = dict.fromkeys(note for answer in answers for note in answer.notes)
    return Offers(tuple(every), (*notes, LOOKUPS))


def _ask_hub(*questions: Callable[[Hub], HubAnswer]) -> tuple[HubAnswer, ...]:
    """Ask all at once and with little patience: the answers are a help, and nobody should wait for them."""
    boxes: list[HubAnswer | None] = [None] * len(questions)

    def ask(number: int) -> None:
        try:
            client = hub()
            boxes[number] = questions[number](Hub(replace(client.settings, timeout=_HUB_CALL_SECONDS)))
        except (HubError, GgufError, SlipstreamError) as error:
            boxes[number] = HubAnswer((), (error.message,))

    # Daemons: a Hub that trickles must not keep the program from ending.
    threads = [threading.Thread(target=ask, args=(n,), name="pair-offers", daemon=True) for n in range(len(questions))]
    for thread in threads:
        thread.start()
    end = time.monotonic() + _HUB_SECONDS
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    return tuple(box or HubAnswer((), ("The Hub answers too slowly. Try again later.",)) for box in boxes)
