"""What slots hold: shared, loaded, saved, cut and dropped."""

from __future__ import annotations

from core.kv_cache.memory import AttentionMemory
from core.kv_cache.prefix_cache.kv_offload import KvOffload
from core.kv_cache.prefix_cache.prefix_tree import PrefixTree
from core.kv_cache.prefix_cache.segment import Blob
from core.kv_cache.prefix_cache.segment_store import SegmentLink
from core.kv_cache.slot import Slot


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
        """KvOffload the next piece of what a slot holds; False where all is kept, or nothing more can be."""
        return self._offload is not None and self._offload.save_piece(slot.id, slot.text)

    def save(self, slot: Slot) -> None:
        """KvOffload what a slot holds, which is about to be dropped."""
        while self.save_piece(slot):
            pass

    def load(self, link: SegmentLink, blob: Blob, slot: Slot) -> bool:
        """Load a piece behind what a slot holds; False where cells have no room."""
        assert self._offload is not None
        if not self._offload.load(link, blob, slot.id, slot.n_resident):
            return False
        slot.n_resident = link.end
        return True

    def share(self, source: Slot, target: Slot, n_shared: int) -> int:
        """Let ``target`` hold the first tokens of ``source`` and nothing else; return how many it holds then."""
        if target is source:
            return self.cut(target, n_shared)
        self.cut(target, 0)
        self._memory.share(source.id, target.id, n_shared)
        return n_shared

    def cut(self, slot: Slot, size: int) -> int:
        """Shorten what a slot holds to ``size`` tokens; return what is left."""
        if size < slot.n_resident:
            slot.n_resident = self._memory.cut(slot.id, size)
        self.n_idle = None
        return slot.n_resident

    def drop(self, slot: Slot) -> None:
        """Let a slot hold nothing, and nobody find anything there."""
        self.leave_tree(slot)
        self.cut(slot, 0)

    def leave_tree(self, slot: Slot) -> None:
        """Let nobody find what a slot holds."""
        if slot.node is not None:
            self._tree.remove(slot)
