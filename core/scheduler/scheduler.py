"""The requests that an engine has: who waits, who runs, and in which slot."""

from __future__ import annotations

from core.kv_cache.slot_table import SlotTable
from core.scheduler.sequence import Sequence
from core.scheduler.waiting_queue import ABOVE_BATCH, WaitingQueue
from core.values.lane import Lane
from core.values.snapshot import LaneCount

# A request that had to give up its slot, or got one only because it had waited for long, keeps that for at least so
# many seconds, and each further one for twice as long: so it ends after a few turns, slots do not change hands for
# nothing, and nobody holds one for ever.
_FIRST_TERM = 2.0
# So many requests of each lane are looked at for one that need not wait for what others compute, or the disk reads.
_LOOK_PAST = 16


class Scheduler:
    """Waiting requests by lane, and running ones, each with a slot. Ids are unique.

    While memory is short nobody new joins: it would push others out. That ends when a running request does.
    """

    def __init__(self, slots: SlotTable) -> None:
        """Begin with nobody."""
        self.slots = slots
        self.waiting = WaitingQueue()
        self.running: list[Sequence] = []
        self._by_id: dict[str, Sequence] = {}
        self._is_short_of_memory = False

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, request_id: object) -> bool:
        return request_id in self._by_id

    def __getitem__(self, request_id: str) -> Sequence:
        return self._by_id[request_id]

    def add(self, sequence: Sequence) -> None:
        """A request arrives."""
        self._by_id[sequence.id] = sequence
        self.waiting.append(sequence)

    @property
    def is_full(self) -> bool:
        """True where nobody can join."""
        return not self.slots.has_free or (self._is_short_of_memory and bool(self.running))

    def place_next(self, now: float) -> Sequence | None:
        """Give a slot to whose turn it is and who may be placed; None where nobody is, or nobody may join."""
        if not self.waiting.size or self.is_full:
            return None
        return self._place_first(tuple(Lane), now)

    def preemption_victim(self, now: float) -> Sequence | None:
        """Return the batch request that should make way for one of a higher lane, None where there is none.

        It is the youngest of those that have had their term.
        """
        if not self._has_higher_waiting or not self.is_full:
            return None
        movable = [s for s in self.running if s.lane is Lane.BATCH and now - s.placed_at >= s.term]
        if not movable or self._first(ABOVE_BATCH) is None:
            return None
        return max(movable, key=lambda sequence: sequence.order)

    def preempt(self, sequence: Sequence, now: float) -> Sequence | None:
        """Let a running batch request wait; return the request of a higher lane that runs in its place.

        None where its slot has to be emptied first. Until then it can go on from there.
        """
        sequence.term = max(2.0 * sequence.term, _FIRST_TERM)
        if self._is_short_of_memory:
            self._empty(sequence)
        self._put_back(sequence, now)
        return self._place_first(ABOVE_BATCH, now)

    def remove(self, sequence: Sequence) -> None:
        """A request ends."""
        del self._by_id[sequence.id]
        if sequence.slot is None:
            self.waiting.remove(sequence)
            return
        self.slots.release(sequence.slot)
        self.running.remove(sequence)
        sequence.slot = None
        self._is_short_of_memory = False

    def preempt_for_memory(self, sequence: Sequence, now: float) -> None:
        """Take a running request's cells; it keeps its tokens and goes on from them when others have ended."""
        self._empty(sequence)
        self._put_back(sequence, now)
        self._is_short_of_memory = True

    def clear(self) -> list[Sequence]:
        """Return everybody, who are gone from here."""
        everybody = list(self._by_id.values())
        self._by_id.clear()
        self.waiting.clear()
        self.running.clear()
        return everybody

    def lane_counts(self) -> tuple[LaneCount, ...]:
        """Return how many run and wait in each lane."""
        running = [sequence.lane for sequence in self.running]
        return tuple(LaneCount(lane, running.count(lane), self.waiting.count(lane)) for lane in Lane)

    @property
    def _has_higher_waiting(self) -> bool:
        return any(self.waiting.count(lane) for lane in ABOVE_BATCH)

    def _first(self, lanes: tuple[Lane, ...]) -> Sequence | None:
        """Return whose turn it is among those who need not wait for anything but a slot."""
        return next((one for one in self.waiting.next(lanes, _LOOK_PAST) if not self._is_held(one)), None)

    def _is_held(self, sequence: Sequence) -> bool:
        """Return whether a request should wait for something that saves it computing; others may overtake it."""
        if sequence.hold is not None and not sequence.hold.is_over:
            return True
        hold = self.slots.wait_for(sequence.tokens, sequence.hold, sequence.lane.rank)
        if hold is None:
            return False  # what it has waited for still says what the disk has read
        sequence.hold = hold
        return True

    def _place_first(self, lanes: tuple[Lane, ...], now: float) -> Sequence | None:
        sequence = self._first(lanes)
        if sequence is None or (self.running and not self._is_prepared(sequence)):
            return None
        self.waiting.serve(sequence, now)
        if not sequence.was_started:
            sequence.divergence = self.slots.divergence(sequence.tokens)
        sequence.slot, sequence.n_past = self.slots.take(sequence.tokens, sequence.hold, sequence.lane.rank)
        sequence.hold = None
        sequence.placed_at = now
        if sequence.lane is Lane.BATCH and self._has_higher_waiting:
            sequence.term = max(sequence.term, _FIRST_TERM)
        self.running.append(sequence)
        return sequence

    def _is_prepared(self, sequence: Sequence) -> bool:
        """Move a part of what has to leave a slot or come into it; return whether the request can be placed now."""
        return self.slots.evict_ahead(sequence.tokens) and self.slots.load_ahead(sequence.tokens, sequence.hold)

    def _empty(self, sequence: Sequence) -> None:
        """Free a request's cells; what was in them is kept where there is room."""
        assert sequence.slot is not None
        self.slots.save(sequence.slot)
        self.slots.clear(sequence.slot)

    def _put_back(self, sequence: Sequence, now: float) -> None:
        assert sequence.slot is not None
        self.slots.release(sequence.slot)
        sequence.slot = None
        sequence.n_past = sequence.n_replay = 0
        self.running.remove(sequence)
        self.waiting.prepend(sequence, now)
