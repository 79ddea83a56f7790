"""What speculation knows of one sequence."""

from __future__ import annotations

from dataclasses import dataclass, field

from core.speculation.acceptance import SequenceAcceptance
from core.speculation.policy.risk_budget import HICCUP, RiskBudget
from core.speculation.proposer import ExpectedGain

FIRST_PROBE = 8
# Where a proposer has failed, it is asked again after so many tokens, twice as many each time.
_FIRST_PAUSE, _LONGEST_PAUSE = 8, 512
_SIBLING_MEAN = 0.1
# What other texts have come at counts as so many steps of a new one; steps fade.
_FIRST_STEPS, _FADE = 2.0, 0.9
# What a draft came to beyond its promise counts so much. By prompts of four kinds, in fixed step times: with less or
# more of it, and with what other texts have shown, one kind or another loses some per cent.
_SURPRISE_WEIGHT = 0.3


@dataclass(slots=True)
class TrialSchedule:
    """When a paid proposer was last tried on a sequence, and from when on it may be again if it has failed.

    Both by the count of the sequence's verified tokens.
    """

    tried_at: int = 0
    interval: int = FIRST_PROBE
    resumes_at: int = 0
    _pause: int = 0

    def fail(self, n_verified: int) -> None:
        """The proposer could not do its work: leave it alone for a while, longer each time."""
        self._pause = min(2 * self._pause or _FIRST_PAUSE, _LONGEST_PAUSE)
        # By then it may draft where that promises something. To learn whether it does has time.
        self.resumes_at = self.tried_at = n_verified + self._pause


@dataclass(slots=True)
class Backoff:
    """How long something is not thought about that has come to nothing: for ever more steps, up to a limit."""

    n_left: int = 0
    length: int = 0

    def back_off(self, longest: int) -> None:
        """It came to nothing: look again a little later, each time later still, after ``longest`` steps at most."""
        self.length = min(2 * self.length + 1, longest)
        self.n_left = self.length

    def reset(self) -> None:
        """It came to something: look in each step."""
        self.n_left = self.length = 0


@dataclass(slots=True)
class DraftState:
    """What speculation knows of one sequence; acceptance and trials are by proposer.

    ``speedup`` is how many times as fast as plain decoding its text has come lately: where a story comes three times as
    fast, time is worth three times as much as in code of which little can be guessed. ``debts`` are the seconds in
    which proposers have read the text, as far as they are not booked yet: they pay over the whole reply. ``looks`` is
    the rest of what costs next to nothing, ``thoughts`` that of paid proposers; in the last ``n_rested`` steps nobody
    was asked. ``drafted_by`` names who drafted last.
    """

    acceptance: dict[str, SequenceAcceptance]
    trials: dict[str, TrialSchedule]
    budget: RiskBudget
    thoughts: Backoff
    looks: Backoff = field(default_factory=Backoff)
    siblings: SequenceAcceptance = field(default_factory=lambda: SequenceAcceptance(_SIBLING_MEAN))
    speedup: float = 1.0
    n_verified: int = 0
    drafted_by: str = ""
    n_rested: int = 0
    _surprises: dict[str, float] = field(default_factory=dict)
    debts: dict[str, float] = field(default_factory=dict)
    _plain: float = 0.0
    _spent: float = 0.0

    def expected_gain(self, promise: ExpectedGain) -> float:
        """Return what a draft is likely to be worth: what it promises, and what others of its source came to beyond."""
        return promise.worth + self._surprises.get(promise.source, 0.0)

    def learn_gain(self, promise: ExpectedGain, worth: float) -> None:
        """A draft was ``worth`` so many tokens.

        Where two can draft, texts differ in who knows more of them than it seems, and it is the same one for long.
        """
        known = self._surprises.get(promise.source, 0.0)
        self._surprises[promise.source] = known + _SURPRISE_WEIGHT * (worth - promise.worth - known)

    @property
    def is_backing_off(self) -> bool:
        """True where nobody is to be asked what to draft in the next step."""
        return self.looks.n_left > 0 < self.thoughts.n_left

    def learn_speed(self, n_new: int, plain_step: float, spent: float) -> None:
        """A step of ``spent`` seconds brought this text ``n_new`` tokens, each of which is a plain step otherwise."""
        # A step that took longer still met a suspended machine or a jump of the clock.
        self._come(_FADE, plain_step * n_new, min(spent, HICCUP * plain_step), plain_step)

    def settle_backoff(self, plain_step: float, n_sequences: int) -> None:
        """The rest is over: its steps were plain ones, shared by so many texts."""
        if self.n_rested:
            kept = _FADE**self.n_rested
            seconds = plain_step * (1.0 - kept) / (1.0 - _FADE)
            self._come(kept, seconds, seconds, plain_step)
            self.budget.add_elapsed(plain_step * self.n_rested / n_sequences)
            self.n_rested = 0

    def _come(self, kept: float, plain: float, spent: float, plain_step: float) -> None:
        if not self._spent:
            self._plain, self._spent = _FIRST_STEPS * plain_step * self.speedup, _FIRST_STEPS * plain_step
        self._plain = self._plain * kept + plain
        self._spent = self._spent * kept + spent
        self.speedup = max(1.0, self._plain / self._spent)
