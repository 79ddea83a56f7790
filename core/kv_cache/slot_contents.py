"""The contents of slots: how they are shared, loaded, saved, cut and dropped, and the search for a prompt's prefix."""

from __future__ import annotations

from core.kv_cache.kv_offload import KvOffload
from core.kv_cache.memory import AttentionMemory
from core.kv_cache.prefix_cache.prefix_tree import PrefixMatch, PrefixTree
from core.kv_cache.prefix_cache.segment import Blob
from core.kv_cache.prefix_cache.segment_store import SegmentLink
from core.kv_cache.slot import Slot, TokenBuffer


class SlotContents:
    """Changes the contents of slots, in the context and in the prefix tree.

    ``n_idle`` is the number of tokens in free slots; None: to be counted again.
    """

    def __init__(self, memory: AttentionMemory, tree: PrefixTree, offload: KvOffload | None) -> None:
        """Texts are saved to ``offload``; None: they are not saved."""
        self.n_idle: int | None = 0
        self._memory = memory
        self._tree = tree
        self._offload = offload

    def save_segment(self, slot: Slot) -> bool:
        """Save the next segment of a slot's text; False if all is saved, or no more can be."""
        if self._offload is None:
            return False
        size = slot.resident.whole_images(slot.n_resident)
        if size < slot.n_resident and not self._memory.can_share:
            return False  # the state can only be saved as a whole, and it ends within an image
        text = slot.resident.view[:size]
        return self._offload.save_segment(slot.id, text, slot.resident.position)

    def save(self, slot: Slot) -> None:
        """Save all of a slot's text before it is dropped."""
        while self.save_segment(slot):
            pass

    def load(self, link: SegmentLink, blob: Blob, slot: Slot) -> bool:
        """Append a segment to a slot's text; False if no cells are free."""
        assert self._offload is not None
        if not self._offload.load(link, blob, slot.id, slot.n_resident, slot.resident.position):
            return False
        slot.n_resident = link.end
        return True

    def share(self, source: Slot, target: Slot, n_shared: int) -> int:
        """Replace the contents of ``target`` by the first tokens of ``source``; return how many it holds then."""
        if target is source:
            return self.cut(target, n_shared)
        self.cut(target, 0)
        self._memory.cells.copy(source.id, target.id, source.resident.position(n_shared))
        return n_shared

    def cut(self, slot: Slot, size: int) -> int:
        """Cut a slot's text to ``size`` tokens; return how many are left."""
        if size < slot.n_resident:
            slot.n_resident = size if self._memory.cut(slot.id, slot.resident.position(size)) else 0
        self.n_idle = None
        return slot.n_resident

    def drop(self, slot: Slot) -> None:
        """Empty a slot, and remove its text from the tree."""
        self.leave_tree(slot)
        self.cut(slot, 0)

    def leave_tree(self, slot: Slot) -> None:
        """Remove the text of a slot from the tree."""
        if slot.node is not None:
            self._tree.remove(slot)


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
            if size > n_best or (size == n_best and size and best is not None and place.is_free and not best.is_free):
                best, n_best = place, size
        return best, n_best

    def computing_slot(self, match: PrefixMatch, rank: int) -> tuple[Slot | None, int]:
        """Return the running slot that will hold the longest prefix of a text, and its length.

        Running states are not shared.

        Slots of lanes below ``rank`` are left out.
        """
        best, n_best = None, 0
        for place, end in match.reaches().items() if self._memory.can_share else ():
            if isinstance(place, Slot) and not place.is_free and place.rank <= rank and end > n_best:
                best, n_best = place, end
        return best, n_best

    def slot_to_take(self, source: Slot | None, n_shared: int) -> Slot:
        """Return the free slot to take for a text that shares ``n_shared`` tokens with ``source``."""
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
