"""What drafting for one step took, and for whom it was."""

from __future__ import annotations

from typing import NamedTuple

from core.speculative.record import Record


class Effort(NamedTuple):
    """Seconds beside a step's decode, and the tokens that each sequence got from it.

    Of the ``seconds``, those ``at_risk`` would not have been spent without drafts; to decide takes the others anyway.
    """

    seconds: float
    at_risk: float
    yields: list[tuple[Record, int]]
