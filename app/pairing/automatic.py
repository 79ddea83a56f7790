"""Which model drafts when one is loaded: one place for the server, chats, and everything else that loads a model.

What is asked for on the command line goes first, then the model's own settings, then what was chosen by hand or by a
test, then what is expected to gain most and fits into memory.
"""

from __future__ import annotations

import logging

from app.pairing.chosen_draft import ChosenDraft
from app.pairing.conditions import conditions_of
from app.pairing.service import pairing, toys, uses_heads
from app.settings.server_settings import ServerSettings
from core.values.errors import SlipstreamError
from models.catalog.catalog import Catalog, ModelEntry
from models.formatting.sentence import Sentence

_log = logging.getLogger("slipstream.pairing")


def draft_for(entry: ModelEntry, models: Catalog, settings: ServerSettings) -> ChosenDraft:
    """Return who drafts for a model that a server loads with these settings; never raises: the model must load."""
    if not settings.uses_draft or settings.speculation == "off":
        return ChosenDraft(why=Sentence("No draft is asked for."), uses_heads=False)
    try:
        model = entry if entry.facts is not None else toys().find(str(entry.path))  # a server starts without its facts
        if model is None or model.facts is None or model.problem is not None:
            return ChosenDraft()  # loading it says what is wrong
        if model.facts.is_embedder:
            return ChosenDraft(why=Sentence("It turns texts into vectors and writes nothing."), uses_heads=False)
        found_here = pairing(model, models, conditions_of(model.facts, settings))
    except (OSError, ValueError, SlipstreamError) as error:
        _log.exception("no partner was looked for")
        return ChosenDraft(notices=(Sentence("No partner was looked for: {error}", error=error),))
    decision = found_here.decision
    notices = found_here.problems + decision.notices
    heads = uses_heads(found_here)
    if decision.used is None:
        return ChosenDraft(None, None, decision.why, notices, heads)
    return ChosenDraft(decision.used.path, decision.used.name, decision.why, notices, heads)
