"""What speculation knows of one sequence, and the budget that keeps drafting from becoming a loss. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from core.speculation.acceptance import SequenceAcceptance
from core.speculation.proposer import ExpectedGain

# A proposer is first tried after so many verified tokens without a draft of its own.
FIRST_PROBE = 8
# Where a proposer has failed, it is asked again after so many tokens, twice as many each time.
_FIRST_PAUSE, _LONGEST_PAUSE = 8, 512
# A new sequence starts with the speed-up of others, which counts as so many steps; each step fades by this factor.
_FIRST_STEPS, _FADE = 2.0, 0.9
# Weight of the latest draft in what drafts are worth beyond their promise. In fixed step times, with prompts of four
# kinds, a larger or smaller weight loses some per cent on one kind or another.
_SURPRISE_WEIGHT = 0.3
# A proposer may cost at most this share of the time that was spent decoding.
_RISK_SHARE = 0.015
# Beyond that, only what is worth so many times its cost, and so many times more for each further such share.
_CAUTION, _MORE_CAUTION, _MOST_CAUTION = 1.3, 4.0, 100.0
# Old bookings fade whenever this share of the memory has passed: to fade in each step would cost too much.
_FADED_AT_ONCE = 0.01
# A step that took more than this many times the plain one met a suspended machine or a jump of the clock: drafting
# never costs that much, and must not be forbidden for it.
HICCUP = 8.0


class RiskBudget:
    """Each proposer may only be tried while what it lost stays a small share of the decoding time.

    Booked is what plain decoding takes for the tokens that came beyond plain ones, less what drafts for them took
    (seconds). What one proposer has won is not there for another to lose.
    """

    def __init__(self, credit: float, memory: float = math.inf) -> None:
        """``credit`` seconds may be risked before anything was won. What is older than ``memory`` seconds fades.

        Accounts of many texts are of the recent past: old gains must not pay for long losses, nor old losses forbid
        what pays now.
        """
        self.credit = credit
        self._memory = memory
        self._elapsed = self._unfaded = 0.0
        self._balances: dict[str, float] = {}

    def balance(self, proposer: str) -> float:
        """Return the seconds that a proposer has won (positive) or lost lately."""
        return self._balances.get(proposer, 0.0)

    def available(self, proposer: str) -> float:
        """Return the seconds that may be spent on what has no known gain; negative where too much is lost."""
        return self.balance(proposer) + self._allowance

    def required_return(self, proposer: str) -> float:
        """Return how many times its cost a draft must be worth: 1 while no more was lost than may be risked.

        Beyond that the predictions were wrong: steps with drafts take longer here than their rows say, or tokens are
        right less often than expected. However wrong they are, caution grows until the loss stays where it is.
        """
        over = -self.balance(proposer) / max(self._allowance, 1e-9)
        if over <= 1.0:
            return 1.0
        return min(_CAUTION * math.pow(_MORE_CAUTION, min(over, _MOST_CAUTION) - 1.0), _MOST_CAUTION)

    def book(self, proposer: str, seconds: float) -> None:
        """Add what a proposer has won, or lost where it is negative."""
        self._balances[proposer] = self.balance(proposer) + seconds

    def add_elapsed(self, seconds: float) -> None:
        """Add seconds of decoding."""
        self._elapsed += seconds
        if self._memory == math.inf:
            return
        self._unfaded += seconds
        if self._unfaded > _FADED_AT_ONCE * self._memory:
            fade = max(0.0, 1.0 - self._unfaded / self._memory)
            self._elapsed *= fade
            self._unfaded = 0.0
            for proposer in self._balances:
                self._balances[proposer] *= fade

    @property
    def _allowance(self) -> float:
        return _RISK_SHARE * self._elapsed + self.credit


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
        """The proposer failed: leave it alone for a while, longer each time."""
        self._pause = min(2 * self._pause or _FIRST_PAUSE, _LONGEST_PAUSE)
        # By then it may draft where that promises something. To learn whether it does has time.
        self.resumes_at = self.tried_at = n_verified + self._pause


@dataclass(slots=True)
class Backoff:
    """For how many steps something is not considered: ever more each time that it came to nothing, up to a limit."""

    n_left: int = 0
    length: int = 0

    def back_off(self, longest: int) -> None:
        """It came to nothing: wait about twice as many steps as the last time, at most ``longest``."""
        self.length = min(2 * self.length + 1, longest)
        self.n_left = self.length

    def reset(self) -> None:
        """It came to something: consider it in each step."""
        self.n_left = self.length = 0


@dataclass(slots=True)
class DraftState:
    """What speculation knows of one sequence; acceptance and trials are by proposer.

    ``speedup`` is how many times as fast as plain decoding its text has come lately: where a story comes three times as
    fast, time is worth three times as much as in code of which little can be guessed. ``debts`` are the seconds in
    which proposers have read the text, as far as they are not booked yet: they pay over the whole reply. Free drafts
    (n-grams) and paid proposers back off on their own; in the last ``n_rested`` steps neither was considered.
    ``drafted_by`` names who drafted last.
    """

    acceptance: dict[str, SequenceAcceptance]
    trials: dict[str, TrialSchedule]
    budget: RiskBudget
    paid_backoff: Backoff
    ngram_backoff: Backoff
    speedup: float = 1.0
    n_verified: int = 0
    drafted_by: str = ""
    n_rested: int = 0
    debts: dict[str, float] = field(default_factory=dict)
    _surprises: dict[str, float] = field(default_factory=dict)
    _plain: float = 0.0
    _spent: float = 0.0

    def expected_gain(self, promise: ExpectedGain) -> float:
        """Return what a draft is likely to be worth: its promise, corrected by earlier drafts of the same source."""
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
        return self.ngram_backoff.n_left > 0 < self.paid_backoff.n_left

    def learn_speed(self, n_new: int, plain_step: float, spent: float) -> None:
        """A step of ``spent`` seconds brought this text ``n_new`` tokens, each of which is a plain step otherwise."""
        self._add(_FADE, plain_step * n_new, min(spent, HICCUP * plain_step), plain_step)

    def settle_backoff(self, plain_step: float, n_sequences: int) -> None:
        """Learn from the steps in which nobody was asked: they were plain ones, shared by ``n_sequences``."""
        if self.n_rested:
            kept = _FADE**self.n_rested
            seconds = plain_step * (1.0 - kept) / (1.0 - _FADE)
            self._add(kept, seconds, seconds, plain_step)
            self.budget.add_elapsed(plain_step * self.n_rested / n_sequences)
            self.n_rested = 0

    def _add(self, kept: float, plain: float, spent: float, plain_step: float) -> None:
        if not self._spent:
            self._plain, self._spent = _FIRST_STEPS * plain_step * self.speedup, _FIRST_STEPS * plain_step
        self._plain = self._plain * kept + plain
        self._spent = self._spent * kept + spent
        self.speedup = max(1.0, self._plain / self._spent)


class DraftingTime(NamedTuple):
    """Seconds that a proposer took for a text, which would not have been spent without drafts."""

    state: DraftState
    proposer: str
    seconds: float
