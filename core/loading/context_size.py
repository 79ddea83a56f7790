"""How many KV cells to give the requests of a model together. Pure."""

from __future__ import annotations

from dataclasses import dataclass

CELLS_STEP = 256
# What nobody asked for may take this share of the memory that the weights leave.
_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class ContextSize:
    """``n_ctx`` tokens for one request, ``n_cells`` KV cells for all of them."""

    n_ctx: int
    n_cells: int


def pool_cells(n_ctx: int, n_slots: int, kv_bytes_per_token: int, free_bytes: int) -> int:
    """Return the cells for ``n_slots`` requests of ``n_ctx`` tokens; ``free_bytes`` is what the weights leave.

    As many as fill every slot, unless that would take more than a quarter of these; those of one request always.
    """
    affordable = int(max(free_bytes, 0) * _SHARE) // max(kv_bytes_per_token, 1)
    return max(n_ctx, min(n_ctx * n_slots, affordable))
