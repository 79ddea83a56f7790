"""Who joins a step of the fast lane, and with how many rows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.scheduler.fast_lane import fair_order, fill_step, least_cost
from core.values.request import Lane
from tests.support.sequences import sequence


def per_row(rows: int, _kv: int) -> float:
    return float(rows)


def test_whoever_rode_longest_ago_is_first_and_batch_requests_are_behind() -> None:
    riders = [sequence(order, 1, 5, lane) for order, lane in enumerate([Lane.BATCH, *[Lane.STANDARD] * 3])]
    for rider, step in zip(riders, (10, 30, 20, 20), strict=True):
        rider.rode_at = step
    assert [rider.order for rider in fair_order(riders)] == [2, 3, 1, 0]
    riders[1].rode_at = 1_000
    assert [rider.order for rider in fair_order(riders)] == [2, 3, 0, 1], "in the end a batch request has its turn"


def test_a_prompt_takes_the_rows_that_can_be_paid() -> None:
    decoding, reading = sequence(0, 1, 5), sequence(1, 100, 7)
    shares = fill_step([decoding, reading], per_row, 9.5, 256)
    assert [(share.sequence.order, share.n_rows) for share in shares] == [(0, 1), (1, 8)]
    assert [share.n_rows for share in fill_step([decoding, reading], per_row, 1_000.0, 256)] == [1, 100]
    assert fill_step([reading, decoding], per_row, 0.5, 256) == ()


def test_rows_to_replay_ride_together_or_not_at_all() -> None:
    rider = sequence(0, 4, 9)
    rider.n_replay = 3
    assert least_cost(rider, per_row) == 4.0
    assert fill_step([rider], per_row, 3.9, 256) == ()
    assert [share.n_rows for share in fill_step([rider], per_row, 4.0, 256)] == [4]


@given(
    st.lists(st.integers(1, 300), max_size=20),
    st.floats(0.0, 200.0),
    st.integers(1, 256),
    st.integers(1, 40),
)
def test_riders_never_take_more_than_they_may(pending: list[int], allowance: float, room: int, cliff: int) -> None:
    def price(rows: int, kv: int) -> float:
        return rows * 0.5 + kv * 0.001 + (20.0 if rows >= cliff else 0.0)

    riders = [sequence(order, n, 10) for order, n in enumerate(pending)]
    shares = fill_step(riders, price, allowance, room)
    n_rows = sum(share.n_rows for share in shares)
    kv = sum(share.n_rows * 10 + share.n_rows * (share.n_rows + 1) // 2 for share in shares)
    assert n_rows <= room
    assert not shares or price(n_rows, kv) <= allowance + 1e-9
    assert all(1 <= share.n_rows <= share.sequence.n_pending for share in shares)
    assert [share.sequence for share in shares] == riders[: len(shares)]
