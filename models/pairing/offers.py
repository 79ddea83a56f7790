"""Draft models to download for a model: from this project's list, and from the Hub."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from models.catalog.curated import CuratedModel, curated
from models.facts.model_facts import ModelFacts, facts_from
from models.formatting.sentence import Sentence
from models.gguf.errors import GgufError
from models.gguf.header import read_header, read_header_from
from models.hub.client import Hub, Search
from models.hub.errors import HubError
from models.hub.remote_source import RemoteSource
from models.hub.repository import Access, FileRole, FoundRepository, HubModel, choice_of, without_quantisation
from models.pairing.forecast import forecast
from models.pairing.gain import NOTHING_JUDGED, WORTH, ProposerKind, expected_acceptance, predict
from models.pairing.partner import PairingConditions
from models.pairing.vocabulary import FileVocabulary, why_vocabularies_differ

# Siblings larger than this share of the model gain little.
_LARGEST_SHARE = 0.4
MOST_FOUND = 50
_MOST_LOOKED_AT, _MOST_OFFERS = 3, 3
# Preferred quantisations of draft models, best first: small models lose more by coarse weights.
_PREFERRED = ("Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "Q4_0", "F16", "BF16")
# Parameter counts that differ by at most this share may be those of the same model.
SIMILAR = 0.25
_SIZE = re.compile(r"^(a?\d+(\.\d+)?[bm]|\d+x\d+(\.\d+)?b|e\d+b)$")
_N_PARAMS = re.compile(r"(?<![a-z0-9.])(\d+(?:\.\d+)?)([bm])(?![a-z0-9])", re.IGNORECASE)
_COMMON = frozenset({"instruct", "it", "chat", "base", "gguf", "meta", "hf", "preview", "thinking", "qat", "ud", "i1"})
_DATE = re.compile(r"^\d{4,6}$")
_PARTS = re.compile(r"[\s_/:-]+")


@dataclass(frozen=True, slots=True)
class DownloadOffer:
    """A draft model or head to download: ``wanted`` is its quantisation or file in the repository.

    ``is_checked``: its header was read and its tokens fit; ``draft`` then has its facts.
    """

    repo_id: str
    wanted: str
    n_bytes: int
    gain: float
    is_checked: bool
    kind: ProposerKind = ProposerKind.MODEL
    draft: ModelFacts | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """Repository and quantisation or file, as for a download."""
        return f"{self.repo_id}:{self.wanted}" if self.wanted else self.repo_id


@dataclass(frozen=True, slots=True)
class FoundOffers:
    """Offers, best first, and sentences about those that do not fit or about what else there is."""

    offers: tuple[DownloadOffer, ...]
    notes: tuple[str, ...]


def curated_offers(facts: ModelFacts, names: Iterable[str], conditions: PairingConditions) -> tuple[DownloadOffer, ...]:
    """Offers from this project's list for the model with these names (title, file, repository); no network."""
    known, mine = curated().models, {name for name in map(family, names) if name}
    named = [model for model in known if family(model.title) in mine or family(model.repo_id) in mine]
    alike = [model for model in named if abs(model.n_params / max(facts.n_params, 1) - 1) <= SIMILAR]
    drafts = {(model.draft.repo_id, model.draft.quantisation) for model in alike or named if model.draft is not None}
    drafts |= {(model.repo_id, model.files[0].quantisation) for model in named}
    offers = (
        _of_list(repo_id, quantisation, known, facts, conditions.row_cost) for repo_id, quantisation in sorted(drafts)
    )
    return best(offer for offer in offers if offer is not None and has_room(offer, conditions.room))


def hub_offers(
    hub: Hub,
    facts: ModelFacts,
    names: Iterable[str],
    conditions: PairingConditions,
    vocabulary: FileVocabulary | None = None,
) -> FoundOffers:
    """Small siblings on the Hub with the model's vocabulary; reads a few MB. Raises HubError and GgufError.

    ``vocabulary`` is the model's, if ``facts`` have no files to read it from.
    """
    words = next((name for name in map(family, names) if name), "")
    if not words:
        return FoundOffers((), (Sentence("The model's name says nothing of its family, so the Hub was not searched."),))
    largest = int(facts.n_params * _LARGEST_SHARE)
    found = hub.search(Search(words, limit=MOST_FOUND))
    siblings = [row for row in found if _is_sibling(row, facts, largest)]
    row_cost = conditions.row_cost

    def rank(row: FoundRepository) -> tuple[bool, float]:
        """Those of the very family first: others of its name are made for code, images or vectors."""
        gain = _of_params(facts, row.n_params, row.n_params * 8.5 / 8, row_cost)
        return family(row.repo_id) != words, -gain

    siblings.sort(key=rank)
    vocabulary = vocabulary or FileVocabulary(read_header(facts.files[0]))
    if not siblings:
        note = Sentence("The Hub has no small sibling of this model under the name {words}.", words=repr(words))
        return FoundOffers((), (note,))
    looked_at = [row.repo_id for row in siblings[:_MOST_LOOKED_AT]]
    return sorted_out(((name, _look(hub, name, facts, vocabulary, row_cost)) for name in looked_at), conditions.room)


