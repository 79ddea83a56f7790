"""Slots: a slot is one sequence id of the KV cache, with the tokens that it holds.

A request may wait for the prefix that another is computing, or for the disk. What a slot holds moves to the store and
back, segment by segment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from core.kv_cache.disk_cache import Blob
from core.kv_cache.memory import AttentionMemory
from core.kv_cache.prefix_tree import (
    PrefixNode,
    TokenIds,
    common_prefix,
    image_end,
    salted_id,
    shared_positions,
    whole_images,
)
from core.kv_cache.segment_store import DiskReadWait, Segment, SegmentLink, SegmentStore

# The least tokens of a segment: fewer are hardly worth a file.
LEAST_SAVED = 16
# Seconds per token, until they were measured; and the weight of the latest measurement in the moving average.
_FIRST_ESTIMATE, _WEIGHT = 1e-5, 0.2


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


class KvOffload:
    """Moves segments of texts between the sequences of a context and a ``store``.

    llama.cpp saves and loads whole sequences only. So to save a part, it is first shared with a spare sequence, which
    copies nothing, and the spare sequence is saved. Loading does the reverse.
    """

    def __init__(self, store: SegmentStore, memory: AttentionMemory, spare: int, clock: Callable[[], float]) -> None:
        """``spare`` is a sequence id for this use alone."""
        self.store = store
        self._memory, self._context = memory, memory.cells
        self._spare = spare
        # Recurrent states and sliding windows can only be saved as a whole.
        self._is_whole = not memory.can_share
        self._clock = clock
        self._save_seconds = self._load_seconds = _FIRST_ESTIMATE

    def loads(self, links: list[SegmentLink], read: Mapping[Segment, Blob]) -> list[tuple[SegmentLink, Blob]]:
        """Return the links up to the first whose bytes are neither in RAM nor in ``read``, each with its bytes."""
        loads = []
        for link in links:
            blob = link.segment.blob if link.segment.blob is not None else read.get(link.segment)
            if blob is None:
                break
            loads.append((link, blob))
        return loads

    def save_segment(self, slot: Slot) -> bool:
        """Save the next segment of a slot's text, never half an image; False if all is saved, or no more can be."""
        size, position = slot.resident.whole_images(slot.n_resident), slot.resident.position
        if size < LEAST_SAVED or not self.store.can_keep:
            return False
        if size < slot.n_resident and self._is_whole:
            return False  # the state ends within an image
        text = slot.resident.known(size)
        links = self.store.chain(self.store.tree.match(text), 0)
        n_saved = links[-1].end if links else 0
        if len(text) - n_saved < LEAST_SAVED:
            return False
        began, context = self._clock(), self._context
        if self._is_whole:
            n_saved, end, parent = 0, len(text), None
            blob = context.read_cells(slot.id)
        elif not self._memory.holds(slot.id, position(n_saved)):
            return False
        else:
            size = self._memory.saved_together(position(n_saved), self.store.segment_size)
            end = whole_images(text, min(n_saved + size, len(text)))
            if end <= n_saved:
                end = image_end(text, n_saved)
            parent = links[-1].segment if links else None
            context.copy(slot.id, self._spare, position(end), position(n_saved))
            blob = context.read_cells(self._spare)
            context.remove(self._spare, 0)
        self._save_seconds += _WEIGHT * ((self._clock() - began) / (end - n_saved) - self._save_seconds)
        return blob is not None and self.store.add(text[:end], n_saved, parent, blob, is_whole=self._is_whole)

    def load(self, link: SegmentLink, blob: Blob, slot: Slot) -> bool:
        """Extend what a slot holds to the link's end; False if no cells are free."""
        began, context, start, position = self._clock(), self._context, slot.n_resident, slot.resident.position
        if link.segment.is_whole:
            start = 0
            is_loaded = context.write_cells(slot.id, blob)
            if not is_loaded:
                context.remove(slot.id, 0)
        else:
            is_loaded = context.write_cells(self._spare, blob)
            if is_loaded:
                context.copy(self._spare, slot.id, position(link.end), position(start))
            context.remove(self._spare, 0)
        self._load_seconds += _WEIGHT * ((self._clock() - began) / (link.end - start) - self._load_seconds)
        if is_loaded:
            slot.n_resident = link.end
        return is_loaded

    def seconds_to_load(self, n_tokens: int) -> float:
        """Return the seconds that loading ``n_tokens`` takes, from the latest loads."""
        return n_tokens * self._load_seconds

    def seconds_to_move(self, n_tokens: int) -> float:
        """Return the seconds that saving and loading ``n_tokens`` takes."""
        return n_tokens * (self._save_seconds + self._load_seconds)
