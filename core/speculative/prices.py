"""What drafting costs in the next step, and what its time is worth."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Prices(NamedTuple):
    """A step has ``n_rows`` rows anyway and room for ``room`` more; ``step_seconds`` predicts its time by its rows.

    ``rate`` is what a second is worth elsewhere, in tokens. Trees may have ``n_branches`` side branches altogether,
    each of which adds ``branch_seconds``.
    """

    n_rows: int
    rate: float
    step_seconds: Callable[[int], float]
    room: int
    n_branches: int = 0
    branch_seconds: float = 0.0

    def beside(self, n_taken: int) -> Prices:
        """Return the prices of a step in which so many further rows are taken."""
        return self._replace(n_rows=self.n_rows + n_taken, room=self.room - n_taken)
