"""Slots: a slot is one sequence id of the KV cache, with the tokens that it holds.

``SlotSearch`` finds the prefix of a prompt in them. A request may wait for the prefix that another is computing, or for
the disk.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from core.kv_cache.memory import AttentionMemory
from core.kv_cache.prefix_tree import (
    PrefixMatch,
    PrefixNode,
    PrefixTree,
    TokenIds,
    common_prefix,
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
    recurrent state is saved. ``rank`` is that of its request's lane.
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

    def __init__(self, tokens: npt.NDArray[np.int32]) -> None:
        """Start with a copy of ``tokens``."""
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
"""What a request waits for before it gets a slot. The wait ends by itself."""


# A free slot is cut back to the common prefix only if that keeps at least this share of what it holds;
# otherwise the prefix is copied, and the longer conversation stays for its next turn.
_KEEP_SHARE = 0.5


class SlotSearch:
    """Finds texts in slots by means of the prefix tree, which it keeps up to date."""

    def __init__(self, slots: tuple[Slot, ...], tree: PrefixTree, memory: AttentionMemory) -> None:
        """Search ``slots``, whose texts are in ``memory``."""
        self._slots = slots
        self._tree = tree
        self._memory = memory

    def match(self, tokens: TokenBuffer) -> PrefixMatch:
        """Return the longest known prefix of a prompt without its last token."""
        for slot in self._slots:
            if not slot.is_free and slot.node is not None and slot.resident.size > slot.end:
                self._tree.extend(slot, slot.resident.view)
        match = self._tree.match(tokens.view[:-1])
        match.size = tokens.whole_images(match.size)
        return match

    def best(self, match: PrefixMatch) -> tuple[Slot | None, int]:
        """Return the slot that holds the longest prefix of a text, and its length; a free slot among equals."""
        best, n_best = None, 0
        for place, end in match.reaches().items():
            if not isinstance(place, Slot):
                continue
            size = place.resident.whole_images(min(end, place.n_resident))
            if not self._memory.can_share and not (place.is_free and self._is_extended(place, size)):
                continue
            if self._memory.can_share and not self._memory.can_cut(place.id, place.resident.position(size)):
                continue
            if size > n_best or (size == n_best and size and best is not None and place.is_free and not best.is_free):
                best, n_best = place, size
        return best, n_best

    def computing_slot(self, match: PrefixMatch, rank: int) -> tuple[Slot | None, int]:
        """Return the running slot that will hold the longest prefix, of lanes not below ``rank``, and its length."""
        best, n_best = None, 0
        for place, end in match.reaches().items() if self._memory.can_share else ():
            if not isinstance(place, Slot) or place.is_free or place.rank > rank:
                continue
            if end > max(n_best, place.n_resident):
                best, n_best = place, end
        return best, n_best

    def slot_to_take(self, source: Slot | None, n_shared: int, wanted: int | None = None) -> Slot:
        """Return the free slot to take for a text that shares ``n_shared`` tokens with ``source``.

        That is ``wanted`` if it is free, and the text can be copied to it.
        """
        if wanted is not None and 0 <= wanted < len(self._slots) and (source is None or self._memory.can_share):
            slot = self._slots[wanted]
            if slot.is_free:
                return slot
        free = [slot for slot in self._slots if slot.is_free]
        oldest = min(free, key=lambda slot: (slot.n_resident > 0, slot.last_used))
        if source is None or not source.is_free:
            return oldest
        is_reused = n_shared >= _KEEP_SHARE * source.n_resident or oldest.n_resident > 0 or oldest is source
        return source if is_reused or not self._memory.can_share else oldest

    def oldest_idle(self) -> Slot | None:
        """Return the least recently used free slot with a text; None if there is none."""
        idle = [slot for slot in self._slots if slot.is_free and slot.n_resident]
        return min(idle, key=lambda slot: slot.last_used) if idle else None

    def _is_extended(self, slot: Slot, size: int) -> bool:
        """Return whether a text that shares ``size`` tokens with a slot should extend it, if it cannot be copied."""
        if size >= slot.n_resident:
            return True
        return size >= _KEEP_SHARE * slot.n_resident and self._memory.can_cut(slot.id, slot.resident.position(size))
