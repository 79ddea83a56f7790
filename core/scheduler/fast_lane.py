"""Piggybacking: requests of other lanes join the steps of the fast lane while that hardly slows it down."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from collections.abc import Sequence as Series
from functools import partial

from core.cost.cost_model import CostModel, attended
from core.scheduler.planner import Share, StepPlan
from core.scheduler.sequence import Sequence
from core.values.request import Lane

# The share that riders may add to the fast lane's time. The promise is a tenth; the rest is left for costs that the
# engine does not measure, such as the server's work on the riders' replies.
RIDE_SHARE = 0.06
# The least steps between two costly rides. A ride slows its own step and the next one (another graph, colder caches).
# Two slow steps in 42 are less than one in twenty, so the 95th percentile stays that of the lane alone.
RIDE_INTERVAL = 41
# The balance is limited to the earnings of one interval, in steps, so that a ride does not become a pause. If even the
# cheapest ride costs more, the limit is its price.
_MOST_SAVED = RIDE_SHARE * (RIDE_INTERVAL + 1)
# This many steps after a ride are still slower (its events are being sent). Their extra time is charged to the ride,
# and they do not count as steps without riders.
_AFTERMATH = 2
# If every step has riders, one in this many runs without, as a control.
_CONTROL_STEPS = 128
# Weights of the latest step in the moving averages of the lane's own pace, and of what a riding row adds.
_LONE_RATE, _ROW_RATE = 0.05, 0.1
# A single step may be slow by chance: in estimates it is capped at this many times the usual.
_OUTLIER = 2.0
# A step is charged at most this many steps' time: one that took longer was a suspended machine.
_HICCUP = 20.0


class InterferenceBudget:
    """The time that riders may take from the fast lane.

    Each step adds a share of its time without riders, which is learnt from steps that have none, to the balance (in
    seconds). Riders are charged the time that they really added. Rides cheaper than a step's earnings may join every
    step; costlier ones wait until the balance covers them.
    """

    def __init__(self) -> None:
        self.balance = 0.0
        self._lone_ratio = 1.0
        self._row_seconds = 0.0
        self._least = 0.0
        self._since_ride = RIDE_INTERVAL
        self._since_lone = 0

    def alone_seconds(self, predicted: float) -> float:
        """Return the expected seconds of a step without riders."""
        return predicted * self._lone_ratio

    def cost(self, predicted: float, n_rows: int) -> float:
        """Return the expected seconds that ``n_rows`` rows of riders add; the cost model says ``predicted``."""
        return max(predicted + self._row_seconds * n_rows, 0.25 * predicted)

    def allowance(self, predicted: float, least: float) -> float:
        """Return the seconds that riders may add to a step of ``predicted``; the cheapest ride costs ``least``."""
        self._least = least
        steady = RIDE_SHARE * self.alone_seconds(predicted)
        if self._since_lone > _CONTROL_STEPS or self.balance < 0.0:
            return 0.0
        if least <= steady:
            return steady
        if self._since_ride < RIDE_INTERVAL or self.balance < least:
            return 0.0
        return self.balance

    def observe(self, seconds: float, predicted: float, extra: float = 0.0, n_riding: int = 0) -> None:
        """Record a step; the cost model says ``predicted``, and ``extra`` for ``n_riding`` rows. All in seconds."""
        lone = self.alone_seconds(predicted)
        if lone <= 0.0 or seconds <= 0.0:
            return
        self._earn(lone)
        if n_riding:
            self._learn_row(seconds - lone, extra, n_riding, lone)
            self._spend(seconds - lone, lone)
            self._since_ride = 0
            self._since_lone += 1
            return
        self._since_ride += 1
        if self._since_ride <= _AFTERMATH:
            self._spend(seconds - lone, lone)
            return
        ratio = min(max(seconds / lone, 1.0 / _OUTLIER), _OUTLIER)
        self._lone_ratio *= 1.0 + _LONE_RATE * (ratio - 1.0)
        self._since_lone = 0

    def start_over(self) -> None:
        """Drop the balance for the next request of the lane: it may be too short to earn back a costly ride."""
        self.balance = min(self.balance, 0.0)

    def book_pause(self, seconds: float, predicted: float) -> None:
        """Charge ``seconds`` in which the fast lane waited; a step takes ``predicted``."""
        self._spend(seconds, self.alone_seconds(predicted))
        self._since_ride = 0

    def _earn(self, lone: float) -> None:
        most = max(_MOST_SAVED * lone, self._least)
        self.balance = min(self.balance + RIDE_SHARE * lone, max(most, self.balance))

    def _spend(self, seconds: float, lone: float) -> None:
        self.balance = max(self.balance - min(seconds, _HICCUP * lone), -_HICCUP * lone)

    def _learn_row(self, measured: float, extra: float, n_rows: int, lone: float) -> None:
        """Learn what a row adds beyond its prediction: sampling, events, or an outdated cost model."""
        bound = _OUTLIER * max(self.cost(extra, n_rows), lone)
        error = min(max(measured - extra, -bound), bound) / n_rows
        self._row_seconds += _ROW_RATE * (error - self._row_seconds)


# A batch request gets its turn after this many rides of others: it comes last, but it does come.
_BATCH_BEHIND = 256

RowCost = Callable[[int, int], float]
"""Gives the seconds that some more rows, which attend to so many tokens altogether, add to the step."""


def fair_order(riders: list[Sequence]) -> list[Sequence]:
    """Return riders in the order in which they may join: the least recent rider first, batch requests last."""
    return sorted(riders, key=lambda s: (s.rode_at + _BATCH_BEHIND * (s.lane is Lane.BATCH), s.lane.rank, s.order))


def least_cost(rider: Sequence, price: RowCost) -> float:
    """Return the seconds that the smallest share of a rider adds."""
    n_rows = _decode_rows(rider) or 1
    return price(n_rows, attended(n_rows, rider.n_past))


def fill_step(riders: Series[Sequence], price: RowCost, allowance: float, room: int) -> tuple[Share, ...]:
    """Return the shares of riders that join, in the order of ``riders``, for at most ``allowance`` and ``room`` rows.

    A decoding request takes its row. One that reads its prompt takes as many rows as the allowance covers. The first
    that does not get all its rows ends the list, so that it stays first for the next step.
    """
    shares: list[Share] = []
    n_rows = kv = 0

    def is_paid(rider: Sequence, count: int) -> bool:
        return price(n_rows + count, kv + attended(count, rider.n_past)) <= allowance

    for rider in riders:
        wanted = _decode_rows(rider)
        most = wanted or min(rider.n_pending, room - n_rows)
        least = wanted or 1
        if not least <= most <= room - n_rows:
            break
        taken = _most(least, most, partial(is_paid, rider))
        if not taken:
            break
        shares.append(Share(rider, taken))
        n_rows += taken
        kv += attended(taken, rider.n_past)
        if taken < most:
            break
    return tuple(shares)


def _decode_rows(rider: Sequence) -> int:
    """Return the rows that a decoding request needs; 0 for one that reads its prompt."""
    return 0 if rider.is_prefilling else 1 + rider.n_replay


def _most(least: int, most: int, is_paid: Callable[[int], bool]) -> int:
    """Return the most rows, from ``least`` to ``most``, that ``is_paid`` holds for; 0 if it does not for ``least``."""
    n_paid = bisect_left(range(least, most + 1), True, key=lambda rows: not is_paid(rows))
    return least + n_paid - 1 if n_paid else 0


class PiggybackScheduler:
    """Chooses who rides with the fast lane (``n_rides`` shares so far), and measures what they cost."""

    def __init__(self, cost: CostModel) -> None:
        self.budget = InterferenceBudget()
        self.n_rides = 0
        self._cost = cost
        self._ended_at: float | None = None
        self._lone = 0.0

    def add_riders(self, leading: StepPlan, riders: list[Sequence], room: int) -> StepPlan:
        """Return the shares of ``riders`` beside ``leading`` ones, at most ``room`` rows; empty if all must wait."""
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
        """Record a step that the fast lane led; ``drafting`` are the seconds spent on its drafts."""
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
        """End a time in which the fast lane leads."""
        if self._ended_at is not None:
            self._ended_at = None
            self.budget.start_over()

    def can_pause(self, seconds: float) -> bool:
        """Return whether the fast lane can wait ``seconds`` for work outside its steps."""
        return self._ended_at is None or seconds <= self.budget.allowance(self._lone, seconds)

    def book_pause(self, seconds: float) -> None:
        """Record that the fast lane has waited ``seconds``."""
        if self._ended_at is not None:
            self._ended_at += seconds
            self.budget.book_pause(seconds, self._lone)


def _rows_and_kv(shares: StepPlan | list[Share]) -> tuple[int, int]:
    """Return the rows of shares, and the cached tokens that they cost."""
    rows = kv = 0
    for sequence, own, draft in shares:
        n = own + len(draft)
        rows += n
        kv += attended(n, sequence.n_past)
    return rows, kv
