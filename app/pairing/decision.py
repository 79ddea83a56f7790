"""Which of the partners drafts: what was chosen, else the best that is expected to be worth it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.environment.exit_codes import ExitCode
from app.library.errors import LibraryError
from app.settings.model_settings_store import settings_of, user_settings
from models.catalog.catalog import ModelEntry
from models.files.json_store import StoreRefused
from models.formatting.sentence import Sentence, joined
from models.pairing.forecast import MTP
from models.pairing.partner import Partner
from models.pairing.store import PartnerChoice

LOOKUPS = Sentence("Prompt lookup drafts without a model.")


@dataclass(frozen=True, slots=True)
class Decision:
    """Who drafts; ``used`` None is nobody. ``why`` is a sentence; ``notices`` say where a choice could not be followed.

    ``by_settings`` says that the model's own settings decided.
    """

    used: Partner | None
    why: str
    notices: tuple[str, ...] = ()
    by_settings: bool = False


def decide(partners: Sequence[Partner], choice: PartnerChoice | None) -> Decision:
    """Return who drafts, of partners with the best first."""
    if choice is None:
        return _best(partners)
    if choice.draft is None:
        by_user = Sentence("You chose that none drafts.")
        who = by_user if choice.by == "user" else Sentence("A test found none that makes it faster here.")
        return Decision(None, joined((who, LOOKUPS)))
    chosen = _chosen(partners, choice)
    if chosen is not None and chosen.is_usable:
        return Decision(chosen, _chose(choice, chosen))
    fallback = _best(partners)
    if chosen is None:
        what = Sentence(
            "{name}, which was chosen to draft, is no longer at {path}, or is another file now.",
            name=choice.name,
            path=choice.path,
        )
    else:
        what = Sentence(
            "{name}, which was chosen to draft, cannot: {problem}", name=choice.name, problem=chosen.problem
        )
    return Decision(fallback.used, fallback.why, (joined((what, fallback.why)),))


def _chose(choice: PartnerChoice, chosen: Partner) -> Sentence:
    facts = {"name": chosen.name, "gain": gain_words(chosen)}
    if choice.by == "user":
        return Sentence("You chose {name}: {gain}.", **facts)
    return Sentence("A test chose {name}: {gain}.", **facts)


def by_settings(named: Partner | None, otherwise: Decision) -> Decision:
    """Return the decision of a model's settings, which name a draft or None for nobody.

    It goes before ``otherwise``, which holds if the named one cannot draft. A named draft is used even if it is not
    expected to be worth it.
    """
    if named is None:
        first = Sentence("None drafts: the model's settings say so, which goes before automatic pairing.")
        return Decision(None, joined((first, _other(None, otherwise))), by_settings=True)
    if named.problem is not None and not named.has_vocabulary:
        notice = Sentence(
            "The model's settings name {name}, which cannot draft for it. {problem}",
            name=named.name,
            problem=named.problem,
        )
        return Decision(otherwise.used, otherwise.why, (notice, *otherwise.notices))
    first = Sentence(
        "{name} drafts: the model's settings name it, which goes before automatic pairing.", name=named.name
    )
    problem = named.problem
    doubt = Sentence("{name} may not help. {problem}", name=named.name, problem=problem)
    notices = (doubt,) if problem is not None else ()
    return Decision(named, joined((first, _other(named, otherwise))), notices, by_settings=True)


def _other(used: Partner | None, otherwise: Decision) -> str:
    """Return what would be chosen without the settings, as a sentence."""
    if used is not None and otherwise.used is not None and used.path == otherwise.used.path:
        return Sentence("That would choose the same ({gain}).", gain=gain_words(used))
    if used is None and otherwise.used is None:
        return LOOKUPS
    return Sentence("Without that: {why}", why=otherwise.why)


def gain_words(partner: Partner) -> str:
    """Return the gain in words: "1.8× measured here", "1.3× expected"."""
    if partner.drafted_nothing:
        return Sentence("it drafted nothing when it was tested here")
    if partner.measured is not None:
        return Sentence("{gain:.2f}× measured here", gain=partner.gain)
    return Sentence("{gain:.2f}× expected", gain=partner.gain)


def _best(partners: Sequence[Partner]) -> Decision:
    best = next((partner for partner in partners if partner.is_worth_it), None)
    if best is not None:
        return Decision(best, Sentence("{name} drafts: {gain}.", name=best.name, gain=gain_words(best)))
    usable = next((partner for partner in partners if partner.is_usable), None)
    if usable is not None and usable.drafted_nothing:
        nothing = Sentence(
            "None drafts: {name} is the best and drafted nothing when it was tested here.", name=usable.name
        )
        return Decision(None, joined((nothing, LOOKUPS)))
    if usable is not None:
        none = Sentence(
            "None drafts, since none is worth its memory: {name} is the best with {gain}.",
            name=usable.name,
            gain=gain_words(usable),
        )
        return Decision(None, joined((none, LOOKUPS)))
    return Decision(None, joined((Sentence("There is no small model here that fits."), LOOKUPS)))


def _chosen(partners: Sequence[Partner], choice: PartnerChoice) -> Partner | None:
    """Return the partner that is the chosen file; else the one at its path, which says why it cannot draft."""
    by_id = next((partner for partner in partners if partner.id and partner.id == choice.draft), None)
    in_place = (partner for partner in partners if str(partner.path) == choice.path and not partner.is_usable)
    return by_id or next(in_place, None)


NONE = "none"


def names_no_model(entry: ModelEntry, text: str) -> bool:
    """Return whether a set draft is no model: "none", or "mtp" for the heads in the model's file."""
    has_heads = entry.facts is not None and entry.facts.n_mtp_layers > 0
    return text.casefold() == NONE or (text.casefold() == MTP and has_heads)


def own_draft(model: Path) -> str | None:
    """Return what is set for the model in this file: a name or path, "none", "mtp", or None where nothing is."""
    return settings_of(model).draft


def forget_own_draft(entry: ModelEntry) -> None:
    """Reset that setting, so that another choice counts; raises LibraryError."""
    if own_draft(entry.path) is None:
        return
    try:
        user_settings().change(entry.path, entry.name, lambda settings: settings.without(("draft",)))
    except (StoreRefused, OSError) as error:
        raise LibraryError(
            "The settings of {name} cannot be changed: {error}", ExitCode.ERROR, name=entry.name, error=error
        ) from error
