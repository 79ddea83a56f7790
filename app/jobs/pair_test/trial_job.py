"""What a trial of a pair is asked, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TrialTask:
    """A model and what drafts for it (None: the prediction heads in its file); ``seconds`` of measuring at most."""

    target: str
    draft: str | None
    n_tokens: int = 48
    seconds: float = 40.0


@dataclass(frozen=True, slots=True)
class TrialResult:
    """Rates in tokens per second over all replies; ``acceptance`` None where nothing was drafted."""

    gain: float
    plain_rate: float
    drafted_rate: float
    acceptance: float | None
    n_replies: int
