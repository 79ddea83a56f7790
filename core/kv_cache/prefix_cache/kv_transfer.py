"""Moves keys and values between the cells of a context and host memory, and knows how long that takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from core.kv_cache.prefix_cache.segment import Blob

# Until it was measured: seconds for each token.
_FIRST_ESTIMATE = 1e-5
_WEIGHT = 0.2


class TransferMemory(Protocol):
    """What moving needs of a context."""

    def remove(self, sequence: int, start: int, end: int = -1) -> bool:
        """Drop positions [start, end)."""

    def copy(self, source: int, target: int, end: int, start: int = 0) -> None:
        """Share positions [start, end)."""

    def read_cells(self, sequence: int) -> Blob | None:
        """Return all that a sequence holds."""

    def write_cells(self, sequence: int, blob: Blob) -> bool:
        """Give an empty sequence what ``read_cells`` returned."""


class KvTransfer:
    """Saves and loads pieces of sequences.

    llama.cpp saves and loads whole sequences only. So a piece is first shared with a spare sequence, which costs no
    copy, and saved as that one; and loaded into that one, and then shared.
    """

    def __init__(self, memory: TransferMemory, spare: int, clock: Callable[[], float] = time.perf_counter) -> None:
        """``spare`` is a sequence id of ``memory`` that nobody else uses."""
        self._memory = memory
        self._spare = spare
        self._clock = clock
        self.save_seconds = self.load_seconds = _FIRST_ESTIMATE

    def save(self, slot: int, start: int, end: int) -> Blob | None:
        """Return positions [start, end) of a sequence; None where llama.cpp cannot."""
        began = self._clock()
        self._memory.copy(slot, self._spare, end, start)
        blob = self._memory.read_cells(self._spare)
        self._memory.remove(self._spare, 0)
        self.save_seconds += _WEIGHT * ((self._clock() - began) / (end - start) - self.save_seconds)
        return blob

    def load(self, blob: Blob, slot: int, start: int, end: int) -> bool:
        """Let a sequence that ends at ``start`` go on to ``end`` with what ``blob`` holds; False: no room for it."""
        began = self._clock()
        is_loaded = self._memory.write_cells(self._spare, blob)
        if is_loaded:
            self._memory.copy(self._spare, slot, end, start)
        self._memory.remove(self._spare, 0)
        self.load_seconds += _WEIGHT * ((self._clock() - began) / (end - start) - self.load_seconds)
        return is_loaded

    def save_whole(self, slot: int, n_tokens: int) -> Blob | None:
        """Return all of a sequence of ``n_tokens``, its running state too; None where llama.cpp cannot."""
        began = self._clock()
        blob = self._memory.read_cells(slot)
        self.save_seconds += _WEIGHT * ((self._clock() - began) / n_tokens - self.save_seconds)
        return blob

    def load_whole(self, blob: Blob, slot: int, n_tokens: int) -> bool:
        """Give an empty sequence its ``n_tokens`` and its running state; False where there is no room."""
        began = self._clock()
        is_loaded = self._memory.write_cells(slot, blob)
        if not is_loaded:
            self._memory.remove(slot, 0)
        self.load_seconds += _WEIGHT * ((self._clock() - began) / n_tokens - self.load_seconds)
        return is_loaded
