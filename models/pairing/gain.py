"""The expected gain of drafting, from acceptance and the costs of drafting and verifying. Pure.

The formula is that of Leviathan et al., Fast Inference from Transformers via Speculative Decoding (arXiv 2211.17192),
theorem 3.8: with acceptance rate a, depth g and a draft that costs the share c of a step of the model, one step yields
(1 - a^(g+1)) / (1 - a) tokens in the time of 1 + g*c steps. Here verifying is not free: a further row costs the reading
of more experts, and the compute of a row.

The acceptance rate is assumed until a draft has run on this machine (``learnt``). Published, as the constant rate a
that explains the mean number of tokens L = (1 - a^(g+1)) / (1 - a) that came from a step of depth g:

- Small models: table 3 of that paper has T5-XXL (11B) and LaMDA (137B), greedy: 0.61 at a size of 1:1370, 0.71 at 1:68,
  0.77 at 1:44 and 0.78 at 1:14. They lie near a line over the logarithm of the ratio.
- Prediction heads in the model's file: 0.85 to 0.90 of the first token (DeepSeek-V3, arXiv 2412.19437, 5.4.3); further
  tokens are guessed from guesses: L 2.98 at depth 3 with GLM-5.2 (llama.cpp, pull request 25980) and 3.57 at depth 4
  with Qwen3.6-35B-A3B (22673) make 0.81 and 0.83, L 3.20 at depth 7 with DeepSeek-V3 (model card of
  nebius/MTP-DeepSeek-V3-0324) 0.71.
- EAGLE-3 heads: L 3.53 at depth 7 with Llama-3.1-8B on MT-Bench (vLLM, 26191) makes 0.74, as L 2.7 at depth 3 with
  Qwen3-8B does (speculators, 563); 2.47 at depth 6 with MiniCPM3 (vLLM, 24243) makes 0.61 and 2.36 at depth 5 with
  gpt-oss (42764) 0.60. The paper's own lengths (arXiv 2503.01840) are of trees, which accept more.
- DFlash heads count like these until one has run here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from models.facts.model_facts import WeightBytes

# Draft depths that are tried.
MAX_DEPTH = 8
# A draft with a smaller gain is not worth its memory.
WORTH = 1.05
_AT_EQUAL_SIZE, _PER_DECADE = 0.87, 0.083
_LEAST_ACCEPTANCE = 0.4
_OF_HEADS = {"mtp": 0.80, "eagle3": 0.70, "dflash": 0.70}
# Published acceptance counts like this many tokens judged here.
_PRIOR_TOKENS = 16.0
_TRUST = 2


class ProposerKind(StrEnum):
    """Kinds of drafts: a small model, prediction heads in the model's file, or a head in a file of its own."""

    MODEL = "model"
    MTP = "mtp"
    EAGLE3 = "eagle3"
    DFLASH = "dflash"


@dataclass(frozen=True, slots=True)
class AcceptanceCounts:
    """Drafted tokens of one pair that the model has judged on this machine, and how many of them it accepted."""

    n_tokens: int
    n_accepted: int


NOTHING_JUDGED = AcceptanceCounts(0, 0)


@dataclass(frozen=True, slots=True)
class GainPrediction:
    """``gain`` is the expected speed over plain decoding with ``depth`` drafted tokens; 1.0 if drafting is not faster.

    ``is_measured``: ``acceptance`` was measured with this pair here.
    """

    acceptance: float
    depth: int
    gain: float
    is_measured: bool = False


def expected_acceptance(kind: ProposerKind, n_params: int, n_target_params: int) -> float:
    """The chance that a drafted token is accepted after its predecessors, by the active parameters of both."""
    if kind in _OF_HEADS:
        return _OF_HEADS[kind]
    ratio = max(n_params, 1) / max(n_target_params, 1)
    return min(_AT_EQUAL_SIZE, max(_LEAST_ACCEPTANCE, _AT_EQUAL_SIZE + _PER_DECADE * math.log10(ratio)))


def learnt(expected: float, judged: AcceptanceCounts) -> float:
    """The expected acceptance, moved towards the measured one by the number of tokens judged here."""
    return (judged.n_accepted + _PRIOR_TOKENS * expected) / (judged.n_tokens + _PRIOR_TOKENS)


def predict(
    target: WeightBytes, share: float, acceptance: float, row_cost: float, *, is_block: bool = False
) -> GainPrediction:
    """The best depth and its gain; a drafted token costs ``share`` of a token of the model (``forecast.cost_share``).

    If it ``is_block``, that is the cost of all its tokens together.
    """
    one = max(target.read_by(1), 1)
    best = GainPrediction(acceptance, 0, 1.0)
    for depth in range(1, MAX_DEPTH + 1):
        n_tokens = sum(acceptance**accepted for accepted in range(depth + 1))
        seconds = target.read_by(depth + 1) / one + row_cost * depth + share * (1 if is_block else depth)
        if n_tokens / seconds > best.gain:
            best = GainPrediction(acceptance, depth, n_tokens / seconds)
    return best


def corrected_gain(predicted: float, known: Sequence[tuple[float, float]]) -> float:
    """A predicted gain, corrected by the (predicted, measured) gains of other pairs on this machine; at least 1.

    The prediction counts like two correct measurements, so a few measurements change it little.
    """
    errors = [math.log(measured / forecast) for forecast, measured in known if forecast > 0 and measured > 0]
    return max(1.0, predicted * math.exp(sum(errors) / (len(errors) + _TRUST)))
