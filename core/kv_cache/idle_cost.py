"""When to give up something that costs a little for as long as it is kept, and once to get back. Pure."""

from __future__ import annotations


class IdleCost:
    """The ski rental rule: pay rent until as much was paid as buying costs, then buy.

    Whatever comes, that costs at most twice of what knowing the future would (Karlin, Manasse, Rudolph, Sleator:
    "Competitive snoopy caching", 1988). Here the rent is the time that steps take longer because of an idle text in the
    cache; buying is taking it out and, if it is ever asked for, putting it back.
    """

    def __init__(self) -> None:
        """Nothing was paid yet."""
        self.paid = 0.0

    def add(self, seconds: float) -> None:
        """A step took so much longer."""
        self.paid += max(seconds, 0.0)

    def covers(self, price: float) -> bool:
        """Return whether as much as ``price`` was paid."""
        return self.paid > price

    def subtract(self, price: float) -> None:
        """One was bought."""
        self.paid = max(0.0, self.paid - price)

    def reset(self) -> None:
        """Nothing is left to pay for."""
        self.paid = 0.0
