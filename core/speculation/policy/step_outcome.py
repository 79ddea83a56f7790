"""What drafting for one step took, and for whom it was."""

from __future__ import annotations

from collections.abc import Sequence as Series
from typing import NamedTuple

from core.speculation.policy.draft_growth import DraftingTime
from core.speculation.policy.draft_state import DraftState
from core.speculation.proposer import ExpectedGain


class SequenceOutcome(NamedTuple):
    """A text got ``n_new`` tokens from a step with ``n_rows`` drafted ones; ``proposer`` drafted last for it.

    ``promise`` is what was expected of that where there was a choice.
    """

    record: DraftState
    n_new: int
    proposer: str
    n_rows: int
    promise: ExpectedGain | None = None


class DraftingOutcome(NamedTuple):
    """Seconds beside a step's decode, and what each sequence got from it.

    Of the ``seconds``, ``shared`` are what trees and the way back from drafts took, and the ``risks`` what proposers
    took; the others went into deciding.
    """

    seconds: float
    shared: float
    risks: Series[DraftingTime]
    came: Series[SequenceOutcome]


# Of a step that nobody was asked about.
NO_EFFORT = DraftingOutcome(0.0, 0.0, (), ())