def sorted_out(found: Iterable[tuple[str, DownloadOffer | str]], room: int | None) -> FoundOffers:
    """The best of what was found by name; a reason against one, or too little ``room`` for it, becomes a note."""
    offers: list[DownloadOffer] = []
    notes: list[str] = []
    for name, one in found:
        if isinstance(one, str):
            notes.append(Sentence("{name}: {reason}", name=name, reason=one))
        elif not has_room(one, room):
            notes.append(Sentence("{name}: It is larger than the memory that is left beside the model.", name=name))
        else:
            offers.append(one)
    return FoundOffers(best(offers), tuple(notes))


def best(offers: Iterable[DownloadOffer]) -> tuple[DownloadOffer, ...]:
    """The offers that are worth their memory, best first, each repository once."""
    by_repository: dict[str, DownloadOffer] = {}
    for offer in sorted(offers, key=lambda offer: (-offer.gain, offer.n_bytes)):
        if offer.gain >= WORTH:
            by_repository.setdefault(offer.repo_id, offer)
    return tuple(by_repository.values())[:_MOST_OFFERS]


def _of_list(
    repo_id: str, quantisation: str, known: Iterable[CuratedModel], facts: ModelFacts, row_cost: float
) -> DownloadOffer | None:
    """An offer of a listed model, from its figures in the list."""
    listed = next(model for model in known if model.repo_id == repo_id)
    file = next(file for file in listed.files if file.quantisation == quantisation)
    if listed.n_params > facts.n_params * _LARGEST_SHARE:
        return None
    gain = _gain(facts, listed.facts_of(file), row_cost)
    return DownloadOffer(repo_id, quantisation, file.n_bytes, gain, is_checked=False)


def _is_sibling(row: FoundRepository, facts: ModelFacts, largest: int) -> bool:
    is_known = row.architecture in (None, facts.architecture)
    return is_known and row.access is Access.OPEN and row.n_models > 0 and 0 < row.n_params <= largest


def _look(
    hub: Hub, repo_id: str, facts: ModelFacts, vocabulary: FileVocabulary, row_cost: float
) -> DownloadOffer | str:
    """An offer from a repository, or the reason against it."""
    try:
        repository = hub.repository(repo_id)
        model = preferred(model for model in repository.with_role(FileRole.MODEL) if len(model.files) == 1)
        if model is None:
            return Sentence("It has no whole file to download.")
        with RemoteSource(hub, repository.repo_id, repository.commit, model.files[0]) as source:
            header = read_header_from(source)
            reason = why_vocabularies_differ(vocabulary, FileVocabulary(header))
            if reason is not None:
                return reason
            draft = facts_from([header])
    except (HubError, GgufError) as error:
        return str(error)
    if draft.why_no_draft is not None:
        return draft.why_no_draft
    wanted = choice_of(model, repository.models)
    found = DownloadOffer(repository.repo_id, wanted, model.n_bytes, 1.0, True, draft=draft)
    return priced(found, facts, row_cost)


def priced(offer: DownloadOffer, facts: ModelFacts, row_cost: float) -> DownloadOffer:
    """An offer with its gain for ``facts``; unchanged if its header was not read."""
    draft = offer.draft
    return replace(offer, gain=_gain(facts, draft, row_cost)) if draft is not None else offer


def _gain(facts: ModelFacts, draft: ModelFacts, row_cost: float) -> float:
    return forecast(facts, draft, None, row_cost, NOTHING_JUDGED).gain


def preferred(models: Iterable[HubModel]) -> HubModel | None:
    """The preferred quantisation of a draft model, nearly exact if possible."""
    whole = [model for model in models if not model.missing]
    by_name = {model.quantisation: model for model in reversed(whole)}
    return next((by_name[name] for name in _PREFERRED if name in by_name), whole[0] if whole else None)


def _of_params(facts: ModelFacts, n_params: int, n_bytes: float, row_cost: float) -> float:
    acceptance = expected_acceptance(ProposerKind.MODEL, n_params, facts.n_active_params)
    return predict(facts.active_weights, n_bytes / max(facts.active_bytes_per_token, 1), acceptance, row_cost).gain


def has_room(offer: DownloadOffer, room: int | None) -> bool:
    """Whether the memory beside the model is enough; ``room`` None is unknown."""
    return room is None or offer.n_bytes <= room


def family(name: str) -> str:
    """The words of a model's name without maker, size, purpose and quantisation."""
    stem = without_quantisation(name.rsplit("/", 1)[-1].removesuffix(".gguf")).lower()
    words = [word for word in _PARTS.split(stem) if word and word not in _COMMON]
    kept = [word for word in words if not _SIZE.match(word) and not _DATE.match(word)]
    return " ".join(kept).strip(". ")


def n_params_in(name: str) -> int:
    """The number of parameters in a name like "Qwen2.5-Coder-0.5B-Instruct"; 0 if it has none."""
    found = _N_PARAMS.search(name.rsplit("/", 1)[-1])
    if found is None:
        return 0
    return round(float(found[1]) * (1e9 if found[2].lower() == "b" else 1e6))
