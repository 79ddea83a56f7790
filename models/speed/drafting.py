"""What a draft model brings: expected tokens per second for the best depth of drafted chains. Pure."""

from __future__ import annotations

from dataclasses import dataclass

# What small models of the same family reach on ordinary text, as an assumption until a pair has been measured.
USUAL_ACCEPTANCE = 0.6
_DEEPEST = 16


@dataclass(frozen=True, slots=True)
class DraftPrediction:
    """Tokens per second with ``depth`` tokens drafted each step, 0 where drafting does not pay."""

    rate: float
    depth: int
    acceptance: float
    is_acceptance_measured: bool


def with_draft(target: float, draft: float, row: float, acceptance: float | None) -> DraftPrediction:
    """Predict from the seconds of a token of both models, and what a further row adds to a step (share of a step).

    A chain of k tokens, each accepted with probability a if those before it were, brings (1 - a^(k+1)) / (1 - a)
    tokens (Leviathan et al. 2023, equation 1).
    """
    chance = USUAL_ACCEPTANCE if acceptance is None else min(max(acceptance, 0.0), 0.999)
    best = DraftPrediction(1.0 / target, 0, chance, acceptance is not None)
    for depth in range(1, _DEEPEST + 1):
        tokens = (1.0 - chance ** (depth + 1)) / (1.0 - chance)
        rate = tokens / (target * (1.0 + row * depth) + draft * depth)
        if rate > best.rate:
            best = DraftPrediction(rate, depth, chance, acceptance is not None)
    return best
