"""What drafting for one step took, and for whom it was."""

from __future__ import annotations

from collections.abc import Sequence as Series
from typing import NamedTuple

from core.speculation.policy.draft_growth import Risk
from core.speculation.policy.draft_state import Record
from core.speculation.proposer import Promise


class Came(NamedTuple):
    """A text got ``n_new`` tokens from a step with ``n_rows`` drafted ones; ``drafter`` drafted last for it.

    ``promise`` is what was expected of that where there was a choice.
    """

    record: Record
    n_new: int
    drafter: str
    n_rows: int
    promise: Promise | None = None


class Effort(NamedTuple):
    """Seconds beside a step's decode, and what each sequence got from it.

    Of the ``seconds``, ``shared`` are what trees and the way back from drafts took, and the ``risks`` what drafters
    took; the others went into deciding.
    """

    seconds: float
    shared: float
    risks: Series[Risk]
    came: Series[Came]


# Of a step that nobody was asked about.
NO_EFFORT = Effort(0.0, 0.0, (), ())
