"""Progress and result of quantising a model."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from models.formatting.sentence import Sentence
from models.gguf.tensor_types import odd_rows


class QuantisePhase(StrEnum):
    """Phases of quantising."""

    QUEUED = "queued"
    WAITING = "waiting for another Slipstream that makes it"
    SIZING = "looking at the model"
    QUANTISING = "quantising"
    VERIFYING = "loading the result"
    FAILED = "failed"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class QuantiseProgress:
    """``n_done`` of the source's ``n_total`` bytes of weights are converted; ``eta`` in seconds, None if unknown."""

    phase: QuantisePhase
    n_done: int
    n_total: int
    eta: float | None = None


@dataclass(frozen=True, slots=True)
class Quantised:
    """The result: a model of ``n_bytes`` in the file ``path``, ``seconds`` after the start.

    ``n_fallback`` of its ``n_tensors`` have rows that the type cannot hold and got a larger one.
    """

    name: str
    path: Path
    n_bytes: int
    n_tensors: int
    n_fallback: int
    seconds: float

    @property
    def notice(self) -> str | None:
        """A sentence about an unusual result, or None."""
        if not self.n_fallback:
            return None
        return Sentence(
            "The file is larger than usual: {rows}, so they got a larger one.",
            rows=odd_rows(
                Sentence("{n_fallback} of {n_tensors} tensors", n_fallback=self.n_fallback, n_tensors=self.n_tensors),
                Sentence("this type"),
            ),
        )


# The time left is estimated after this share is done.
_KNOWN_FROM = 0.02


def seconds_left(n_done: int, n_total: int, elapsed: float) -> float | None:
    """Seconds left at the speed so far; None if it is too early to say."""
    return elapsed * (n_total - n_done) / n_done if n_done > n_total * _KNOWN_FROM else None
