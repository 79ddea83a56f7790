"""Keeps the pace of the fast lane: others ride along in its steps as far as they cost nothing that is felt."""

from __future__ import annotations

from core.cost.cost_model import CostModel
from core.scheduler.interference_budget import InterferenceBudget
from core.scheduler.piggyback import fair_order, fill_step, least_cost
from core.scheduler.planner import Share, StepPlan
from core.scheduler.sequence import Sequence
from core.values.lane import Lane


class PiggybackScheduler:
    """Decides in each step that the fast lane leads who rides along, and learns from the clock what that cost.

    ``n_rides`` counts the shares that have ridden along.
    """

    def __init__(self, cost: CostModel) -> None:
        """``cost`` is that of the context whose steps are paced."""
        self.budget = InterferenceBudget()
        self.n_rides = 0
        self._cost = cost
        self._ended_at: float | None = None
        self._lone = 0.0

    def add_riders(self, leading: StepPlan, riders: list[Sequence], room: int) -> StepPlan:
        """Return the shares of ``riders`` in a step of ``leading`` ones, at most ``room`` rows.

        There are none where riders must wait.
        """
        if not leading or room <= 0:
            return ()
        rows, kv = _rows_and_kv(leading)
        alone = self._cost.time(rows, kv)

        def price(more: int, more_kv: int) -> float:
            return self.budget.cost(self._cost.time(rows + more, kv + more_kv) - alone, more)

        turns = fair_order(riders)
        allowance = self.budget.allowance(alone, least_cost(turns[0], price))
        if allowance <= 0.0:
            return ()
        shares = fill_step(turns, price, allowance, room)
        for share in shares:
            self.n_rides += 1
            share.sequence.rode_at = self.n_rides
        return shares

    def observe(self, done: StepPlan, began: float, ended: float, drafting: float) -> None:
        """Record a step that the fast lane has led, with the seconds spent on drafting for it."""
        since = began if self._ended_at is None else self._ended_at
        self._ended_at = ended
        leading = [share for share in done if share.sequence.lane is Lane.FAST]
        riding = [share for share in done if share.sequence.lane is not Lane.FAST]
        rows, kv = _rows_and_kv(leading)
        more, more_kv = _rows_and_kv(riding)
        self._lone = self._cost.time(rows, kv)
        extra = self._cost.time(rows + more, kv + more_kv) - self._lone
        self.budget.observe(ended - since - drafting, self._lone, extra, more)

    def stop(self) -> None:
        """The fast lane does not lead: there is no pace to keep."""
        if self._ended_at is not None:
            self._ended_at = None
            self.budget.start_over()

    def can_pause(self, seconds: float) -> bool:
        """Return whether the fast lane can wait ``seconds`` for something that is not in its steps."""
        return self._ended_at is None or seconds <= self.budget.allowance(self._lone, seconds)

    def book_pause(self, seconds: float) -> None:
        """Record that the fast lane has waited ``seconds``."""
        if self._ended_at is not None:
            self._ended_at += seconds
            self.budget.book_pause(seconds, self._lone)


def _rows_and_kv(shares: StepPlan | list[Share]) -> tuple[int, int]:
    """Return the rows of shares, and the tokens that they attend to altogether."""
    rows = kv = 0
    for sequence, own, draft, _ in shares:
        n = own + len(draft)
        rows += n
        kv += n * sequence.n_past + n * (n + 1) // 2
    return rows, kv
