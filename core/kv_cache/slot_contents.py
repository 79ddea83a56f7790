"""What slots hold: where a prompt finds its beginning, and texts shared, loaded, saved, cut and dropped."""

from __future__ import annotations

from core.kv_cache.memory import AttentionMemory
from core.kv_cache.prefix_cache.kv_offload import KvOffload
from core.kv_cache.prefix_cache.prefix_tree import PrefixMatch, PrefixTree
from core.kv_cache.prefix_cache.segment import Blob
from core.kv_cache.prefix_cache.segment_store import SegmentLink
from core.kv_cache.slot import Slot, TokenBuffer


class SlotContents:
    """Changes what slots hold, in the context and in the tree that finds it.

    ``n_idle`` is how many tokens slots hold that nobody uses; None: to be counted again.
    """

    def __init__(self, memory: AttentionMemory, tree: PrefixTree, offload: KvOffload | None) -> None:
        """Texts are kept in ``offload``, None: nowhere."""
        self.n_idle: int | None = 0
        self._memory = memory
        self._tree = tree
        self._offload = offload

    def save_piece(self, slot: Slot) -> bool:
        """Save the next piece of what a slot holds; False where all is kept, or nothing more can be."""
        if self._offload is None:
            return False
        size = slot.resident.whole_images(slot.n_resident)
        if size < slot.n_resident and not self._memory.can_share:
            return False  # what can only be kept as a whole holds a part of an image
        text = slot.resident.view[:size]
        return self._offload.save_piece(slot.id, text, slot.resident.position)

    def save(self, slot: Slot) -> None:
        """Save what a slot holds, which is about to be dropped."""
        while self.save_piece(slot):
            pass

    def load(self, link: SegmentLink, blob: Blob, slot: Slot) -> bool:
        """Load a piece behind what a slot holds; False where cells have no room."""
        assert self._offload is not None
        if not self._offload.load(link, blob, slot.id, slot.n_resident, slot.resident.position):
            return False
        slot.n_resident = link.end
        return True

    def share(self, source: Slot, target: Slot, n_shared: int) -> int:
        """Let ``target`` hold the first tokens of ``source`` and nothing else; return how many it holds then."""
        if target is source:
            return self.cut(target, n_shared)
        self.cut(target, 0)
        self._memory.share(source.id, target.id, source.resident.position(n_shared))
        return n_shared

    def cut(self, slot: Slot, size: int) -> int:
        """Shorten what a slot holds to ``size`` tokens; return what is left."""
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
        match = self._tree.match(tokens.view[:-1])
        match.size = tokens.whole_images(match.size)
        return match

    def best(self, match: PrefixMatch) -> tuple[Slot | None, int]:
        """Return the slot that holds most of a text, and how much; a free one among equals."""
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
        return size >= _KEEP_SHARE * slot.n_resident and self._memory.can_cut(slot.id, slot.resident.position(size))


class IdleCost:
    """The ski rental rule: pay rent until as much was paid as buying costs, then buy.

    Whatever comes, that costs at most twice of what knowing the future would (Karlin, Manasse, Rudolph, Sleator:
    "Competitive snoopy caching", 1988). Here the rent is the time that steps take longer because of an idle text in the
    cache; buying is taking it out and, if it is ever asked for, putting it back.
    """

    def __init__(self) -> None:
        """Nothing was paid yet."""
        self.paid = 0.0

    def add(self, seconds: float) -> None:
        """A step took so much longer."""
        self.paid += max(seconds, 0.0)

    def covers(self, price: float) -> bool:
        """Return whether as much as ``price`` was paid."""
        return self.paid > price

    def subtract(self, price: float) -> None:
        """One was bought."""
        self.paid = max(0.0, self.paid - price)

    def reset(self) -> None:
        """Nothing is left to pay for."""
        self.paid = 0.0
