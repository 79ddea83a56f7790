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
        """Give a slot to whoever waits longest; None where nobody waits or nobody may join."""
        if not self.waiting or not self.slots.has_free or (self._is_short_of_memory and self.running):
            return None
        sequence = self.waiting.popleft()
        sequence.slot, sequence.n_past = self.slots.take(sequence.tokens)
        self.running.append(sequence)
        return sequence

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
