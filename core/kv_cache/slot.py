"""Slots: a slot is one sequence id of the KV cache, with the tokens that it holds.

A request may wait for the prefix that another is computing, or for the disk.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from core.kv_cache.prefix_tree import (
    PrefixNode,
    TokenIds,
    common_prefix,
    salted_id,
    shared_positions,
    whole_images,
)
from core.kv_cache.segment_store import DiskReadWait


@dataclass(eq=False)
class Slot:
    """One sequence id. The first ``n_resident`` of its tokens ``resident`` are in the cache.

    ``n_left`` are the tokens that its last request left here, some of which may have moved to the store since.
    ``start``, ``end`` and ``node`` are the place of its text in the tree. ``n_tenants`` counts the requests it has had.
    ``stops`` are positions where prefill pauses, because other requests wait to share the prefix up to there, or a
    recurrent state is saved. ``rank`` is that of its request's lane. ``was_saved``: all of its text was saved while the
    engine was idle, if there was room.
    """

    id: int
    resident: TokenBuffer = field(default_factory=lambda: TokenBuffer(np.empty(0, np.int32)))
    n_resident: int = 0
    n_left: int = 0
    is_free: bool = True
    last_used: int = 0
    n_tenants: int = 0
    rank: int = 0
    start: int = 0
    end: int = 0
    node: PrefixNode | None = None
    stops: set[int] = field(default_factory=set)
    was_saved: bool = False

    @property
    def next_stop(self) -> int | None:
        """The next position in ``stops``; None if there is none."""
        return min((stop for stop in self.stops if stop > self.n_resident), default=None)

    @property
    def text(self) -> TokenIds:
        """The tokens that are in the cache."""
        return self.resident.view[: self.n_resident]


class TokenBuffer:
    """``size`` token ids with O(1) append.

    Single tokens are read and written through a memoryview. After a step the processor's caches hold only weights, and
    numpy's access to one element then takes several times as long.
    """

    def __init__(self, tokens: npt.NDArray[np.int32], salt: str = "") -> None:
        """Start with a copy of ``tokens``. Texts with different salts share no prefix."""
        self._salt = salt
        self._data = np.empty(max(64, len(tokens) + 64), np.int32)
        self._data[: len(tokens)] = tokens
        self._cells = self._data.data
        self.size = len(tokens)
        # Images are in the prompt only; generated tokens are text.
        self._shared = shared_positions(tokens)

    def __len__(self) -> int:
        return self.size

    def append(self, token: int) -> None:
        """Add one token at the end."""
        if self.size == len(self._cells):
            self._grow(self.size)
        self._cells[self.size] = token
        self.size += 1

    def extend(self, tokens: npt.NDArray[np.int32]) -> None:
        """Add tokens at the end."""
        need = self.size + len(tokens)
        if need > len(self._data):
            self._grow(max(need, len(self._data)))
        self._data[self.size : need] = tokens
        self.size = need

    def _grow(self, n_more: int) -> None:
        self._data = np.concatenate((self._data, np.empty(n_more, np.int32)))
        self._cells = self._data.data

    def truncate(self, size: int) -> None:
        """Keep the first ``size`` tokens."""
        self.size = min(size, self.size)

    @property
    def last(self) -> int:
        """The last token."""
        return self._cells[self.size - 1]

    @property
    def view(self) -> npt.NDArray[np.int32]:
        """The tokens, valid until the next ``append``."""
        return self._data[: self.size]

    def known(self, size: int) -> TokenIds:
        """Return the first ``size`` ids as the prefix tree and the store know them."""
        view = self._data[:size]
        if not self._salt or not size:
            return view
        salted = view.copy()
        salted[0] = salted_id(int(view[0]), self._salt)
        return salted

    def position(self, index: int) -> int:
        """Return llama.cpp's position of the token at ``index``; smaller than ``index`` behind images with M-RoPE."""
        return index - int(np.searchsorted(self._shared, index)) if len(self._shared) else index

    @property
    def shares_positions(self) -> bool:
        """True if some rows share a position, so that position and index differ."""
        return bool(len(self._shared))

    def whole_images(self, size: int) -> int:
        """Return ``size``, or the start of the image that it would cut in two."""
        return whole_images(self.view, size)

    def common_prefix(self, other: npt.NDArray[np.int32]) -> int:
        """Return the length of the common prefix with ``other``."""
        return common_prefix(self.view, other)


class SharedPrefixWait:
    """Wait for another request that is computing the common prefix."""

    def __init__(self, leader: Slot, size: int) -> None:
        """Wait until ``leader`` holds ``size`` tokens, or has another request."""
        self._leader = leader
        self._tenancy = leader.n_tenants
        self._size = size

    @property
    def is_over(self) -> bool:
        """True if the leader holds the prefix, or has ended."""
        leader = self._leader
        return leader.is_free or leader.n_tenants != self._tenancy or leader.n_resident >= self._size


PlacementWait = SharedPrefixWait | DiskReadWait
"""A wait of a request before it gets a slot. It ends by itself."""
