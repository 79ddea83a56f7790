"""What speculation knows of one sequence."""

from __future__ import annotations

from dataclasses import dataclass, field

from core.speculative.acceptance import SequenceAcceptance

FIRST_PROBE = 8
# Where drafting promises nothing, it is thought about anew only every so many steps.
_LONGEST_REST = 16
_SIBLING_MEAN = 0.1


@dataclass(slots=True)
class Trial:
    """When a paid drafter was last tried on a sequence, by the count of its verified tokens."""

    tried_at: int = 0
    interval: int = FIRST_PROBE
    is_new: bool = False


@dataclass(slots=True)
class Record:
    """What speculation knows of one sequence; acceptance and trials are by drafter."""

    acceptance: dict[str, SequenceAcceptance]
    trials: dict[str, Trial]
    siblings: SequenceAcceptance = field(default_factory=lambda: SequenceAcceptance(_SIBLING_MEAN))
    n_verified: int = 0
    rest: int = 0
    rest_length: int = 0

    def tire(self) -> None:
        """Nothing is promised here: look again a little later, each time later still."""
        self.rest_length = min(2 * self.rest_length + 1, _LONGEST_REST)
        self.rest = self.rest_length

    def wake(self) -> None:
        """Something new is known: look again at once."""
        self.rest = self.rest_length = 0
