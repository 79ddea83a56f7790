"""Requests that wait for a slot: a queue for each lane, and whose turn it is. Pure: times come with the requests."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import islice

from core.scheduler.sequence import Sequence
from core.values.lane import Lane

# For so many seconds the lanes above may go first. They count from when a lane was last served, not from each arrival:
# otherwise a queue that has grown old would, all of it, go before whoever comes now. A person who chats waits five
# seconds for a turn at most; a batch job moves by a request each half minute even where nobody ever pauses.
MAX_WAIT_SECONDS = {Lane.FAST: 0.0, Lane.STANDARD: 5.0, Lane.BATCH: 30.0}
ABOVE_BATCH = (Lane.FAST, Lane.STANDARD)


class WaitingQueue:
    """The ``size`` waiting requests. Every method takes time in proportion to the lanes, however many wait."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self.size = 0
        # Ordered dictionaries: their first entry is found, and any is removed, without a look at the others.
        self._queues: dict[Lane, OrderedDict[str, Sequence]] = {lane: OrderedDict() for lane in Lane}
        self._served_at = dict.fromkeys(Lane, float("-inf"))

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Sequence]:
        for queue in self._queues.values():
            yield from queue.values()

    def count(self, lane: Lane) -> int:
        """Return how many wait in a lane."""
        return len(self._queues[lane])

    def append(self, sequence: Sequence) -> None:
        """A request arrives behind those of its lane."""
        self._queues[sequence.lane][sequence.id] = sequence
        self.size += 1

    def prepend(self, sequence: Sequence, now: float) -> None:
        """A request that has run comes back before those of its lane; it waits from ``now`` on."""
        queue = self._queues[sequence.lane]
        queue[sequence.id] = sequence
        self.size += 1
        queue.move_to_end(sequence.id, last=False)
        sequence.waiting_since = now

    def next(self, lanes: Iterable[Lane] = tuple(Lane), depth: int = 1) -> list[Sequence]:
        """Return the first ``depth`` requests of each of ``lanes``, whose turn it is first."""
        heads = [
            (max(head.waiting_since, self._served_at[lane]) + MAX_WAIT_SECONDS[lane], lane.rank, place, head)
            for lane in lanes
            for place, head in enumerate(islice(self._queues[lane].values(), depth))
        ]
        heads.sort(key=lambda head: head[:3])
        return [head for *_, head in heads]

    def remove(self, sequence: Sequence) -> None:
        """A request waits no more."""
        del self._queues[sequence.lane][sequence.id]
        self.size -= 1

    def serve(self, sequence: Sequence, now: float) -> None:
        """A request gets its slot: its lane was served."""
        self.remove(sequence)
        self._served_at[sequence.lane] = now

    def clear(self) -> None:
        """Nobody waits any more."""
        for queue in self._queues.values():
            queue.clear()
        self.size = 0
