"""What a draft is expected to gain for a model here: one answer for choosing partners and for judging models. Pure."""

from __future__ import annotations

from dataclasses import replace

from models.facts.model_facts import ModelFacts
from models.pairing.gain import AcceptanceCounts, GainPrediction, ProposerKind, expected_acceptance, learnt, predict
from models.pairing.heads import IN_FILES, USUAL_BLOCK
from models.pairing.price import DraftingMachine, cost_share

MTP = "mtp"
"""The name of the prediction heads in a model's own file."""


def kind_of(draft: ModelFacts | None) -> ProposerKind:
    """What drafts; None is the prediction heads in the model's file."""
    if draft is None:
        return ProposerKind.MTP
    if draft.architecture in IN_FILES:
        return ProposerKind(draft.architecture)
    return ProposerKind.EAGLE3 if draft.is_head else ProposerKind.MODEL


def draft_key(draft: ModelFacts | None) -> str:
    """The name under which runs know a draft."""
    return draft.files[0].stem if draft is not None and draft.files else MTP


def forecast(
    target: ModelFacts,
    draft: ModelFacts | None,
    pace: DraftingMachine | None,
    row_cost: float,
    judged: AcceptanceCounts,
) -> GainPrediction:
    """Predict the gain of a draft (None: the prediction heads in the model's file) of whose tokens ``judged`` came."""
    n_params = draft.n_active_params if draft is not None else 0
    kind = kind_of(draft)
    expected = expected_acceptance(kind, n_params, target.n_active_params)
    share = cost_share(target, draft, pace)
    if kind is ProposerKind.DFLASH:
        # The rows of a block are computed whether they are used or not.
        share *= 1 + (USUAL_BLOCK - 1) * row_cost
    found = predict(
        target.active_weights, share, learnt(expected, judged), row_cost, is_block=kind is ProposerKind.DFLASH
    )
    return replace(found, is_measured=judged.n_tokens > 0)
