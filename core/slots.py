"""Sequence ids of the KV cache and the tokens that each of them holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from core.token_buffer import TokenBuffer

# A free slot is cut back to the common prefix only if that keeps at least this share of what it holds;
# otherwise the prefix is copied, and the longer conversation stays for its next turn.
_KEEP_SHARE = 0.5


class CacheMemory(Protocol):
    """What slots need of a context."""

    def remove(self, sequence: int, start: int, end: int = -1) -> bool:
        """Drop positions [start, end)."""

    def copy(self, source: int, target: int, end: int, start: int = 0) -> None:
        """Share positions [start, end)."""


@dataclass(eq=False)
class Slot:
    """One sequence id. ``resident`` are the tokens whose keys and values are in the cache."""

    id: int
    resident: TokenBuffer = field(default_factory=lambda: TokenBuffer(np.empty(0, np.int32)))
    n_resident: int = 0
    is_free: bool = True
    last_used: int = 0


class SlotTable:
    """Gives each running request a slot, preferring one that already holds the beginning of its prompt."""

    def __init__(self, memory: CacheMemory, n_slots: int, *, can_cut: bool = True) -> None:
        """``can_cut`` False is for models with a running state: what they hold can be extended but not shortened."""
        self._memory = memory
        self._slots = tuple(Slot(index) for index in range(n_slots))
        self.can_cut = can_cut
        self._clock = 0

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def has_free(self) -> bool:
        """True where a request can be placed."""
        return any(slot.is_free for slot in self._slots)

    @property
    def n_resident(self) -> int:
        """Tokens held by all slots; shared cells count for each."""
        return sum(slot.n_resident for slot in self._slots)

    def take(self, tokens: TokenBuffer) -> tuple[Slot, int]:
        """Occupy a free slot for ``tokens``; return it and how many of its tokens are in the cache already.

        At least one token is left to evaluate, since its logits are needed.
        """
        wanted = tokens.view[:-1]
        source, n_shared = self._longest_prefix(wanted)
        target = self._target(source, n_shared)
        n_kept = self._share(source, target, n_shared) if source is not None else self._cut(target, 0)
        target.is_free = False
        target.resident = tokens
        target.n_resident = n_kept
        return target, n_kept

    def release(self, slot: Slot) -> None:
        """Let the slot be taken again; what it holds stays until the room is needed."""
        self._clock += 1
        slot.is_free = True
        slot.last_used = self._clock

    def clear(self, slot: Slot) -> None:
        """Drop everything a slot holds."""
        self._cut(slot, 0)

    def drop_idle(self) -> bool:
        """Make room by dropping what the free slot that was used longest ago holds; False where there is none."""
        idle = [slot for slot in self._slots if slot.is_free and slot.n_resident]
        if not idle:
            return False
        self._cut(min(idle, key=lambda slot: slot.last_used), 0)
        return True

    def _longest_prefix(self, wanted: npt.NDArray[np.int32]) -> tuple[Slot | None, int]:
        best, n_best = None, 0
        for slot in self._slots:
            size = min(slot.resident.common_prefix(wanted), slot.n_resident)
            if not self.can_cut and (size < slot.n_resident or not slot.is_free):
                continue
            if size > n_best or (size == n_best and size and best is not None and slot.is_free and not best.is_free):
                best, n_best = slot, size
        return best, n_best

    def _target(self, source: Slot | None, n_shared: int) -> Slot:
        free = [slot for slot in self._slots if slot.is_free]
        oldest = min(free, key=lambda slot: (slot.n_resident > 0, slot.last_used))
        if source is None or not source.is_free:
            return oldest
        is_reused = n_shared >= _KEEP_SHARE * source.n_resident or oldest.n_resident > 0 or oldest is source
        return source if is_reused or not self.can_cut else oldest

    def _share(self, source: Slot, target: Slot, n_shared: int) -> int:
        if target is source:
            return self._cut(target, n_shared)
        self._cut(target, 0)
        self._memory.copy(source.id, target.id, n_shared)
        return n_shared

    def _cut(self, slot: Slot, size: int) -> int:
        """Shorten what a slot holds to ``size`` tokens; return what is left."""
        if size < slot.n_resident and not self._memory.remove(slot.id, size):
            self._memory.remove(slot.id, 0)
            size = 0
        slot.n_resident = min(size, slot.n_resident)
        return slot.n_resident
