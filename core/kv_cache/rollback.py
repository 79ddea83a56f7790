"""Takes back the tail of a sequence that was evaluated in vain: the drafted tokens that the target did not choose.

Keys and values are kept for each position and are simply dropped. A running state (Mamba, RWKV, the recurrent layers
of hybrids) is one value that each row overwrites. llama.cpp can keep the states after the latest rows
(``n_rs_seq``, for some architectures): then the cache goes back by itself, as far as they reach. Else the state is
saved before drafts are verified and loaded again when one is rejected; the rows in between are evaluated once more,
beside the next step's own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

import numpy as np
import numpy.typing as npt

from core.cost.cost_model import CostModel
from core.values.engine_options import MAX_DRAFT_DEPTH

# A sequence that has more rows to evaluate again than this gets no drafts before that is done.
MOST_REPLAYED = 16
# What a state costs is known from the latest ones. One counts as at most so many times what they took, and the first as
# at most this share of a step: the machine may have slept meanwhile, and what seems too dear is never measured again.
_SECONDS_WEIGHT, _OUTLIER, _MOST_AT_FIRST = 0.1, 3.0, 0.25


class RollbackMemory(Protocol):
    """What rollback needs of a context."""

    n_snapshots: int

    def remove(self, sequence: int, start: int, end: int = -1) -> bool:
        """Drop positions [start, end); False where the memory cannot."""

    def first_position(self, sequence: int) -> int:
        """Return the lowest position that all layers hold, -1 where there is none."""

    def save_state(self, sequence: int) -> npt.NDArray[np.uint8] | None:
        """Keep a running state; None where it cannot be."""

    def load_state(self, sequence: int, state: npt.NDArray[np.uint8]) -> bool:
        """Restore a running state; False where it cannot be."""


class Rollback(Protocol):
    """One way of going back. ``reach`` is how many drafted tokens it can take back at most.

    ``is_shared`` is set while several sequences of a model with a running state decode: rows that only one of them has
    are then another pass over the weights (``llama_batch_allocr::split_equal``).
    """

    reach: int
    is_shared: bool

    def mark(self, slot: int, position: int) -> None:
        """Drafts will be verified in ``slot``, which holds ``position`` tokens."""

    def keep(self, slot: int, size: int) -> int:
        """Take back what a slot holds behind its first ``size`` tokens; return how many it holds then.

        Fewer than ``size`` must be evaluated again from there; 0 means that all is lost and the slot is empty.
        """

    def loss(self, n_rows: int) -> float:
        """Return the seconds that a rejection costs after which ``n_rows`` have to be evaluated again."""

    @property
    def mark_seconds(self) -> float:
        """Seconds of a ``mark``."""

    def take_seconds(self) -> float:
        """Return the seconds spent on marking and going back since this was last asked."""


class TrimRollback:
    """The cache goes back by itself: keys and values of any position, or snapshots of a running state."""

    mark_seconds = 0.0
    is_shared = False

    def __init__(self, memory: RollbackMemory, reach: int = MAX_DRAFT_DEPTH) -> None:
        """Cut in ``memory``, which can go back by ``reach`` tokens."""
        self.reach = reach
        self._memory = memory

    def mark(self, slot: int, position: int) -> None:
        """Do nothing: the cache remembers."""

    def keep(self, slot: int, size: int) -> int:
        """Drop the positions from ``size`` on; where that is refused, everything."""
        if self._memory.remove(slot, size):
            return size
        self._memory.remove(slot, 0)
        return 0

    def loss(self, n_rows: int) -> float:
        """Nothing is evaluated again."""
        return 0.0

    def take_seconds(self) -> float:
        """Going back takes no time worth counting."""
        return 0.0


class WindowRollback(TrimRollback):
    """The cache goes back by itself as far as the layers with a sliding window still hold all that is then in sight.

    They do behind the rows of one ubatch. Rows of a later one may have taken the place of what comes back into sight.
    """

    def __init__(self, memory: RollbackMemory, window: int) -> None:
        """Cut in ``memory``, whose layers attend to ``window`` tokens."""
        super().__init__(memory)
        self._window = window

    def keep(self, slot: int, size: int) -> int:
        """Drop the positions from ``size`` on; everything where too little is left in sight."""
        if is_in_sight(self._memory.first_position(slot), size, self._window):
            return super().keep(slot, size)
        return super().keep(slot, 0)


def is_in_sight(first: int, size: int, window: int) -> bool:
    """Return whether a sequence cut to ``size`` tokens can go on where all layers hold the positions from ``first``."""
    return first <= max(0, size - window)


class CheckpointRollback:
    """The state before the drafts is saved, and loaded again on a rejection; the accepted rows are to be replayed."""

    reach = MAX_DRAFT_DEPTH

    def __init__(self, memory: RollbackMemory, cost: CostModel, clock: Callable[[], float] = time.perf_counter) -> None:
        """Save and load in ``memory``; ``cost`` says what replayed rows add to a step."""
        self._memory = memory
        self._cost = cost
        self._clock = clock
        self._marks: dict[int, tuple[int, npt.NDArray[np.uint8] | None]] = {}
        self._seconds = 0.0
        self._save_seconds = self._load_seconds = 0.0
        self.is_shared = False

    @property
    def mark_seconds(self) -> float:
        """Seconds of saving a state, lately."""
        return self._save_seconds

    def mark(self, slot: int, position: int) -> None:
        """Save the state of a slot."""
        began = self._clock()
        self._marks[slot] = position, self._memory.save_state(slot)
        self._save_seconds = self._spent(began, self._save_seconds)

    def keep(self, slot: int, size: int) -> int:
        """Load the state that was saved, and drop the keys and values behind it; where that fails, everything."""
        began = self._clock()
        position, state = self._marks.get(slot, (0, None))
        is_back = state is not None and position <= size and self._memory.load_state(slot, state)
        if not (is_back and self._memory.remove(slot, position)):
            self._memory.remove(slot, 0)
            position = 0
        self._load_seconds = self._spent(began, self._load_seconds)
        return position

    def loss(self, n_rows: int) -> float:
        """Return the seconds of loading a state, and of ``n_rows`` more in the next step."""
        again = self._cost.time(n_rows) if self.is_shared else self._cost.extra(1, n_rows)
        return self._load_seconds + again

    def take_seconds(self) -> float:
        """Return the seconds of saving and loading, once."""
        taken, self._seconds = self._seconds, 0.0
        return taken

    def _spent(self, began: float, lately: float) -> float:
        seconds = self._clock() - began
        self._seconds += seconds
        if not lately:
            return min(seconds, _MOST_AT_FIRST * self._cost.time(1))
        return lately + _SECONDS_WEIGHT * (min(seconds, _OUTLIER * lately) - lately)


def choose_rollback(memory: RollbackMemory, cost: CostModel, *, is_recurrent: bool, window: int = 0) -> Rollback:
    """Return the way back that a memory allows; ``window`` is what some layers are cut to, 0 for none."""
    if not is_recurrent:
        return WindowRollback(memory, window) if window else TrimRollback(memory)
    return (
        TrimRollback(memory, min(memory.n_snapshots, MAX_DRAFT_DEPTH))
        if memory.n_snapshots
        else CheckpointRollback(memory, cost)
    )
