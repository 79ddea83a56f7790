"""Which riders join a step of the fast lane. Pure: prices in, shares out."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Series

from core.scheduler.planner import Share
from core.scheduler.sequence import Sequence
from core.values.lane import Lane

# A batch request gets its turn once others have ridden so many times since its last: it goes last, but it goes.
_BATCH_BEHIND = 256

RowCost = Callable[[int, int], float]
"""Seconds that ``rows`` more rows, which attend to ``kv`` tokens altogether, add to the step."""


def fair_order(riders: list[Sequence]) -> list[Sequence]:
    """Return riders in the order in which they may join: whoever rode longest ago, batch requests behind."""
    return sorted(riders, key=lambda s: (s.rode_at + _BATCH_BEHIND * (s.lane is Lane.BATCH), s.lane.rank, s.order))


def least_cost(rider: Sequence, price: RowCost) -> float:
    """Return what the smallest share of a rider adds."""
    n_rows = _decode_rows(rider) or 1
    return price(n_rows, _kv(rider, n_rows))


def fill_step(riders: Series[Sequence], price: RowCost, allowance: float, room: int) -> tuple[Share, ...]:
    """Return the shares of riders that join, in the order of ``riders``, for at most ``allowance`` and ``room`` rows.

    Whoever decodes takes its row, whoever has a prompt to read as many rows as there is still time for. The first who
    does not get what it needs ends the boarding, so that it is first next time too.
    """
    shares: list[Share] = []
    n_rows = kv = 0
    for rider in riders:
        wanted = _decode_rows(rider)
        most = wanted or min(rider.n_pending, room - n_rows)
        least = wanted or 1
        if not least <= most <= room - n_rows:
            break
        taken = _most(least, most, rider, n_rows, kv, price, allowance)
        if not taken:
            break
        shares.append(Share(rider, taken))
        n_rows += taken
        kv += _kv(rider, taken)
        if taken < most:
            break
    return tuple(shares)


def _decode_rows(rider: Sequence) -> int:
    """Return the rows that a decoding request needs, 0 for one that reads its prompt."""
    return 0 if rider.is_prefilling else 1 + rider.n_replay


def _kv(rider: Sequence, n_rows: int) -> int:
    return n_rows * rider.n_past + n_rows * (n_rows + 1) // 2


def _most(least: int, most: int, rider: Sequence, n_rows: int, kv: int, price: RowCost, allowance: float) -> int:
    """Return the most rows from ``least`` to ``most`` that can be paid, 0 where ``least`` cannot."""

    def is_paid(count: int) -> bool:
        return price(n_rows + count, kv + _kv(rider, count)) <= allowance

    if not is_paid(least):
        return 0
    if is_paid(most):
        return most
    low, high = least, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_paid(middle) else (low, middle)
    return low
