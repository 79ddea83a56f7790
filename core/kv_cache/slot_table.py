"""The slots of a context: which one a request gets, and where its prompt finds its beginning."""

from __future__ import annotations

import time
from collections.abc import Callable

from core.kv_cache.memory import AttentionMemory
from core.kv_cache.prefix_cache.image_tokens import is_image
from core.kv_cache.prefix_cache.kv_offload import LEAST_SAVED, DiskReadWait, KvOffload
from core.kv_cache.prefix_cache.prefix_tree import Divergence, PrefixMatch, PrefixTree, divergence
from core.kv_cache.prefix_cache.segment import Blob
from core.kv_cache.prefix_cache.segment_store import SegmentLink, SegmentStore
from core.kv_cache.slot import PlacementWait, SharedPrefixWait, Slot, TokenBuffer
from core.kv_cache.slot_contents import IdleCost, SlotContents, SlotSearch

# Seconds that a step may spend on saving, and on loading, for a request that waits.
_LONGEST_MOVE = 0.01
# A request waits for another one, or for the disk, if that saves so many tokens.
_LEAST_AWAITED = 32


class SlotTable:
    """Gives each running request a slot, with as much of its prompt as is known.

    A prefix that another slot holds is shared with it, whether that one is idle or at work: no data is moved. What only
    the ``offload`` has is loaded. What idle slots hold goes there before its room is used for something else.
    """

    def __init__(
        self,
        memory: AttentionMemory,
        n_slots: int,
        *,
        offload: KvOffload | None = None,
        prefill_seconds: Callable[[int], float] = lambda n_tokens: 0.0,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """``offload`` None keeps nothing outside the device; computing tokens takes ``prefill_seconds``."""
        self.memory = memory
        self.n_hits = 0
        self._slots = tuple(Slot(index) for index in range(n_slots))
        self._tree = offload.tree if offload is not None else PrefixTree()
        self._offload = offload
        self._search = SlotSearch(self._slots, self._tree, memory)
        self._contents = SlotContents(memory, self._tree, offload)
        self._prefill_seconds = prefill_seconds
        self._ticks = 0
        self._is_at_work = False
        self._clock = clock
        self._idle_cost = IdleCost()

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def store(self) -> SegmentStore | None:
        """Where texts go that leave the device; None where there is no such place."""
        return self._offload.store if self._offload is not None else None

    @property
    def has_free(self) -> bool:
        """True where a request can be placed."""
        return any(slot.is_free for slot in self._slots)

    @property
    def n_resident(self) -> int:
        """Tokens held by all slots; shared cells count for each."""
        return sum(slot.n_resident for slot in self._slots)

    @property
    def n_idle(self) -> int:
        """Tokens held by slots that nobody uses."""
        contents = self._contents
        if contents.n_idle is None:
            contents.n_idle = sum([slot.n_resident for slot in self._slots if slot.is_free])
        return contents.n_idle

    # -- requests -----------------------------------------------------------------------------------------------

    def wait_for(
        self, tokens: TokenBuffer, earlier: PlacementWait | None = None, rank: int = 0
    ) -> PlacementWait | None:
        """Return what a request with ``tokens`` should wait for; None: it can be placed now.

        ``earlier`` is what it has waited for: the disk is asked once. ``rank`` is its lane's: it does not wait for
        requests of lower lanes, which may themselves have to wait.
        """
        if self.store is not None:
            self.store.poll()
        match = self._search.match(tokens)
        _, n_held = self._search.best(match)
        links = self._links(match, n_held)
        n_known = max([n_held, *[link.end for link in links]])
        leader, n_coming = self._search.computing_slot(match, rank)
        if leader is not None and n_coming - n_known >= _LEAST_AWAITED:
            leader.stops.add(n_coming)
            return SharedPrefixWait(leader, n_coming)
        missing = [link.segment for link in links if link.segment.blob is None]
        if not missing or isinstance(earlier, DiskReadWait) or n_known - n_held < _LEAST_AWAITED:
            return None
        assert self._offload is not None
        # By then computing would have been as fast.
        return self._offload.read(missing, self._clock() + self._prefill_seconds(n_known - n_held))

    def evict_ahead(self, tokens: TokenBuffer) -> bool:
        """Save some of what is in the slot that ``tokens`` would take; True where nothing is left to be saved.

        For as long as others are at work it is done in small parts, so that none of them waits for long.
        """
        source, n_shared = self._search.best(self._search.match(tokens))
        target = self._search.slot_to_take(source, n_shared)
        if target.n_resident - (n_shared if target is source else 0) < LEAST_SAVED:
            return True
        until = self._clock() + _LONGEST_MOVE
        while self._contents.save_piece(target):
            if self._clock() >= until:
                return False
        return True

    def load_ahead(self, tokens: TokenBuffer, hold: PlacementWait | None = None) -> bool:
        """Load some of what only the store has of a text into a free slot; True where ``take`` may load the rest.

        Like ``make_way``, for as long as others are at work: a long text takes as long to load as several steps.
        """
        if not self.memory.can_share or self._offload is None:
            return True  # what cannot be shared comes as a whole
        source, n_shared, loads = self._found(tokens, hold)
        if not loads or self._offload.seconds_to_load(loads[-1][0].end - n_shared) <= _LONGEST_MOVE:
            return True
        target = self._prepare(source, n_shared, tokens)
        until = self._clock() + _LONGEST_MOVE
        is_done = self._load_all(loads, target, until)
        self._use([link for link, _ in loads if link.end <= target.n_resident])
        self.release(target)
        return is_done

    def take(self, tokens: TokenBuffer, hold: PlacementWait | None = None, rank: int = 0) -> tuple[Slot, int]:
        """Occupy a free slot for ``tokens``; return it and how many of its tokens are in the cache already.

        At least one token is left to evaluate, since its logits are needed. ``hold`` is what the request waited for,
        ``rank`` that of its lane.
        """
        source, n_shared, loads = self._found(tokens, hold)
        self._use([link for link, _ in loads])
        target = self._prepare(source, n_shared, tokens)
        self._load_all(loads, target)
        target.n_tenants += 1
        target.rank = rank
        stops = self.memory.checkpoints(tokens.size, target.n_resident) if self._offload is not None else set()
        target.stops = {tokens.whole_images(stop) for stop in stops}
        self.n_hits += target.n_resident
        self._tree.insert(target, tokens.view)
        return target, target.n_resident

    def _found(
        self, tokens: TokenBuffer, hold: PlacementWait | None
    ) -> tuple[Slot | None, int, list[tuple[SegmentLink, Blob]]]:
        """Return the slot to share with, how much of it, and what to load behind that."""
        match = self._search.match(tokens)
        source, n_shared = self._search.best(match)
        read = hold.blobs if isinstance(hold, DiskReadWait) else {}
        loads = self._offload.loads(self._links(match, n_shared), read) if self._offload is not None else []
        return (None, 0, loads) if loads and not self.memory.can_share else (source, n_shared, loads)

    def _prepare(self, source: Slot | None, n_shared: int, tokens: TokenBuffer) -> Slot:
        """Occupy a slot that holds the shared part of ``tokens`` and nothing else."""
        target = self._search.slot_to_take(source, n_shared)
        if target.n_resident - (n_shared if target is source else 0) >= LEAST_SAVED:
            self._contents.save(target)
        contents = self._contents
        contents.leave_tree(target)
        n_kept = contents.share(source, target, n_shared) if source is not None else contents.cut(target, 0)
        target.is_free = False
        contents.n_idle = None
        target.resident = tokens
        target.n_resident = n_kept
        return target

    def _load_all(self, loads: list[tuple[SegmentLink, Blob]], target: Slot, until: float = float("inf")) -> bool:
        """Load one piece after the other; False where it is ``until`` before all are there."""
        for link, blob in loads:
            if not self._load(link, blob, target):
                break
            if self._clock() >= until:
                return link is loads[-1][0]
        return True

    def _load(self, link: SegmentLink, blob: Blob, target: Slot) -> bool:
        """Load a piece behind what a slot holds; idle texts make room for it."""
        while not self._contents.load(link, blob, target):
            if not self.evict_idle():
                return False
        return True

    def _links(self, match: PrefixMatch, start: int) -> list[SegmentLink]:
        return self._offload.links(match, start) if self._offload is not None else []

    def _use(self, links: list[SegmentLink]) -> None:
        """Count the use of pieces that are loaded: once for each request, in however many parts they come."""
        if self.store is not None:
            self.store.touch(links)

    def divergence(self, tokens: TokenBuffer) -> Divergence | None:
        """Return where ``tokens`` first differ from what is stored, None where they do not."""
        return divergence(self._search.match(tokens), tokens.view)

    def release(self, slot: Slot) -> None:
        """Let the slot be taken again; what it holds stays until the room is needed."""
        self._ticks += 1
        slot.is_free = True
        self._contents.n_idle = None
        slot.last_used = self._ticks
        self._contents.leave_tree(slot)
        self._contents.cut(slot, slot.resident.whole_images(slot.n_resident))
        if slot.n_resident:
            self._tree.insert(slot, slot.text)

    def clear(self, slot: Slot) -> None:
        """Drop everything a slot holds."""
        self._contents.cut(slot, 0)

    def save(self, slot: Slot) -> None:
        """Keep in the store what a slot holds, which is about to be dropped."""
        self._contents.save(slot)

    def resync(self, slot: Slot, most: int) -> int:
        """After a failed decode, believe the cache about what a slot holds; keep ``most`` tokens of it, or none."""
        held = self.memory.cells.last_position(slot.id) + 1
        size = slot.resident.whole_images(min(held, most))
        if slot.resident.shares_positions or not self.memory.can_cut(slot.id, size):
            size = 0
        if held > size or not self.memory.can_share:
            size = self.memory.cut(slot.id, size)
        slot.n_resident = size
        return size

    # -- idle texts -----------------------------------------------------------------------------------------------

    def evict_idle(self) -> bool:
        """Make room: the free slot used longest ago gives what it holds to the store; False where there is none."""
        slot = self._search.oldest_idle()
        if slot is None:
            return False
        self._contents.save(slot)
        self._contents.drop(slot)
        return True

    def forget_idle(self) -> None:
        """Drop what free slots hold and all that is stored."""
        for slot in self._slots:
            if slot.is_free and slot.n_resident:
                self._contents.drop(slot)
        if self.store is not None:
            self.store.poll()
            self.store.clear()

    def after_step(self) -> None:
        """Keep what a step left that only now can be kept."""
        if not self._is_at_work:
            self._is_at_work = True
            if self.store is not None:
                self.store.defer_writes(True)
        if not self.memory.can_share:
            self._save_states()

    def charge_idle(self, idle_cost: float) -> None:
        """Steps took ``idle_cost`` seconds longer for idle texts: where that adds up, they leave, the oldest first.

        At most one piece is saved at a time, so that nobody waits for long.
        """
        if not self.n_idle:
            self._idle_cost.reset()
            return
        self._idle_cost.add(idle_cost)
        while (slot := self._search.oldest_idle()) is not None:
            price = self._price(slot)
            if not self._idle_cost.covers(price) or self._contents.save_piece(slot):
                return
            self._contents.drop(slot)
            self._idle_cost.subtract(price)
        self._idle_cost.reset()

    def _save_states(self) -> None:
        """Keep the running states of prompts that have come to where theirs are kept."""
        for slot in self._slots:
            if not slot.is_free and slot.n_resident in slot.stops:
                slot.stops.discard(slot.n_resident)
                self._contents.save_piece(slot)

    def write_back(self) -> bool:
        """Nobody needs the device: copy a piece of what only it holds; return whether something was done."""
        if self.store is None:
            return False
        self._is_at_work = False
        self.store.defer_writes(False)
        self.store.poll()
        for slot in sorted(self._slots, key=lambda one: -one.last_used):
            if slot.is_free and slot.n_resident and self._contents.save_piece(slot):
                return True
        return self.store.write_behind()

    @property
    def is_writing(self) -> bool:
        """True while the disk has something to do or to say."""
        return self.store is not None and self.store.is_writing

    def wait_for_reads(self, seconds: float) -> None:
        """Wait until the disk has read something, at most so long."""
        if self.store is not None:
            self.store.wait(seconds)

    def _price(self, slot: Slot) -> float:
        """Return the seconds it takes to save what a slot holds, and to get it back."""
        if self._offload is None:
            return self._prefill_seconds(slot.n_resident)
        return self._offload.seconds_to_move(slot.n_resident)

    def close(self) -> None:
        """End what the store does on threads of its own."""
        if self.store is not None:
            self.store.close()

    def check(self) -> None:
        """Raise AssertionError where tree, slots, store and the cells contradict each other; for tests."""
        self._tree.check()
        n_idle = sum(slot.n_resident for slot in self._slots if slot.is_free)
        assert self.n_idle == n_idle, "the count of idle tokens is stale"
        for slot in self._slots:
            text = slot.resident
            # Behind an image the next position is not the one after the last where rows share positions.
            if not (slot.n_resident and text.shares_positions and is_image(int(slot.text[-1]))):
                assert self.memory.cells.last_position(slot.id) + 1 == text.position(slot.n_resident), (
                    f"slot {slot.id} holds something else"
                )
            assert slot.n_resident <= slot.resident.size
            if slot.node is None:
                assert slot.is_free
                assert not slot.n_resident
                continue
            assert slot.end <= slot.resident.size
            assert slot.n_resident <= slot.end or not slot.is_free
            match = self._tree.match(slot.resident.view[: slot.end])
            assert match.size == slot.end
            assert match.path[-1] is slot.node, "the tree has another text for a slot"
        if self.store is not None:
            self.store.check()
