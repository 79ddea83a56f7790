"""How large a context to give a model on this machine. Pure."""

from __future__ import annotations

from dataclasses import dataclass

_DEFAULT_CTX = 8192
_CELLS_STEP = 256
# A default may take this share of the memory that the weights leave; asking for more is the user's choice.
_DEFAULT_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class ContextSize:
    """``n_ctx`` tokens for one request, ``n_cells`` KV cells for all of them."""

    n_ctx: int
    n_cells: int


def choose_context(
    *,
    n_ctx: int | None,
    n_cells: int | None,
    n_slots: int,
    n_ctx_train: int,
    kv_bytes_per_token: int,
    free_bytes: int,
) -> ContextSize:
    """Return the sizes in effect: what was asked for, else defaults that fit.

    A request gets the length that the model was trained for, at most 8,192; the pool holds that for every slot
    unless this would take more than a quarter of ``free_bytes`` (the memory that the weights leave).
    """
    affordable = int(free_bytes * _DEFAULT_SHARE) // max(kv_bytes_per_token, 1)
    if n_ctx is None:
        wanted = min(n_ctx_train or _DEFAULT_CTX, _DEFAULT_CTX)
        if n_cells is not None:
            wanted = min(wanted, n_cells)
        n_ctx = wanted if wanted <= affordable else max(_CELLS_STEP, affordable // _CELLS_STEP * _CELLS_STEP)
    if n_cells is None:
        n_cells = max(n_ctx, min(n_ctx * n_slots, affordable))
    return ContextSize(n_ctx, -(-n_cells // _CELLS_STEP) * _CELLS_STEP)
