"""How many cells requests get together."""

from __future__ import annotations

import pytest

from core.loading.fit_request import pool_cells


@pytest.mark.parametrize(
    ("n_ctx", "n_slots", "free", "expected"),
    [
        (4096, 4, 10**9, 16384),
        (1000, 4, 10**9, 4000),
        (100_000, 4, 10**9, 250_000),
        (100_000, 1, 10**9, 100_000),
        (4096, 4, 8_000_000, 4096),
        (4096, 4, 0, 4096),
        (4096, 4, -5, 4096),
    ],
)
def test_every_slot_has_a_context_where_a_quarter_of_the_memory_is_enough(
    n_ctx: int, n_slots: int, free: int, expected: int
) -> None:
    assert pool_cells(n_ctx, n_slots, 1000, free) == expected
