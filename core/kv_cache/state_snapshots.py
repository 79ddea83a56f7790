"""How many running states of a sequence are worth the memory that they take. Pure."""

from __future__ import annotations

from core.values.engine_options import MAX_DRAFT_DEPTH

# Snapshots may take this share of what the weights take: the memory that a load leaves free has room for it.
_SNAPSHOT_SHARE = 1 / 16
_FEWEST_SNAPSHOTS = 2


def n_snapshots(state_bytes: int, n_slots: int, weight_bytes: int, n_ubatch: int) -> int:
    """Return how many states to keep of each sequence beside the latest, at most as many as are drafted; often 0.

    ``state_bytes`` is the size of one, 0 where it is not known. llama.cpp evaluates a sequence's latest
    ``n_rs_seq + 1`` rows together and aborts where ``n_ubatch`` has no room for more than those.
    """
    if not state_bytes:
        return 0
    affordable = int(weight_bytes * _SNAPSHOT_SHARE) // (state_bytes * n_slots)
    most = min(affordable, MAX_DRAFT_DEPTH, n_ubatch - 2)
    return most if most >= _FEWEST_SNAPSHOTS else 0
