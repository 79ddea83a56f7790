"""What a draft is expected to gain for a model here: one answer for choosing partners and for judging models. Pure."""

from __future__ import annotations

from dataclasses import replace

from models.model_facts import ModelFacts
from models.pairing.gain import Judged, Kind, Prediction, expected_acceptance, learnt, predict
from models.pairing.price import Pace, cost_share

MTP = "mtp"
"""The name of the prediction heads in a model's own file."""


def kind_of(draft: ModelFacts | None) -> Kind:
    """What drafts; None is the prediction heads in the model's file."""
    if draft is None:
        return Kind.MTP
    return Kind.EAGLE3 if draft.is_head else Kind.MODEL


def draft_key(draft: ModelFacts | None) -> str:
    """The name under which runs know a draft."""
    return draft.files[0].stem if draft is not None and draft.files else MTP


def forecast(
    target: ModelFacts, draft: ModelFacts | None, pace: Pace | None, row_cost: float, judged: Judged
) -> Prediction:
    """Predict the gain of a draft (None: the prediction heads in the model's file) of whose tokens ``judged`` came."""
    n_params = draft.n_active_params if draft is not None else 0
    expected = expected_acceptance(kind_of(draft), n_params, target.n_active_params)
    share = cost_share(target, draft, pace)
    found = predict(target.active_weights, share, learnt(expected, judged), row_cost)
    return replace(found, is_measured=judged.n_tokens > 0)
