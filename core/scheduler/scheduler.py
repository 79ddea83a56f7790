"""The requests of an engine: which wait, which run, and in which slots."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Generic, Protocol, TypeVar

from core.kv_cache.slot_table import SlotTable
from core.scheduler.sequence import Sequence
from core.values.messages import LaneCount
from core.values.request import Lane

# Seconds for which higher lanes may go first. They count from when a lane was last served, not from each arrival:
# otherwise the whole of an old queue would go before new requests of higher lanes. So a chat waits at most five seconds
# for its turn, and a batch job gets one request done each half minute even under steady load.
MAX_WAIT_SECONDS = {Lane.FAST: 0.0, Lane.STANDARD: 5.0, Lane.BATCH: 30.0}
ABOVE_BATCH = (Lane.FAST, Lane.STANDARD)


class Waiting(Protocol):
    """A request that has waited for its turn since ``waiting_since`` (seconds)."""

    id: str
    lane: Lane
    waiting_since: float


W = TypeVar("W", bound=Waiting)


class WaitingQueue(Generic[W]):
    """The ``size`` waiting requests. The time of each method depends on the number of lanes, not of requests."""

    def __init__(self) -> None:
        self.size = 0
        # OrderedDict finds its first entry and removes any entry in constant time.
        self._queues: dict[Lane, OrderedDict[str, W]] = {lane: OrderedDict() for lane in Lane}
        self._served_at = dict.fromkeys(Lane, float("-inf"))

    def __contains__(self, request: W) -> bool:
        return request.id in self._queues[request.lane]

    def count(self, lane: Lane) -> int:
        """Return how many wait in a lane."""
        return len(self._queues[lane])

    def append(self, request: W) -> None:
        """Add a request behind those of its lane."""
        self._queues[request.lane][request.id] = request
        self.size += 1

    def prepend(self, request: W, now: float) -> None:
        """Put a request that has run before the others of its lane; it waits from ``now`` on."""
        queue = self._queues[request.lane]
        queue[request.id] = request
        self.size += 1
        queue.move_to_end(request.id, last=False)
        request.waiting_since = now

    def next(self, lanes: Iterable[Lane] = tuple(Lane), depth: int = 1) -> list[W]:
        """Return the first ``depth`` requests of each of ``lanes``, in the order in which it is their turn."""
        heads = [
            (self.due_at(head), lane.rank, place, head)
            for lane in lanes
            for place, head in enumerate(islice(self._queues[lane].values(), depth))
        ]
        heads.sort(key=lambda head: head[:3])
        return [head for *_, head in heads]

    def due_at(self, request: W) -> float:
        """Return the time until which higher lanes may go before the first request of a lane."""
        return max(request.waiting_since, self._served_at[request.lane]) + MAX_WAIT_SECONDS[request.lane]

    def remove(self, request: W) -> None:
        """Take a request out of the queue."""
        del self._queues[request.lane][request.id]
        self.size -= 1

    def serve(self, request: W, now: float) -> None:
        """Remove a request that gets a slot, and record that its lane was served."""
        self.remove(request)
        self._served_at[request.lane] = now


# A request that was preempted, or got a slot only after a long wait, keeps its next slot for at least this many
# seconds, and each further slot for twice as long. So it ends after a few turns, and no request holds a slot for ever.
_FIRST_TERM = 2.0
# Requests of each lane that are searched for one that does not wait for a shared prefix or the disk.
_LOOK_PAST = 16


class Scheduler:
    """Waiting requests by lane, and running ones, each with a slot. Ids are unique.

    While memory is short, no new request joins, because it would push others out. That lasts until a running request
    ends.
    """

    def __init__(self, slots: SlotTable) -> None:
        self.slots = slots
        self.waiting: WaitingQueue[Sequence] = WaitingQueue()
        self.running: list[Sequence] = []
        self._by_id: dict[str, Sequence] = {}
        self._is_short_of_memory = False
        # The scales of the LoRA adapters, the same for all running requests, and the function that sets them.
        self._lora: tuple[float, ...] = ()
        self.change_lora: Callable[[tuple[float, ...]], None] = lambda scales: None

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, request_id: object) -> bool:
        return request_id in self._by_id

    def __iter__(self) -> Iterator[Sequence]:
        return iter(self._by_id.values())

    def __getitem__(self, request_id: str) -> Sequence:
        return self._by_id[request_id]

    def add(self, sequence: Sequence) -> None:
        """Add a new request."""
        self._by_id[sequence.id] = sequence
        self.waiting.append(sequence)

    @property
    def is_full(self) -> bool:
        """True if no request can join."""
        return not any(slot.is_free for slot in self.slots.slots) or (self._is_short_of_memory and bool(self.running))

    def admit(self, now: float) -> Iterator[Sequence]:
        """Yield each request that gets a slot: free ones first, then higher lanes take those of batch requests."""
        while not self.is_full and (sequence := self._place_first(tuple(Lane), now)) is not None:
            yield sequence
        while (victim := self._preemption_victim(now)) is not None:
            newcomer = self._preempt(victim, now)
            if newcomer is not None:
                yield newcomer

    def _preemption_victim(self, now: float) -> Sequence | None:
        """Return the youngest batch request that kept its slot for its term, if a higher lane waits; else None."""
        if not self._has_higher_waiting or not self.is_full:
            return None
        movable = [s for s in self.running if s.lane is Lane.BATCH and now - s.placed_at >= s.term]
        if not movable or self._first(ABOVE_BATCH) is None:
            return None
        return max(movable, key=lambda sequence: sequence.order)

    def _preempt(self, sequence: Sequence, now: float) -> Sequence | None:
        """Put a running batch request back; return the request of a higher lane that takes its slot.

        None if the slot must be saved first. Until then the batch request can go on in it.
        """
        sequence.term = max(2.0 * sequence.term, _FIRST_TERM)
        if self._is_short_of_memory:
            self._empty(sequence)
        self._put_back(sequence, now)
        return self._place_first(ABOVE_BATCH, now)

    def remove(self, sequence: Sequence) -> None:
        """Remove a request that ends."""
        del self._by_id[sequence.id]
        if sequence in self.waiting:
            self.waiting.remove(sequence)
            return
        self._take_slot(sequence)
        self._is_short_of_memory = False

    def preempt_for_memory(self, sequence: Sequence, now: float) -> None:
        """Free a running request's cells; it keeps its tokens and goes on after others have ended."""
        self._empty(sequence)
        self._put_back(sequence, now)
        self._is_short_of_memory = True

    def use_lora(self, scales: tuple[float, ...]) -> None:
        """Compute with these scales from now on, and drop all cached texts, which were computed with others."""
        self.change_lora(scales)
        self.slots.forget_idle()
        self._lora = scales

    def lane_counts(self) -> tuple[LaneCount, ...]:
        """Return how many run and wait in each lane."""
        running = [sequence.lane for sequence in self.running]
        return tuple(LaneCount(lane, running.count(lane), self.waiting.count(lane)) for lane in Lane)

    @property
    def _has_higher_waiting(self) -> bool:
        return any(self.waiting.count(lane) for lane in ABOVE_BATCH)

    def _first(self, lanes: tuple[Lane, ...]) -> Sequence | None:
        """Return the next request that waits for nothing but a slot.

        A request with other LoRA scales, and all after it, wait until the running requests have ended.
        """
        for one in self.waiting.next(lanes, _LOOK_PAST):
            if self.running and one.lora != self._lora:
                return None
            if not self._is_held(one):
                return one
        return None

    def _is_held(self, sequence: Sequence) -> bool:
        """Return whether a request should wait for a shared prefix or the disk; others may overtake it."""
        if sequence.is_scoring:
            return False
        if sequence.hold is not None and not sequence.hold.is_over:
            return True
        hold = self.slots.wait_for(sequence.tokens, sequence.hold, sequence.lane.rank)
        if hold is None:
            return False  # keep the earlier wait, which has the blobs that the disk has read
        sequence.hold = hold
        return True

    def _place_first(self, lanes: tuple[Lane, ...], now: float) -> Sequence | None:
        sequence = self._first(lanes)
        if sequence is None or (self.running and not self._is_prepared(sequence)):
            return None
        if sequence.lora != self._lora:
            self.use_lora(sequence.lora)
        self.waiting.serve(sequence, now)
        if not sequence.was_started:
            sequence.divergence = self.slots.divergence(sequence.tokens)
        sequence.slot, sequence.n_past = self.slots.take(
            sequence.tokens, sequence.hold, sequence.lane.rank, sequence.request.slot
        )
        if sequence.is_scoring and sequence.n_past >= sequence.n_scored:
            # Evaluate again: the cache has no logits.
            sequence.n_past = self.slots.resync(sequence.slot, sequence.n_scored - 1)
        sequence.hold = None
        sequence.placed_at = now
        if sequence.lane is Lane.BATCH and self._has_higher_waiting:
            sequence.term = max(sequence.term, _FIRST_TERM)
        self.running.append(sequence)
        return sequence

    def _is_prepared(self, sequence: Sequence) -> bool:
        """Save or load a part of what a placement needs; return whether the request can be placed now."""
        tokens, wanted = sequence.tokens, sequence.request.slot
        return self.slots.evict_ahead(tokens, wanted) and self.slots.load_ahead(tokens, sequence.hold, wanted)

    def _empty(self, sequence: Sequence) -> None:
        """Free a request's cells; their contents are saved if there is room."""
        self.slots.save(sequence.slot)
        self.slots.clear(sequence.slot)

    def _put_back(self, sequence: Sequence, now: float) -> None:
        self._take_slot(sequence)
        sequence.n_past = sequence.n_replay = 0
        self.waiting.prepend(sequence, now)

    def _take_slot(self, sequence: Sequence) -> None:
        self.running.remove(sequence)
        self.slots.release(sequence.slot)
        del sequence.slot
