"""The account of drafting: what it cost, what it saved, and how much may still be risked."""

from __future__ import annotations

# Trying things out may cost at most this share of the time that was spent decoding.
_RISK_SHARE = 0.015
# Beyond that, only what is worth so many times its price, and so many times more for each further such share.
_CAUTION, _MORE_CAUTION, _MOST_CAUTION = 1.3, 4.0, 100.0
# Accounts are of the recent past: old gains must not pay for long losses, nor old losses forbid what pays now.
_MEMORY_SECONDS = 20.0
# A step that took more than this many times the plain one met a suspended machine or a jump of the clock: drafting
# never costs that much, and must not be forbidden for it.
HICCUP = 8.0


class Purse:
    """Keeps drafting from becoming a loss: it may only be tried while what it has lost stays a small share.

    ``saved`` is what plain decoding would have taken for the tokens that came (by the cost model), ``spent`` what the
    steps took with drafting. Seconds.
    """

    def __init__(self, credit: float = 0.0) -> None:
        """``credit`` may be risked before anything was won, so that a drafter is tried soon after the start."""
        self._credit = credit
        self._elapsed = 0.0
        self._balance = 0.0

    @property
    def balance(self) -> float:
        """Seconds won (positive) or lost lately."""
        return self._balance

    def may_risk(self, seconds: float, chance: float = 1.0) -> bool:
        """Return whether ``seconds`` may be spent on something whose gain is not known.

        ``chance`` is how often such a thing has turned out to be worth it: of what others have won, no larger share is
        risked on it.
        """
        won = chance * self._balance if self._balance > 0.0 else self._balance
        return won - seconds >= -chance * _RISK_SHARE * self._elapsed - self._credit

    @property
    def caution(self) -> float:
        """How many times its price drafting must be worth: 1 while it has lost no more than may be risked.

        What was believed to pay has not: steps with drafts may take longer here than their rows say, or tokens be right
        less often than they seem. However wrong that belief is, caution grows until the loss stays where it is.
        """
        over = -self._balance / max(_RISK_SHARE * self._elapsed + self._credit, 1e-9)
        return 1.0 if over <= 1.0 else min(_CAUTION * _MORE_CAUTION ** (over - 1.0), _MOST_CAUTION)

    def book(self, plain: float, spent: float) -> None:
        """Record a step that took ``spent`` seconds for tokens that plain decoding gives in ``plain`` seconds."""
        if plain > 0.0:
            spent = min(spent, HICCUP * plain)
        fade = max(0.0, 1.0 - spent / _MEMORY_SECONDS)
        self._elapsed = self._elapsed * fade + spent
        self._balance = self._balance * fade + (plain - spent)
