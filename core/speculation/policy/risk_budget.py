"""What each proposer has won and lost, of one text or of all, and how much it may still risk."""

from __future__ import annotations

import math

# A proposer may cost at most this share of the time that was spent decoding.
_RISK_SHARE = 0.015
# Beyond that, only what is worth so many times its price, and so many times more for each further such share.
_CAUTION, _MORE_CAUTION, _MOST_CAUTION = 1.3, 4.0, 100.0
# What is old fades whenever such a share of the memory has passed: in each step that would be much for short ones.
_FADED_AT_ONCE = 0.01
# A step that took more than this many times the plain one met a suspended machine or a jump of the clock: drafting
# never costs that much, and must not be forbidden for it.
HICCUP = 8.0


class RiskBudget:
    """Keeps drafting from becoming a loss: each proposer may only be tried while what it lost stays a small share.

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

    def can_spend(self, proposer: str, seconds: float) -> bool:
        """Return whether ``seconds`` may be spent on something whose gain is not known."""
        return seconds <= self.available(proposer)

    def available(self, proposer: str) -> float:
        """Return the seconds that may be spent on what has no known gain; negative where too much is lost."""
        return self.balance(proposer) + self._allowance

    def required_return(self, proposer: str) -> float:
        """Return how many times its price a draft must be worth: 1 while no more was lost than may be risked.

        What was believed to pay has not: steps with drafts may take longer here than their rows say, or tokens be right
        less often than they seem. However wrong that belief is, caution grows until the loss stays where it is.
        """
        balance = self._balances.get(proposer, 0.0)
        if balance >= 0.0:
            return 1.0
        over = -balance / max(self._allowance, 1e-9)
        if over <= 1.0:
            return 1.0
        return min(_CAUTION * math.pow(_MORE_CAUTION, min(over, _MOST_CAUTION) - 1.0), _MOST_CAUTION)

    def book(self, proposer: str, seconds: float) -> None:
        """Add what a proposer has won, or lost where it is negative."""
        self._balances[proposer] = self._balances.get(proposer, 0.0) + seconds

    def add_elapsed(self, seconds: float) -> None:
        """So long was decoded since this was said last."""
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
