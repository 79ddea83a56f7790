"""Tokens per second of a model on a machine: predicted, with drafts, and measured. Values only."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SpeedPrediction:
    """Tokens per second of one request without drafts at an empty context and at one of ``n_ctx`` tokens."""

    empty: float
    full: float
    n_ctx: int


@dataclass(frozen=True, slots=True)
class DraftSpeed:
    """Tokens per second with ``depth`` tokens drafted each step (0: drafting would be slower).

    ``is_measured``: this pair was tested here; the rate is the model's predicted one times the measured gain.
    """

    rate: float
    depth: int
    acceptance: float
    is_acceptance_measured: bool
    is_measured: bool = False


@dataclass(frozen=True, slots=True)
class MeasuredSpeed:
    """Tokens per second of the latest ``n_runs`` runs, after ``n_past`` tokens; ``plain_rate`` is without drafts."""

    rate: float
    plain_rate: float
    n_past: int
    n_runs: int
    at: float
