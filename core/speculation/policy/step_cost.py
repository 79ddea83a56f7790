"""What drafting costs in the next step, and what its time is worth."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

from core.speculation.policy.latency_bound import DraftCandidate, LatencyBound

_ENDLESS = LatencyBound()


class StepCost(NamedTuple):
    """A step has ``n_rows`` rows anyway and room for ``room`` more; ``step_seconds`` predicts its time by its rows.

    ``rate`` is what a second is worth elsewhere, in tokens. Trees may have ``n_branches`` side branches altogether,
    each of which adds ``branch_seconds``. ``latency_bound`` is that of those who share the step. They have waited
    ``spent`` seconds for drafts.
    """

    n_rows: int
    rate: float
    step_seconds: Callable[[int], float]
    room: int
    n_branches: int = 0
    branch_seconds: float = 0.0
    latency_bound: LatencyBound = _ENDLESS
    spent: float = 0.0

    def within_latency(self, count: int, hopes: Iterable[DraftCandidate]) -> int:
        """Return the most of ``count`` drafted tokens that nobody who shares the step waits too long for.

        ``hopes`` come in the order in which they are verified.
        """
        return self.latency_bound.trim(count, hopes, lambda rows: self.spent + self.step_seconds(self.n_rows + rows))

    def within(self, seconds: float) -> StepCost:
        """Return the prices of a step with room for only so many rows that it takes ``seconds`` at most."""
        n_rows = self.rows_within(seconds, self.room)
        return self if n_rows == self.room else self._replace(room=n_rows)

    def rows_within(self, seconds: float, most: int) -> int:
        """Return how many drafted rows, at most so many, a step of ``seconds`` has room for."""
        fits = 0
        if math.isinf(seconds) or self.step_seconds(self.n_rows + most) <= seconds:
            return most
        while fits < most:
            middle = (fits + most + 1) // 2
            if self.step_seconds(self.n_rows + middle) <= seconds:
                fits = middle
            else:
                most = middle - 1
        return fits

    def shared_by(self, n_alike: int) -> StepCost:
        """Return the prices for each of so many texts for which as much is drafted: they share the step."""
        n_rows, step_seconds = self.n_rows, self.step_seconds
        before = step_seconds(n_rows)

        def share(rows: int) -> float:
            return before + (step_seconds(n_rows + n_alike * (rows - n_rows)) - before) / n_alike

        return self._replace(step_seconds=share)

    def with_rows(self, n_taken: int) -> StepCost:
        """Return the prices of a step in which so many further rows are taken."""
        return self._replace(n_rows=self.n_rows + n_taken, room=self.room - n_taken)
