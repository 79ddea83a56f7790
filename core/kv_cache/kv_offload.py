"""Moves the contents of sequences between the cells of a context and the store, segment by segment."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from core.kv_cache.disk_cache import Blob
from core.kv_cache.memory import AttentionMemory
from core.kv_cache.prefix_tree import image_end, whole_images
from core.kv_cache.segment_store import Segment, SegmentLink, SegmentStore
from core.kv_cache.slot import Slot

# The least tokens of a segment: fewer are hardly worth a file.
LEAST_SAVED = 16
# Seconds per token, until they were measured; and the weight of the latest measurement in the moving average.
_FIRST_ESTIMATE, _WEIGHT = 1e-5, 0.2


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
            end = whole_images(text, min(n_saved + self.store.segment_size, len(text)))
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
