"""A slot is one sequence id of the KV cache: the tokens that it holds, and waiting for what another one computes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from core.kv_cache.prefix_cache.image_tokens import shared_positions, whole_images
from core.kv_cache.prefix_cache.prefix_tree import PrefixNode, TokenIds


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


class TokenBuffer:
    """``size`` token ids with O(1) append.

    Single tokens go through a view of Python's own: after a step, whose weights have emptied the processor's caches,
    numpy's way to one element takes several times as long.
    """

    def __init__(self, tokens: npt.NDArray[np.int32]) -> None:
        """Start with a copy of ``tokens``."""
        self._data = np.empty(max(64, len(tokens) + 64), np.int32)
        self._data[: len(tokens)] = tokens
        self._cells = self._data.data
        self.size = len(tokens)
        # Images come with the prompt: what is generated is text.
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

    def position(self, index: int) -> int:
        """Return llama.cpp's position of the token at ``index``: less than that behind images of M-RoPE models."""
        return index - int(np.searchsorted(self._shared, index)) if len(self._shared) else index

    @property
    def shares_positions(self) -> bool:
        """True where a position does not say how many tokens come before it."""
        return bool(len(self._shared))

    def whole_images(self, size: int) -> int:
        """Return ``size``, or where the image begins that it would cut."""
        return whole_images(self.view, size)

    def common_prefix(self, other: npt.NDArray[np.int32]) -> int:
        """Return how many tokens at the start equal those of ``other``."""
        size = min(self.size, len(other))
        differs = self._data[:size] != other[:size]
        first = int(differs.argmax()) if size else 0
        return first if size and differs[first] else size


class PlacementWait(Protocol):
    """A reason to wait, which ends by itself."""

    @property
    def is_over(self) -> bool:
        """True where there is nothing to wait for any more."""


class SharedPrefixWait:
    """Another request is computing the beginning that this one has in common with it."""

    def __init__(self, leader: Slot, size: int) -> None:
        """Wait until ``leader`` holds ``size`` tokens, or has another request."""
        self._leader = leader
        self._tenancy = leader.n_tenants
        self._size = size

    @property
    def is_over(self) -> bool:
        """True where the leader is there, or left."""
        leader = self._leader
        return leader.is_free or leader.n_tenants != self._tenancy or leader.n_resident >= self._size
