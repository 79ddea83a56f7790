"""What speculation knows of one sequence."""

from __future__ import annotations

from dataclasses import dataclass, field

from core.speculative.acceptance import SequenceAcceptance
from core.speculative.purse import HICCUP

FIRST_PROBE = 8
# Where drafting promises nothing, it is thought about anew only every so many steps.
_LONGEST_REST = 8
# Where a drafter has failed, it is asked again after so many tokens, twice as many each time.
_FIRST_PAUSE, _LONGEST_PAUSE = 8, 512
_SIBLING_MEAN = 0.1
# What other texts have come at counts as so many steps of a new one; steps fade.
_FIRST_STEPS, _FADE = 2.0, 0.9


@dataclass(slots=True)
class Trial:
    """When a paid drafter was last tried on a sequence, and from when on it may be again if it has failed.

    Both by the count of the sequence's verified tokens.
    """

    tried_at: int = 0
    interval: int = FIRST_PROBE
    is_new: bool = False
    resumes_at: int = 0
    _pause: int = 0

    def fail(self, n_verified: int) -> None:
        """The drafter could not do its work: leave it alone for a while, longer each time."""
        self._pause = min(2 * self._pause or _FIRST_PAUSE, _LONGEST_PAUSE)
        # By then it may draft where that promises something. To learn whether it does has time.
        self.resumes_at = self.tried_at = n_verified + self._pause
        self.is_new = False


@dataclass(slots=True)
class Record:
    """What speculation knows of one sequence; acceptance and trials are by drafter.

    ``speedup`` is how many times as fast as plain decoding its text has come lately: where a story comes three times as
    fast, time is worth three times as much as in code of which little can be guessed. ``debt`` are the seconds in which
    drafters have read the text, as far as they are not booked yet: they pay over the whole reply.
    """

    acceptance: dict[str, SequenceAcceptance]
    trials: dict[str, Trial]
    siblings: SequenceAcceptance = field(default_factory=lambda: SequenceAcceptance(_SIBLING_MEAN))
    speedup: float = 1.0
    n_verified: int = 0
    debt: float = 0.0
    rest: int = 0
    rest_length: int = 0
    _plain: float = 0.0
    _spent: float = 0.0

    def came(self, n_new: int, plain_step: float, spent: float) -> None:
        """A step of ``spent`` seconds brought this text ``n_new`` tokens, each of which is a plain step otherwise."""
        if not self._spent:
            self._plain, self._spent = _FIRST_STEPS * plain_step * self.speedup, _FIRST_STEPS * plain_step
        # A step that took longer still met a suspended machine or a jump of the clock.
        spent = min(spent, HICCUP * plain_step)
        self._plain = self._plain * _FADE + plain_step * n_new
        self._spent = self._spent * _FADE + spent
        self.speedup = max(1.0, self._plain / self._spent)

    def tire(self) -> None:
        """Nothing is promised here: look again a little later, each time later still."""
        self.rest_length = min(2 * self.rest_length + 1, _LONGEST_REST)
        self.rest = self.rest_length

    def look_again(self) -> None:
        """Something new is known: look at it in the next step."""
        self.rest = 0

    def wake(self) -> None:
        """Something is promised here: look in each step."""
        self.rest = self.rest_length = 0
