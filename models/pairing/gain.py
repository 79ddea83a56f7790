"""What drafting is expected to gain before it has run: acceptance by the kind of draft, cost by bytes per token. Pure.

The formula is that of Leviathan et al., Fast Inference from Transformers via Speculative Decoding (arXiv 2211.17192),
theorem 3.8: with acceptance rate a, depth g and a draft that costs the share c of a step of the model, one step brings
(1 - a^(g+1)) / (1 - a) tokens in the time of 1 + g*c steps. Verifying is not free here: a further row costs the share
that more experts read, and the compute of a row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from models.model_facts import WeightBytes

MAX_DEPTH = 8
# A partner that brings less is not worth its memory.
WORTH = 1.05
# What one more row of a step costs, as a share of the step. On a CPU computing shows: 0.28 by the speed of a perfect
# draft at depth 12 in benchmarks/results/draft.json (two cores). On a GPU a few rows hide behind reading the weights.
CPU_ROW, GPU_ROW = 0.28, 0.02
# Acceptance rates measured in the paper (T5-XXL and LaMDA, greedy) are near this line over the ratio of sizes: 0.61 at
# 1:1370, 0.71 at 1:68, 0.77 at 1:44, 0.78 at 1:14.
_AT_EQUAL_SIZE, _PER_DECADE = 0.87, 0.083
_LEAST_ACCEPTANCE = 0.4
# DeepSeek-V3's report (arXiv 2412.19437, 5.4.3) has 0.85 to 0.90 for the first token of its prediction head, and later
# ones are guessed from guesses. EAGLE-3 (arXiv 2503.01840, figure 7) stays near 0.75 at every depth.
_OF_HEADS = {"mtp": 0.80, "eagle3": 0.75}


_TRUST = 2


class Kind(StrEnum):
    """What drafts: a small model, prediction heads in the model's file, or a head in a file of its own."""

    MODEL = "model"
    MTP = "mtp"
    EAGLE3 = "eagle3"


@dataclass(frozen=True, slots=True)
class Prediction:
    """``gain`` is the expected speed over plain decoding, 1.0 where drafting does not pay; ``depth`` drafts for it."""

    acceptance: float
    depth: int
    gain: float


def expected_acceptance(kind: Kind, n_params: int, n_target_params: int) -> float:
    """The share of drafted tokens that are accepted, by the active parameters of both."""
    if kind in _OF_HEADS:
        return _OF_HEADS[kind]
    ratio = max(n_params, 1) / max(n_target_params, 1)
    return min(_AT_EQUAL_SIZE, max(_LEAST_ACCEPTANCE, _AT_EQUAL_SIZE + _PER_DECADE * math.log10(ratio)))


def predict(target: WeightBytes, draft_bytes: int, acceptance: float, row_cost: float = CPU_ROW) -> Prediction:
    """The best depth and its gain; ``draft_bytes`` is what the draft reads for a token."""
    one = max(target.read_by(1), 1)
    share = draft_bytes / one
    best = Prediction(acceptance, 0, 1.0)
    for depth in range(1, MAX_DEPTH + 1):
        n_tokens = sum(acceptance**accepted for accepted in range(depth + 1))
        seconds = target.read_by(depth + 1) / one + row_cost * depth + share * depth
        if n_tokens / seconds > best.gain:
            best = Prediction(acceptance, depth, n_tokens / seconds)
    return best


def corrected(predicted: float, known: Sequence[tuple[float, float]]) -> float:
    """A predicted gain, moved by what was (predicted, measured) of other pairs on this machine; at least 1.

    Few measurements move it little: it counts as two that had been right.
    """
    errors = [math.log(measured / forecast) for forecast, measured in known if forecast > 0 and measured > 0]
    return max(1.0, predicted * math.exp(sum(errors) / (len(errors) + _TRUST)))
