"""Judges the possible drafts of a model: an expected or measured gain, or the reason why one cannot draft."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from models.catalog.catalog import ModelEntry
from models.estimate.fit.memory import EngineShape, estimate
from models.facts.model_facts import ModelFacts
from models.formatting.sentence import Sentence
from models.gguf.errors import GgufError
from models.gguf.header import read_header
from models.pairing import heads
from models.pairing.forecast import CPU_ROW, MTP, DraftingMachine, draft_bytes, draft_key, forecast, proposer_kind
from models.pairing.gain import NOTHING_JUDGED, WORTH, AcceptanceCounts, GainPrediction, ProposerKind, corrected_gain
from models.pairing.store import MeasuredGain, PairStore, file_id
from models.pairing.vocabulary import why_not_files

OtherWords = Callable[[Path], str | None]
"""Gives the reason why the vocabulary of a file differs from the target's, or None."""


@dataclass(frozen=True, slots=True)
class PairingConditions:
    """Conditions of a pair: ``n_cells`` KV cells for ``n_slots`` requests, ``room`` bytes of memory beside the model.

    ``room`` None is unknown. ``row_cost`` is the cost of a further row as a share of a step, ``pace`` the measured
    machine with the model on it, or None. ``machine`` is the machine's key in the store. ``why_no_head`` returns why
    this build cannot run a kind of head, or None. ``judged`` returns the acceptance of a draft here, by the name of its
    file.
    """

    n_cells: int
    n_slots: int
    room: int | None = None
    row_cost: float = CPU_ROW
    pace: DraftingMachine | None = None
    machine: str = ""
    why_no_head: Callable[[ProposerKind], str | None] = lambda kind: None
    judged: Callable[[str], AcceptanceCounts] = lambda name: NOTHING_JUDGED


@dataclass(frozen=True, slots=True)
class Partner:
    """A possible draft of a model. ``path`` is None for prediction heads in the model's own file.

    ``n_bytes`` is its size on disk, ``memory`` its bytes of memory, or None if unknown. ``problem`` says why it cannot
    draft, or is None. It is ranked by ``gain``, the speed over plain decoding: ``measured`` on this machine, else
    expected. ``has_vocabulary``: its tokens are the model's, as far as they were compared.
    """

    name: str
    path: Path | None
    kind: ProposerKind
    n_params: int = 0
    n_bytes: int = 0
    memory: int | None = None
    prediction: GainPrediction | None = None
    measured: MeasuredGain | None = None
    gain: float = 1.0
    problem: str | None = None
    has_vocabulary: bool = False
    id: str = ""

    @property
    def is_usable(self) -> bool:
        """Whether it can draft here."""
        return self.problem is None

    @property
    def is_worth_it(self) -> bool:
        """Whether it is usable and expected to make the model noticeably faster."""
        return self.problem is None and self.gain >= WORTH

    @property
    def drafted_nothing(self) -> bool:
        """True where it was tested here and never drafted."""
        return self.measured is not None and self.measured.acceptance is None

    def as_dict(self) -> dict[str, object]:
        """A JSON object."""
        prediction, measured = self.prediction, self.measured
        return {
            "name": self.name,
            "kind": self.kind.value,
            "path": str(self.path) if self.path is not None else None,
            "n_params": self.n_params,
            "n_bytes": self.n_bytes,
            "memory": self.memory,
            "acceptance": round(prediction.acceptance, 3) if prediction else None,
            "is_acceptance_measured": prediction.is_measured if prediction else None,
            "depth": prediction.depth if prediction else None,
            "predicted": round(prediction.gain, 3) if prediction else None,
            "measured": round(measured.gain, 3) if measured else None,
            "measured_on": measured.date if measured else None,
            "gain": round(self.gain, 3) if self.problem is None else None,
            "problem": self.problem,
        }


def partners(
    target: ModelEntry,
    models: Iterable[ModelEntry],
    store: PairStore,
    conditions: PairingConditions,
    other_words: OtherWords | None = None,
) -> tuple[Partner, ...]:
    """All possible drafts of ``target``, best first, then those that cannot draft, with the reasons.

    Reads headers if names and sizes do not decide; needs the facts of ``target``. ``other_words`` compares the
    vocabulary of a file with the target's; needed if the target has no file here.
    """
    facts = target.facts
    if facts is None:
        return ()
    other_words = other_words or partial(why_not_files, target.path)
    judged = [_judge(facts, entry, conditions, other_words) for entry in models if entry.path != target.path]
    if facts.n_mtp_layers:
        judged.append(_own_heads(facts, conditions))
    target_id = _id(target.path)
    known = [(gain.forecast, gain.gain) for gain in store.gains(conditions.machine)]
    ranked = [_measured(partner, target_id, store, conditions, known) for partner in judged]
    return tuple(sorted(ranked, key=_rank))


