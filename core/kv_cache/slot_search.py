"""Which slots hold the beginning of a prompt, and which one it should take."""

from __future__ import annotations

from core.kv_cache.memory import AttentionMemory
from core.kv_cache.prefix_cache.prefix_tree import PrefixMatch, PrefixTree
from core.kv_cache.slot import Slot
from core.kv_cache.token_buffer import TokenBuffer

# A free slot is cut back to the common prefix only if that keeps at least this share of what it holds;
# otherwise the prefix is copied, and the longer conversation stays for its next turn.
_KEEP_SHARE = 0.5


class SlotSearch:
    """Looks for texts in slots, by the tree that knows them. It changes nothing but to keep that up to date."""

    def __init__(self, slots: tuple[Slot, ...], tree: PrefixTree, memory: AttentionMemory) -> None:
        """Look in ``slots``, which hold texts in ``memory``."""
        self._slots = slots
        self._tree = tree
        self._memory = memory

    def match(self, tokens: TokenBuffer) -> PrefixMatch:
        """Return what is known of a prompt but for its last token."""
        for slot in self._slots:
            if not slot.is_free and slot.node is not None and slot.resident.size > slot.end:
                self._tree.extend(slot, slot.resident.view)
        return self._tree.match(tokens.view[:-1])

    def best(self, match: PrefixMatch) -> tuple[Slot | None, int]:
        """Return the slot that holds most of a text, and how much; a free one among equals."""
        best, n_best = None, 0
        for place, end in match.reaches().items():
            if not isinstance(place, Slot):
                continue
            size = min(end, place.n_resident)
            if not self._memory.can_share and not (place.is_free and self._is_extended(place, size)):
                continue
            if size > n_best or (size == n_best and size and best is not None and place.is_free and not best.is_free):
                best, n_best = place, size
        return best, n_best

    def computing_slot(self, match: PrefixMatch, rank: int) -> tuple[Slot | None, int]:
        """Return the request at work that will hold most of a text, and how much; a running state is not shared.

        It is in no lower lane than the one of ``rank``.
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
        """Return the free slot with a text that was used longest ago; None where there is none."""
        idle = [slot for slot in self._slots if slot.is_free and slot.n_resident]
        return min(idle, key=lambda slot: slot.last_used) if idle else None

    def _is_extended(self, slot: Slot, size: int) -> bool:
        """Return whether a text that shares ``size`` tokens with a slot that cannot be copied should go on from it."""
        if size >= slot.n_resident:
            return True
        return size >= _KEEP_SHARE * slot.n_resident and self._memory.can_cut(slot.id, size)
