"""Chooses the number of KV cells that the requests of a model share. Pure."""

from __future__ import annotations

from dataclasses import dataclass

CELLS_STEP = 256
# Cells beyond one request's context may take this share of the memory that the weights leave.
_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class ContextSize:
    """``n_ctx`` tokens for one request, ``n_cells`` KV cells for all of them."""

    n_ctx: int
    n_cells: int


def pool_cells(n_ctx: int, n_slots: int, kv_bytes_per_token: int, free_bytes: int) -> int:
    """Return the cells for ``n_slots`` requests of ``n_ctx`` tokens; ``free_bytes`` is what the weights leave.

    Enough for every slot, but at most a quarter of ``free_bytes``; always enough for one request.
    """
    affordable = int(max(free_bytes, 0) * _SHARE) // max(kv_bytes_per_token, 1)
    return max(n_ctx, min(n_ctx * n_slots, affordable))