def _rank(partner: Partner) -> tuple[int, float, int, str]:
    """The order: usable ones by gain, then those with the right vocabulary, then others, each by size."""
    if partner.is_usable:
        return 0, -partner.gain, partner.n_bytes, partner.name
    return (1 if partner.has_vocabulary else 2), 0.0, partner.n_bytes, partner.name


def _judge(facts: ModelFacts, entry: ModelEntry, conditions: PairingConditions, other_words: OtherWords) -> Partner:
    draft = entry.facts
    if draft is None:
        return Partner(entry.name, entry.path, ProposerKind.MODEL, 0, entry.n_bytes, problem=entry.problem)
    partner = Partner(entry.name, entry.path, proposer_kind(draft), draft.n_params, draft.n_bytes)
    try:
        if draft.is_head:
            reason = _why_not_head(facts, entry, conditions, other_words)
        else:
            reason = _why_not(facts, entry, other_words)
    except GgufError as error:
        reason = str(error)
    if reason is not None:
        return replace(partner, problem=reason)
    return _priced(replace(partner, has_vocabulary=True), facts, draft, conditions)


def _why_not_head(
    facts: ModelFacts, entry: ModelEntry, conditions: PairingConditions, other_words: OtherWords
) -> str | None:
    assert entry.facts is not None
    return (
        heads.why_not_kind(entry.facts.architecture)
        or heads.why_not_file(read_header(entry.path), facts)
        or other_words(entry.path)
        or conditions.why_no_head(proposer_kind(entry.facts))
    )


def _why_not(facts: ModelFacts, entry: ModelEntry, other_words: OtherWords) -> str | None:
    """Why a small model cannot draft: by its facts first, then by its vocabulary."""
    draft = entry.facts
    assert draft is not None
    reason = entry.problem or draft.why_no_draft
    if reason is not None:
        return reason
    if draft.weight_bytes > facts.weight_bytes:
        return Sentence(
            "It is larger than the model: {its:size} of weights, and the model has {mine:size}.",
            its=draft.weight_bytes,
            mine=facts.weight_bytes,
        )
    mine, its = facts.tokenizer, draft.tokenizer
    if None not in (mine, its) and mine != its:
        return Sentence("Its tokenizer is of another kind ({its} instead of {mine}).", its=its, mine=mine)
    return other_words(entry.path)


def _priced(partner: Partner, facts: ModelFacts, draft: ModelFacts, conditions: PairingConditions) -> Partner:
    """The partner with its predicted gain and its memory."""
    prediction = _predicted(facts, draft, conditions)
    memory = estimate(draft, conditions.n_cells, EngineShape(conditions.n_slots)).total
    priced = replace(partner, memory=memory, prediction=prediction, gain=prediction.gain)
    # A draft of low measured acceptance stays usable: the user may choose it.
    if prediction.depth == 0 and not prediction.is_measured:
        its, model = draft_bytes(facts, draft), facts.active_bytes_per_token
        reason = Sentence(
            "It is too large to gain anything: it reads {its:size} for a token, and the model {model:size}.",
            its=its,
            model=model,
        )
        return replace(priced, problem=reason)
    if conditions.room is not None and memory > conditions.room:
        left = max(conditions.room, 0)
        reason = Sentence(
            "It needs {memory:size} of memory beside the model, and {left:size} is left.", memory=memory, left=left
        )
        return replace(priced, problem=reason)
    return priced


def _predicted(facts: ModelFacts, draft: ModelFacts | None, conditions: PairingConditions) -> GainPrediction:
    judged = conditions.judged(draft_key(draft))
    return forecast(facts, draft, conditions.pace, conditions.row_cost, judged)


def _own_heads(facts: ModelFacts, conditions: PairingConditions) -> Partner:
    """The prediction heads in the model's own file."""
    partner = Partner(MTP, None, ProposerKind.MTP, has_vocabulary=True, id=MTP)
    reason = heads.why_no_mtp(facts) or conditions.why_no_head(ProposerKind.MTP)
    if reason:
        return replace(partner, problem=reason, has_vocabulary=False)
    prediction = _predicted(facts, None, conditions)
    return replace(partner, memory=0, prediction=prediction, gain=prediction.gain)


def _measured(
    partner: Partner, target_id: str, store: PairStore, conditions: PairingConditions, known: list[tuple[float, float]]
) -> Partner:
    """The partner with its measured gain, else with its prediction, corrected by measurements of other pairs."""
    if partner.prediction is None:
        return partner
    own_id = partner.id or _id(partner.path)
    measured = store.gain(target_id, own_id, conditions.machine)
    if measured is None:
        gain = corrected_gain(partner.gain, known)
    else:
        gain = measured.gain if measured.acceptance is not None else 1.0  # without drafts, rates differ by chance
    return replace(partner, id=own_id, measured=measured, gain=gain)


def _id(path: Path | None) -> str:
    try:
        return file_id(path) if path is not None else ""
    except GgufError:
        return ""
