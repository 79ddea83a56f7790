"""Finds heads on the Hub that draft for a model: in its own repository, and in others of its family."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from models.facts.model_facts import ModelFacts, facts_from
from models.formatting.sentence import Sentence
from models.gguf.errors import GgufError
from models.gguf.header import GgufHeader, read_header, read_header_from
from models.hub.client import Hub, Search
from models.hub.errors import HubError
from models.hub.remote_source import RemoteSource
from models.hub.repository import Access, FileRole, FoundRepository, HubModel, Repository, without_quantisation
from models.pairing import heads
from models.pairing.forecast import proposer_kind
from models.pairing.gain import ProposerKind
from models.pairing.offers import (
    MOST_FOUND,
    SIMILAR,
    DownloadOffer,
    FoundOffers,
    family,
    n_params_in,
    preferred,
    priced,
    sorted_out,
)
from models.pairing.partner import PairingConditions
from models.pairing.vocabulary import FileVocabulary, why_vocabularies_differ

# Each look reads a header over the network.
_MOST_REPOSITORIES, _MOST_OF_ONE = 3, 3


def hub_heads(
    hub: Hub,
    facts: ModelFacts,
    names: Iterable[str],
    conditions: PairingConditions,
    repo_id: str | None = None,
    vocabulary: FileVocabulary | None = None,
) -> FoundOffers:
    """EAGLE-3 heads for the model, and other drafts in its own repository ``repo_id``.

    A head belongs to one model: its header must name that model, and its tokens are compared. Heads that cannot be used
    are listed with the reason. ``vocabulary`` is the model's, if ``facts`` have no files to read it from. Reads a few
    MB; raises HubError and GgufError.
    """
    no_head = heads.why_no_file(facts) or conditions.why_no_head(ProposerKind.EAGLE3)
    notes = [Sentence("No EAGLE-3 head was looked for. {no_head}", no_head=no_head)] if no_head is not None else []
    vocabulary = vocabulary or FileVocabulary(read_header(facts.files[0]))
    looked = (
        (f"{repository.repo_id}, {item.name}", _look(hub, repository, item, facts, vocabulary, conditions.row_cost))
        for repository, items in _candidates(hub, facts, tuple(names), repo_id, searches=no_head is None)
        for item in items[:_MOST_OF_ONE]
    )
    found = sorted_out(((name, one) for name, one in looked if one is not None), conditions.room)
    return replace(found, notes=(*notes, *found.notes))


def _candidates(
    hub: Hub, facts: ModelFacts, names: tuple[str, ...], repo_id: str | None, *, searches: bool
) -> Iterator[tuple[Repository, list[HubModel]]]:
    """Repositories with possible drafts, the model's own first; ``searches``: others too."""
    if repo_id is not None:
        own = _repository(hub, repo_id)
        if own is not None:
            yield own, _each_once(own.with_role(FileRole.DRAFT))
    words = next((name for name in map(family, names) if name), "")
    if not words or not searches:
        return
    found = hub.search(Search(f"{words} {ProposerKind.EAGLE3}", limit=MOST_FOUND))
    size = next((n for n in map(n_params_in, names) if n), facts.n_params)
    rows = [row for row in found if row.repo_id != repo_id and _may_belong(row, size)]
    # Repositories that name the size of their model come first.
    rows.sort(key=lambda row: not n_params_in(row.repo_id))
    for row in rows[:_MOST_REPOSITORIES]:
        repository = _repository(hub, row.repo_id)
        if repository is not None:
            items = repository.with_role(FileRole.DRAFT) or repository.with_role(FileRole.MODEL)
            yield repository, _each_once(items)


def _may_belong(row: FoundRepository, size: int) -> bool:
    said = n_params_in(row.repo_id)
    return row.access is Access.OPEN and (not said or abs(said / max(size, 1) - 1) <= SIMILAR)


def _repository(hub: Hub, repo_id: str) -> Repository | None:
    """The repository; None if it is gone or not accessible."""
    try:
        return hub.repository(repo_id)
    except HubError:
        return None


def _each_once(items: Iterable[HubModel]) -> list[HubModel]:
    """Each head once, in the preferred quantisation."""
    by_name: dict[str, list[HubModel]] = {}
    for item in items:
        if not item.missing and len(item.files) == 1:
            by_name.setdefault(without_quantisation(item.name).casefold(), []).append(item)
    return [taken for same in by_name.values() if (taken := preferred(same)) is not None]


def _look(
    hub: Hub, repository: Repository, item: HubModel, facts: ModelFacts, vocabulary: FileVocabulary, row_cost: float
) -> DownloadOffer | str | None:
    """An offer, or the reason against it; None for a file that is no draft head."""
    file = item.files[0]
    try:
        with RemoteSource(hub, repository.repo_id, repository.commit, file) as source:
            header = read_header_from(source)
            draft = facts_from([header])
            if draft.problem is None and item.role is not FileRole.DRAFT:
                return None
            reason = _why_not(header, draft, facts, vocabulary)
    except (HubError, GgufError) as error:
        return str(error)
    if reason is not None:
        return reason
    found = DownloadOffer(repository.repo_id, file.path, file.n_bytes, 1.0, True, proposer_kind(draft), draft)
    return priced(found, facts, row_cost)


def _why_not(header: GgufHeader, draft: ModelFacts, facts: ModelFacts, vocabulary: FileVocabulary) -> str | None:
    if not draft.is_head:
        return draft.why_no_draft or why_vocabularies_differ(vocabulary, FileVocabulary(header))
    return (
        heads.why_not_kind(draft.architecture)
        or heads.why_not_file(header, facts)
        or why_vocabularies_differ(vocabulary, FileVocabulary(header))
    )
