"""One sequence id of the KV cache, and the tokens that it holds."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from core.kv_cache.prefix_cache.prefix_tree import PrefixNode, TokenIds
from core.kv_cache.token_buffer import TokenBuffer


@dataclass(eq=False)
class Slot:
    """``resident`` are the tokens of which the first ``n_resident`` are in the cache.

    ``start``, ``end`` and ``node`` say where its text is in the tree. ``n_tenants`` counts the requests it has had.
    At the positions in ``stops`` others wait to share what is there, or a running state is to be saved. ``rank`` is
    that of the lane whose request it has.
    """

    id: int
    resident: TokenBuffer = field(default_factory=lambda: TokenBuffer(np.empty(0, np.int32)))
    n_resident: int = 0
    is_free: bool = True
    last_used: int = 0
    n_tenants: int = 0
    rank: int = 0
    start: int = 0
    end: int = 0
    node: PrefixNode | None = None
    stops: set[int] = field(default_factory=set)

    @property
    def next_stop(self) -> int | None:
        """The position up to which the prompt should be evaluated next, because something is done there."""
        return min((stop for stop in self.stops if stop > self.n_resident), default=None)

    @property
    def text(self) -> TokenIds:
        """The tokens that are in the cache."""
        return self.resident.view[: self.n_resident]
