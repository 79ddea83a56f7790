"""Partners of a model for commands, the window and the server: values, and sentences about what is wrong.

Who drafts for a model that is loaded: what the command line asks for goes first, then the model's own settings, then
what was chosen by hand or by a test, then what is expected to gain most and fits into memory.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Protocol

from app.environment.exit_codes import ExitCode
from app.environment.paths import data_folder
from app.library.errors import LibraryError
from app.library.find_model import catalog
from app.library.trouble import as_library_errors
from app.pairing.chosen_draft import ChosenDraft
from app.pairing.conditions import conditions_of, machine_key
from app.pairing.decision import NONE, Decision, by_settings, decide, forget_own_draft, own_draft
from app.settings.server_settings import ServerSettings
from core.values.errors import SlipstreamError
from models.catalog.catalog import Catalog, ModelEntry
from models.formatting.sentence import Sentence, joined
from models.gguf.errors import GgufError
from models.pairing.forecast import MTP
from models.pairing.gain import ProposerKind
from models.pairing.partner import PairingConditions, Partner, partners
from models.pairing.store import By, MeasuredGain, PairStore, PartnerChoice, file_id

# Each is compared with all others: among more, partners are looked for where one model is shown.
MOST_PAIRED = 200


@dataclass(frozen=True, slots=True)
class ListedModels:
    """Those that one scan found."""

    models: tuple[ModelEntry, ...]

    def entries(self) -> tuple[ModelEntry, ...]:
        """Return all of them."""
        return self.models

    def find(self, name: str) -> ModelEntry | None:
        """Return the one with this name or path."""
        return next((entry for entry in self.models if name in (entry.name, str(entry.path))), None)


class Models(Protocol):
    """Models to look for partners among: a catalogue, or what one found before."""

    def entries(self) -> tuple[ModelEntry, ...]:
        """Return all of them."""

    def find(self, name: str) -> ModelEntry | None:
        """Return the one with this name or path."""


class CannotPair(LibraryError):
    """A model that nothing can draft for, or a draft that cannot be used for it."""

    def __init__(self, text: str, /, **facts: object) -> None:
        super().__init__(text, ExitCode.MODEL, None, **facts)


@dataclass(frozen=True, slots=True)
class Pairing:
    """Who drafts for a model. ``partners`` has the best first, then those that cannot, with their reasons."""

    partners: tuple[Partner, ...]
    decision: Decision
    choice: PartnerChoice | None
    problems: tuple[str, ...]

    @property
    def used(self) -> Partner | None:
        """Who drafts when the model is loaded; None: nobody."""
        return self.decision.used


def store() -> PairStore:
    """Return what is kept of pairs."""
    return PairStore(data_folder() / "pairs.json")


@cache
def toys() -> Catalog:
    """Return the bundled models alone, which are read in a moment."""
    return Catalog([])


def pairing(entry: ModelEntry, models: Models | None = None, conditions: PairingConditions | None = None) -> Pairing:
    """Return who could draft for a model, and who does. Reads headers, asks no network.

    What the model's own settings name goes before what was chosen and what is expected.
    """
    kept = store()
    problems = (kept.problem,) if kept.problem is not None else ()
    if entry.facts is None or entry.problem is not None:
        reason = entry.problem or Sentence("The model cannot be read.")
        return Pairing(
            (),
            Decision(None, Sentence("Nothing can draft for {name}. {reason}", name=entry.name, reason=reason)),
            None,
            problems,
        )
    conditions = conditions if conditions is not None else conditions_of(entry.facts)
    if not kept.is_empty:
        conditions = replace(conditions, machine=machine_key())
    models = models if models is not None else catalog()
    try:
        choice = kept.choice(file_id(entry.path), conditions.machine)
    except GgufError:
        choice = None
    found = partners(entry, _candidates(entry, models, choice), kept, conditions)
    decision = decide(found, choice)
    own = own_draft(entry.path)
    if own is None:
        return Pairing(found, decision, choice, problems)
    if own.casefold() == NONE:
        return Pairing(found, by_settings(None, decision), choice, problems)
    # A list of names may lack a title or a path that the catalogue knows.
    draft = models.find(own) or catalog().find(own)
    heads = next((partner for partner in found if partner.kind is ProposerKind.MTP), None)
    if draft is None and own.casefold() == MTP and heads is not None:
        return Pairing(found, by_settings(heads, decision), choice, problems)
    if draft is None or draft.path.resolve() == entry.path.resolve():
        notice = (
            Sentence("The draft in the model's settings cannot be used: there is no model called {own}.", own=repr(own))
            if draft is None
            else Sentence("The draft in the model's settings cannot be used: no model drafts for itself.")
        )
        return Pairing(found, replace(decision, notices=(notice, *decision.notices)), choice, problems)
    if all(partner.path != draft.path for partner in found):
        found = (*partners(entry, (draft,), kept, conditions), *found)
    named = next(partner for partner in found if partner.path == draft.path)
    return Pairing(found, by_settings(named, decision), choice, problems)


def uses_heads(found: Pairing) -> bool:
    """Return whether the prediction heads in the model's file draft when it is loaded.

    They do where they were chosen, by whatever way, and beside another partner where nobody chose: then the engine
    decides step by step. Where nobody drafts, they do not.
    """
    if found.used is None:
        return False
    was_chosen = found.decision.by_settings or (found.choice is not None and found.choice.draft == found.used.id)
    return found.used.kind is ProposerKind.MTP or not was_chosen


def choose(entry: ModelEntry, draft: str | None, models: Models | None = None) -> None:
    """Let ``draft`` (a name, a path, or "mtp") draft for a model from now on; None: nobody.

    What the model's settings say of it is reset, since that would go before. Raises CannotPair with the reason,
    UnknownModel, and LibraryError where it cannot be kept.
    """
    models = models if models is not None else catalog()
    keep_choice(entry, usable_partner(entry, draft, models) if draft is not None else None, "user")
    forget_own_draft(entry)


def choose_automatically(entry: ModelEntry) -> None:
    """Forget what was chosen for a model, also in its settings; raises LibraryError."""
    forget_own_draft(entry)
    forget_choice(entry)


def usable_partner(entry: ModelEntry, name: str, models: Models) -> Partner:
    """Return the partner of a model by its name or path; raises UnknownModel, and CannotPair if it cannot draft."""
    partner = partner_named(entry, name, models)
    if not partner.is_usable:
        raise CannotPair(
            "{name} cannot draft for {entry_name}. {problem}",
            name=partner.name,
            entry_name=entry.name,
            problem=partner.problem,
        )
    return partner


def partner_named(entry: ModelEntry, name: str, models: Models) -> Partner:
    """Return the partner of a model by its name or path; raises UnknownModel and CannotPair."""
    from app.library.find_model import UnknownModel, no_model

    found = pairing(entry, models).partners
    named = [partner for partner in found if partner.name.casefold() == name.casefold()]
    if named:
        return min(
            named, key=lambda partner: partner.kind is not ProposerKind.MTP
        )  # a model may be called like its heads
    draft = models.find(name)
    if draft is None:
        names = ", ".join(partner.name for partner in found if partner.is_usable) or "none fits"
        raise UnknownModel(
            joined(
                (
                    no_model(name),
                    Sentence("Those that can draft for {entry_name}: {names}.", entry_name=entry.name, names=names),
                )
            )
        )
    if draft.path.resolve() == entry.path.resolve():
        raise CannotPair("{name} cannot draft for itself.", name=entry.name)
    if entry.facts is None:
        raise CannotPair("Nothing can draft for {name}. {reason}", name=entry.name, reason=entry.problem)
    return partners(entry, (draft,), store(), replace(conditions_of(entry.facts), machine=machine_key()))[0]


def keep_choice(entry: ModelEntry, partner: Partner | None, by: By, machine: str = "") -> None:
    """Remember who drafts for a model; raises LibraryError."""
    with as_library_errors():
        choice = PartnerChoice(
            target=file_id(entry.path),
            draft=partner.id if partner is not None else None,
            name=partner.name if partner is not None else "",
            path=str(partner.path) if partner is not None and partner.path is not None else "",
            by=by,
            machine=machine,
        )
        store().choose(choice)


def keep_gain(gain: MeasuredGain) -> None:
    """Remember what was measured of a pair; raises LibraryError."""
    with as_library_errors():
        store().keep(gain)


def forget_choice(entry: ModelEntry) -> None:
    """Forget the choice that a test or the user made; raises LibraryError."""
    with as_library_errors():
        store().forget_choice(file_id(entry.path))


def _candidates(entry: ModelEntry, models: Models, choice: PartnerChoice | None) -> Iterable[ModelEntry]:
    """Return what may draft for a model: the others there are, and the chosen one wherever it lies.

    The bundled pair has tokens of its own: nothing else need be read for it.
    """
    listed = toys().entries() if entry.is_toy else models.entries()
    paths = {candidate.path for candidate in listed}
    if choice is not None and choice.path and Path(choice.path) not in paths:
        # A list may lack a path that the catalogue knows.
        chosen = models.find(choice.path) or catalog().find(choice.path)
        if chosen is not None:
            return (*(candidate for candidate in listed if candidate.path != chosen.path), chosen)
    return listed


_log = logging.getLogger("slipstream.pairing")


def draft_for(entry: ModelEntry, models: Catalog, settings: ServerSettings) -> ChosenDraft:
    """Return who drafts for a model that a server loads with these settings; never raises: the model must load."""
    if not settings.drafts:
        return ChosenDraft(why=Sentence("No draft is asked for."), uses_heads=False)
    try:
        model = entry if entry.facts is not None else toys().find(str(entry.path))  # a server starts without its facts
        if model is None or model.facts is None or model.problem is not None:
            return ChosenDraft()  # loading it says what is wrong
        if model.facts.is_for_vectors:
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
