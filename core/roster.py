"""The requests that an engine has: who waits, who runs, and in which slot."""

from __future__ import annotations

from collections import deque

from core.sequence import Sequence
from core.slots import SlotTable


class Roster:
    """Waiting requests in the order of arrival, and running ones, each with a slot. Ids are unique.

    While memory is short nobody new joins: it would push others out. That ends when a running request does.
    """

    def __init__(self, slots: SlotTable) -> None:
        """Begin with nobody."""
        self.slots = slots
        self.waiting: deque[Sequence] = deque()
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

    def place_next(self) -> Sequence | None:
        """Give a slot to whoever waits longest and may be placed; None where nobody can be, or nobody may join."""
        if not self.waiting or not self.slots.has_free or (self._is_short_of_memory and self.running):
            return None
        sequence = next((one for one in self.waiting if not self._is_held(one)), None)
        if sequence is None:
            return None
        if self.running and not self.slots.make_way(sequence.tokens):
            return None
        self.waiting.remove(sequence)
        if not sequence.was_started:
            sequence.divergence = self.slots.divergence(sequence.tokens)
        sequence.slot, sequence.n_past = self.slots.take(sequence.tokens, sequence.hold)
        sequence.hold = None
        self.running.append(sequence)
        return sequence

    def _is_held(self, sequence: Sequence) -> bool:
        """Return whether a request should wait for something that saves it computing; others may overtake it."""
        if sequence.hold is not None and not sequence.hold.is_over:
            return True
        hold = self.slots.hold(sequence.tokens, sequence.hold)
        if hold is None:
            return False  # what it has waited for still says what the disk has read
        sequence.hold = hold
        return True

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

    def push_back(self, sequence: Sequence) -> None:
        """Take a running request's cells; it keeps its tokens and goes on from them when others have ended."""
        assert sequence.slot is not None
        self.slots.save(sequence.slot)
        self.slots.clear(sequence.slot)
        self.slots.release(sequence.slot)
        sequence.slot = None
        sequence.n_past = sequence.n_replay = 0
        self.running.remove(sequence)
        self.waiting.appendleft(sequence)
        self._is_short_of_memory = True

    def forget_all(self) -> list[Sequence]:
        """Return everybody, who are gone from here."""
        everybody = list(self._by_id.values())
        self._by_id.clear()
        self.waiting.clear()
        self.running.clear()
        return everybody
