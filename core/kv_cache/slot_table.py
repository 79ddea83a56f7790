"""The slots of a context: which slot a request gets, and how much of its prompt is in the cache."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping

from core.kv_cache.disk_cache import Blob
from core.kv_cache.memory import AttentionMemory
from core.kv_cache.prefix_tree import PrefixMatch, PrefixTree, TokenIds
from core.kv_cache.segment_store import DiskReadWait, Segment, SegmentLink, SegmentStore
from core.kv_cache.slot import LEAST_SAVED, KvOffload, PlacementWait, SharedPrefixWait, Slot, TokenBuffer

# Seconds of each step for saving or loading on behalf of a waiting request.
_LONGEST_MOVE = 0.01
# A request waits for another one, or for the disk, if that saves at least this many tokens.
_LEAST_AWAITED = 32
# A free slot is cut back to the common prefix only if that keeps at least this share of what it holds;
# otherwise the prefix is copied, and the longer conversation stays for its next turn.
_KEEP_SHARE = 0.5
# Tokens that a cache miss shows of each text.
_MOST_SHOWN = 8


class SlotTable:
    """Gives each running request a slot that holds the longest known prefix of its prompt.

    A prefix in another slot, free or running, is shared without copying. One that only the ``store`` has is loaded. The
    text of a free slot is saved there before the slot is reused.
    """

    def __init__(
        self,
        memory: AttentionMemory,
        n_slots: int,
        *,
        store: SegmentStore | None = None,
        prefill_seconds: Callable[[int], float] = lambda n_tokens: 0.0,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """``store`` keeps texts outside the device; without one nothing does.

        ``prefill_seconds`` predicts the time for computing tokens.
        """
        self.memory = memory
        self.store = store if store is not None else SegmentStore(PrefixTree(), ram_limit=0)
        self.slots = tuple(Slot(index) for index in range(n_slots))
        self._offload = KvOffload(self.store, memory, n_slots, clock)
        self.prefill_seconds = prefill_seconds
        self._ticks = 0
        self._n_idle: int | None = 0  # None: to be counted again
        self._is_at_work = False
        self._clock = clock
        self._idle_paid = 0.0

    def __len__(self) -> int:
        return len(self.slots)

    @property
    def n_resident(self) -> int:
        """Tokens held by all slots; shared cells count for each."""
        return sum(slot.n_resident for slot in self.slots)

    @property
    def n_idle(self) -> int:
        """Tokens in free slots."""
        if self._n_idle is None:
            self._n_idle = sum([slot.n_resident for slot in self.slots if slot.is_free])
        return self._n_idle

    # -- requests -----------------------------------------------------------------------------------------------

    def wait_for(
        self, tokens: TokenBuffer, earlier: PlacementWait | None = None, rank: int = 0
    ) -> PlacementWait | None:
        """Return what a request with ``tokens`` should wait for; None: it can be placed now.

        ``earlier`` is what it has waited for, so that it waits for the disk only once. ``rank`` is that of its lane: it
        does not wait for requests of lower lanes, which may themselves have to wait.
        """
        self.store.poll()
        match = self._match(tokens)
        _, n_held = self._best(match)
        links = self.store.chain(match, n_held)
        n_known = max([n_held, *[link.end for link in links]])
        leader, n_coming = self._computing_slot(match, rank)
        if leader is not None and n_coming - n_known >= _LEAST_AWAITED:
            leader.stops.add(n_coming)
            return SharedPrefixWait(leader, n_coming)
        missing = [link.segment for link in links if link.segment.blob is None]
        if not missing or isinstance(earlier, DiskReadWait) or n_known - n_held < _LEAST_AWAITED:
            return None
        # From then on computing is faster.
        return self.store.read(missing, self._clock() + self.prefill_seconds(n_known - n_held), self._clock)

    def evict_ahead(self, tokens: TokenBuffer, wanted: int | None) -> bool:
        """Save a part of the slot that ``tokens`` would take; True if nothing is left to save.

        Called once per step while other requests run, so that none of them waits for long. ``wanted`` as in ``take``.
        """
        source, n_shared = self._best(self._match(tokens))
        target = self._slot_to_take(source, n_shared, wanted)
        if target.n_resident - (n_shared if target is source else 0) < LEAST_SAVED:
            return True
        until = self._clock() + _LONGEST_MOVE
        while self._offload.save_segment(target):
            if self._clock() >= until:
                return False
        return True

    def load_ahead(self, tokens: TokenBuffer, hold: PlacementWait | None, wanted: int | None) -> bool:
        """Load a part of a text's prefix from the store into a free slot; True if ``take`` may load the rest.

        Like ``evict_ahead``, called once per step: loading a long text takes as long as several steps.
        """
        if not self.memory.can_share:
            return True  # such memory is loaded as a whole
        source, n_shared, loads = self._found(tokens, hold)
        if not loads or self._offload.seconds_to_load(loads[-1][0].end - n_shared) <= _LONGEST_MOVE:
            return True
        target = self._prepare(source, n_shared, tokens, wanted)
        until = self._clock() + _LONGEST_MOVE
        is_done = self._load_all(loads, target, until)
        self.store.touch([link for link, _ in loads if link.end <= target.n_resident])
        self.release(target)
        return is_done

    def take(
        self, tokens: TokenBuffer, hold: PlacementWait | None = None, rank: int = 0, wanted: int | None = None
    ) -> tuple[Slot, int]:
        """Occupy a slot for ``tokens``; return it and how many are cached, but for one whose logits are needed.

        It is the slot with the number ``wanted``, if that is free.
        """
        source, n_shared, loads = self._found(tokens, hold)
        self.store.touch([link for link, _ in loads])  # once for each request
        target = self._prepare(source, n_shared, tokens, wanted)
        self._load_all(loads, target)
        target.n_tenants += 1
        target.rank = rank
        stops = self.memory.checkpoints(tokens.size, target.n_resident) if self.store.can_keep else set()
        target.stops = {tokens.whole_images(stop) for stop in stops}
        self.store.tree.insert(target, tokens.known(tokens.size))
        return target, target.n_resident

    def _found(
        self, tokens: TokenBuffer, hold: PlacementWait | None
    ) -> tuple[Slot | None, int, list[tuple[SegmentLink, Blob]]]:
        """Return the slot to share with, the length of the shared prefix, and the segments to load behind it."""
        match = self._match(tokens)
        source, n_shared = self._best(match)
        read = hold.blobs if isinstance(hold, DiskReadWait) else {}
        loads = self._offload.loads(self.store.chain(match, n_shared), read)
        return (None, 0, loads) if loads and not self.memory.can_share else (source, n_shared, loads)

    def _prepare(self, source: Slot | None, n_shared: int, tokens: TokenBuffer, wanted: int | None) -> Slot:
        """Occupy a slot that holds exactly the shared prefix of ``tokens``."""
        target = self._slot_to_take(source, n_shared, wanted)
        if target.n_resident - (n_shared if target is source else 0) >= LEAST_SAVED:
            self.save(target)
        self._leave_tree(target)
        n_kept = self._share(source, target, n_shared) if source is not None else self._cut(target, 0)
        target.is_free = False
        self._n_idle = None
        target.resident = tokens
        target.n_resident = n_kept
        return target

    def _load_all(self, loads: list[tuple[SegmentLink, Blob]], target: Slot, until: float = float("inf")) -> bool:
        """Load segment after segment; False if the time ``until`` comes before the last."""
        for link, blob in loads:
            if not self._load(link, blob, target):
                break
            if self._clock() >= until:
                return link is loads[-1][0]
        return True

    def _load(self, link: SegmentLink, blob: Blob, target: Slot) -> bool:
        """Append a segment to a slot; idle texts make room for it."""
        while not self._offload.load(link, blob, target):
            if not self.evict_idle():
                return False
        return True

    def divergence(self, tokens: TokenBuffer) -> tuple[int, TokenIds, TokenIds] | None:
        """Return where ``tokens``, without the last, first differ from a stored text, and the next tokens of both.

        None if no stored text has a common prefix, or if ``tokens`` only extend it.
        """
        match, prompt = self._match(tokens), tokens.view
        stored = match.continuation(_MOST_SHOWN)
        if stored is None or match.size >= len(prompt) - 1:
            return None
        return match.size, stored, prompt[match.size : match.size + _MOST_SHOWN]

    def release(self, slot: Slot) -> None:
        """Free a slot; its contents stay until the room is needed."""
        self._ticks += 1
        slot.is_free = True
        slot.was_saved = False
        self._n_idle = None
        slot.last_used = self._ticks
        self._leave_tree(slot)
        slot.n_left = self._cut(slot, slot.resident.whole_images(slot.n_resident))
        if slot.n_resident:
            self.store.tree.insert(slot, slot.resident.known(slot.n_resident))

    def clear(self, slot: Slot) -> None:
        """Drop the contents of a slot."""
        self._cut(slot, 0)

    def save(self, slot: Slot) -> None:
        """Save all of a slot's text in the store before it is dropped."""
        while self._offload.save_segment(slot):
            pass

    def resync(self, slot: Slot, most: int) -> int:
        """After a failed decode, read from the cache what a slot still holds; keep up to ``most`` tokens, or none."""
        held = self.memory.cells.last_position(slot.id) + 1
        size = slot.resident.whole_images(min(held, most))
        if slot.resident.shares_positions or not self.memory.can_cut(slot.id, size):
            size = 0
        if held > size or not self.memory.can_share:
            size = self.memory.cut(slot.id, size)
        slot.n_resident = size
        return size

    # -- slots by number -----------------------------------------------------------------------------------------

    def read_left(self, number: int) -> DiskReadWait | None:
        """Have the disk read what only it has of the text that was left in a free slot; None if there is nothing."""
        slot = self.slots[number]
        missing = [link.segment for link in self._links_left(slot) if link.segment.blob is None]
        return self.store.read(missing, math.inf, self._clock) if missing else None

    def left_in(self, number: int, read: DiskReadWait | None = None) -> tuple[TokenIds, Blob] | None:
        """Return the text that the last request left in a free slot, and all of its cells.

        What has moved to RAM since, or was ``read``, is loaded again. None if the text is empty, or is kept nowhere.
        """
        slot = self.slots[number]
        if slot.n_resident < slot.n_left:
            self._bring_back(slot, read.blobs if read is not None else {})
        # When a text moves to the store, its last few tokens are not kept.
        if not slot.n_resident or slot.n_resident <= slot.n_left - LEAST_SAVED:
            return None
        blob = self.memory.cells.read_cells(slot.id)
        return (slot.text.copy(), blob) if blob is not None else None

    def put_into(self, number: int, text: TokenIds, blob: Blob, salt: str) -> bool:
        """Fill a free slot with a text by all of its cells; False if there is no room for it.

        What the slot held before is saved in the store.
        """
        slot = self.slots[number]
        self.save(slot)
        self._drop(slot)
        slot.is_free = False
        slot.resident = TokenBuffer(text, salt)
        slot.stops = set()
        whole = Segment(b"", None, 0, len(text), text, blob.nbytes, is_whole=True)
        is_done = self._load(SegmentLink(whole, len(text)), blob, slot)
        self.release(slot)
        return is_done

    def erase(self, number: int) -> int:
        """Empty a free slot, and forget its text wherever it is kept; return the tokens that it had."""
        slot = self.slots[number]
        text = slot.resident.known(slot.n_left).copy()
        self._drop(slot)
        slot.n_left = 0
        self.store.poll()
        self.store.forget(text)
        return len(text)

    def _links_left(self, slot: Slot) -> list[SegmentLink]:
        """Return what the store has of the text that was left in a free slot, behind what the slot holds."""
        self.store.poll()
        return self.store.chain(self.store.tree.match(slot.resident.known(slot.n_left)), slot.n_resident)

    def _bring_back(self, slot: Slot, read: Mapping[Segment, Blob]) -> None:
        """Load what a free slot was left with from RAM, and what was ``read``."""
        n_left, links = slot.n_left, self._links_left(slot)
        self._leave_tree(slot)
        slot.is_free = False
        self._load_all(self._offload.loads(links, read), slot)
        self.release(slot)
        slot.n_left = n_left

    # -- which slot ---------------------------------------------------------------------------------------------

    def _match(self, tokens: TokenBuffer) -> PrefixMatch:
        """Return the longest known prefix of a prompt without its last token."""
        for slot in self.slots:
            if not slot.is_free and slot.node is not None and slot.resident.size > slot.end:
                self.store.tree.extend(slot, slot.resident.view)
        match = self.store.tree.match(tokens.known(tokens.size - 1))
        match.size = tokens.whole_images(match.size)
        return match

    def _best(self, match: PrefixMatch) -> tuple[Slot | None, int]:
        """Return the slot that holds the longest prefix of a text, and its length; a free slot among equals."""
        best, n_best = None, 0
        for place, end in match.reaches().items():
            if not isinstance(place, Slot):
                continue
            size = place.resident.whole_images(min(end, place.n_resident))
            if not self.memory.can_share and not (place.is_free and self._is_extended(place, size)):
                continue
            if self.memory.can_share and not self.memory.can_cut(place.id, place.resident.position(size)):
                continue
            if size > n_best or (size == n_best and size and best is not None and place.is_free and not best.is_free):
                best, n_best = place, size
        return best, n_best

    def _computing_slot(self, match: PrefixMatch, rank: int) -> tuple[Slot | None, int]:
        """Return the running slot that will hold the longest prefix, of lanes not below ``rank``, and its length."""
        best, n_best = None, 0
        for place, end in match.reaches().items() if self.memory.can_share else ():
            if not isinstance(place, Slot) or place.is_free or place.rank > rank:
                continue
            if end > max(n_best, place.n_resident):
                best, n_best = place, end
        return best, n_best

    def _slot_to_take(self, source: Slot | None, n_shared: int, wanted: int | None) -> Slot:
        """Return the free slot to take for a text that shares ``n_shared`` tokens with ``source``.

        That is ``wanted`` if it is free, and the text can be copied to it.
        """
        if wanted is not None and 0 <= wanted < len(self.slots) and (source is None or self.memory.can_share):
            slot = self.slots[wanted]
            if slot.is_free:
                return slot
        free = [slot for slot in self.slots if slot.is_free]
        oldest = min(free, key=lambda slot: (slot.n_resident > 0, slot.last_used))
        if source is None or not source.is_free:
            return oldest
        is_reused = n_shared >= _KEEP_SHARE * source.n_resident or oldest.n_resident > 0 or oldest is source
        return source if is_reused or not self.memory.can_share else oldest

    def _oldest_idle(self) -> Slot | None:
        """Return the least recently used free slot with a text; None if there is none."""
        idle = [slot for slot in self.slots if slot.is_free and slot.n_resident]
        return min(idle, key=lambda slot: slot.last_used) if idle else None

    def _is_extended(self, slot: Slot, size: int) -> bool:
        """Return whether a text that shares ``size`` tokens with a slot should extend it, if it cannot be copied."""
        if size >= slot.n_resident:
            return True
        return size >= _KEEP_SHARE * slot.n_resident and self.memory.can_cut(slot.id, slot.resident.position(size))

    # -- contents of a slot -------------------------------------------------------------------------------------

    def _share(self, source: Slot, target: Slot, n_shared: int) -> int:
        """Replace the contents of ``target`` by the first tokens of ``source``; return how many it holds then."""
        if target is source:
            return self._cut(target, n_shared)
        self._cut(target, 0)
        self.memory.cells.copy(source.id, target.id, source.resident.position(n_shared))
        return n_shared

    def _cut(self, slot: Slot, size: int) -> int:
        """Cut a slot's text to ``size`` tokens; return how many are left."""
        if size < slot.n_resident:
            slot.n_resident = size if self.memory.cut(slot.id, slot.resident.position(size)) else 0
        self._n_idle = None
        return slot.n_resident

    def _drop(self, slot: Slot) -> None:
        """Empty a slot, and remove its text from the tree."""
        self._leave_tree(slot)
        self._cut(slot, 0)

    def _leave_tree(self, slot: Slot) -> None:
        if slot.node is not None:
            self.store.tree.remove(slot)

    # -- idle texts -----------------------------------------------------------------------------------------------

    def evict_idle(self) -> bool:
        """Make room: save and drop the text of the least recently used free slot; False if there is none."""
        slot = self._oldest_idle()
        if slot is None:
            return False
        self.save(slot)
        self._drop(slot)
        return True

    def forget_idle(self) -> None:
        """Drop the contents of free slots and of the store."""
        for slot in self.slots:
            if slot.is_free:
                self._drop(slot)
                slot.n_left = 0
        self.store.poll()
        self.store.clear()

    def after_step(self) -> None:
        """Save recurrent states that a step has brought to a stop; delay the disk's writes while requests run."""
        if not self._is_at_work:
            self._is_at_work = True
            self.store.defer_writes(True)
        for slot in self.slots if not self.memory.can_share else ():
            if not slot.is_free and slot.n_resident in slot.stops:
                slot.stops.discard(slot.n_resident)
                self._offload.save_segment(slot)

    def charge_idle(self, seconds: float) -> None:
        """Add the seconds that idle texts cost. Once they exceed the cost of moving a text, evict the oldest.

        That is the rule for ski rental: pay rent until as much was paid as buying costs, then buy. It costs at most
        twice what knowing the future would cost (Karlin, Manasse, Rudolph, Sleator: "Competitive snoopy caching",
        1988). At most one segment is saved per call, so that no request waits for long.
        """
        if not self.n_idle:
            self._idle_paid = 0.0
            return
        self._idle_paid += max(seconds, 0.0)
        while (slot := self._oldest_idle()) is not None:
            price_of = self._offload.seconds_to_move if self.store.can_keep else self.prefill_seconds
            price = price_of(slot.n_resident)
            if self._idle_paid <= price or self._offload.save_segment(slot):
                return
            self._drop(slot)
            self._idle_paid -= price
        self._idle_paid = 0.0

    def write_back(self) -> bool:
        """While idle, save one segment that only the device or RAM holds; return whether there was one."""
        self._is_at_work = False
        self.store.defer_writes(False)
        self.store.poll()
        if not self.store.ram_limit and self.store.is_writing:
            return False  # a busy disk takes nothing more, and there is nothing else to keep it in
        for slot in sorted(self.slots, key=lambda one: -one.last_used):
            if not slot.is_free or slot.was_saved:
                continue
            if slot.n_resident and self._offload.save_segment(slot):
                return True
            # If the store has less room than the slots, other texts drive it out again: once is enough.
            slot.was_saved = True
        return self.store.write_behind()
