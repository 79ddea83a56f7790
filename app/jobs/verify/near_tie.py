"""How far a token was from being chosen: what tells rounding from a wrong answer. Pure."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from core.sampling.sampler import gumbel
from core.values.request import SamplingParams

# Logits. Kernels for one row and for many round differently: on a CPU, differences between the ten best tokens moved by
# up to 0.19 (Q8_0, Q4_0 and F16 weights, 8 to 60 layers). So tokens that are this close may swap places.
NEAR_TIE = 0.25
# The shortfall of what can never be chosen, and the least that a logit counts.
FAR = 1e9
_LEAST_SHARE = 1e-12  # keeps the logarithm finite

Array = npt.NDArray[np.float64]


def shortfall(
    logits: npt.NDArray[np.floating], token: int, params: SamplingParams, seed: int | None = None, position: int = 0
) -> float:
    """Return the least change of the differences between logits with which ``token`` would be chosen, 0 for the choice.

    ``logits`` has shape (n_vocab,). Where ``params`` sample, what counts is what the sampler compares: the logits with
    the noise of (``seed``, ``position``) at the request's temperature, and the edges of top-k, top-p and min-p, beyond
    which a token takes no part. Only these settings are looked at, and top-k must be on.
    """
    values = np.maximum(logits.astype(np.float64), -FAR)
    if params.is_greedy:
        return float(values.max() - values[token])
    assert seed is not None
    assert params.top_k > 0
    inside = _room_inside(values, params)
    scores = values + params.temperature * gumbel(seed, position, np.arange(len(values), dtype=np.int32))
    # A rival is out when a change pushes it over the edge or lifts the token above it: the smaller change counts.
    obstacle = float(np.minimum(inside, scores - scores[token]).max())
    return max(0.0, -float(inside[token]), obstacle)


def _room_inside(values: Array, params: SamplingParams) -> Array:
    """Return how far each token is inside the edges of top-k, top-p and min-p in logits; negative where outside."""
    order = np.argsort(-values, kind="stable")
    room: Array = np.minimum(_inside_top_k(values, order, params.top_k), _inside_top_p(values, order, params))
    return np.minimum(room, _inside_min_p(values, params))


def _inside_top_k(values: Array, order: npt.NDArray[np.intp], top_k: int) -> Array:
    if top_k >= len(values):
        return np.full(len(values), np.inf)
    room: Array = values - values[order[top_k - 1]]
    kept = order[:top_k]
    room[kept] = values[kept] - values[order[top_k]]
    return room


def _inside_top_p(values: Array, order: npt.NDArray[np.intp], params: SamplingParams) -> Array:
    """A token is kept while those before it, of the ``top_k`` best, have a share below ``top_p``.

    A change of the differences by x moves the log odds of any share by at most x, and lets tokens that are at most x
    apart change places, which changes who is before whom.
    """
    room = np.full(len(values), np.inf)
    if params.top_p >= 1.0:
        return room
    kept = order[: params.top_k]
    ranked = values[kept]
    weights = np.exp(ranked - ranked[0])
    weights /= weights.sum()
    before = np.concatenate([[0.0], weights.cumsum()])
    edge = float(_log_odds(np.array(params.top_p)))
    for rank, token in enumerate(kept):
        if before[rank] < params.top_p:
            falls_behind = ranked[rank] - ranked[rank:]
            room[token] = np.maximum(falls_behind, edge - _log_odds(before[rank + 1 :] - weights[rank])).min()
        else:
            gets_ahead = ranked[: rank + 1] - ranked[rank]
            room[token] = -np.maximum(gets_ahead, _log_odds(before[: rank + 1]) - edge).min()
    return room


def _log_odds(share: Array) -> Array:
    share = np.clip(share, _LEAST_SHARE, 1.0 - _LEAST_SHARE)
    odds: Array = np.log(share / (1.0 - share))
    return odds


def _inside_min_p(values: Array, params: SamplingParams) -> Array:
    if params.min_p <= 0.0:
        return np.full(len(values), np.inf)
    room: Array = values - (values.max() + math.log(params.min_p))
    return room
