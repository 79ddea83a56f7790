"""The latest hidden states that the target has handed out for one slot."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from core.kv_cache.token_buffer import TokenBuffer

# So many of the latest states are kept for a head that has not read them yet. A head that starts late begins there:
# what lies further back matters little to it and would cost time and memory.
LONGEST_WINDOW = 512

StateRows = npt.NDArray[np.float32]
TokenIds = npt.NDArray[np.int32]


class HiddenStateWindow:
    """Hidden states of the target by position, with the tokens that led to them.

    States of drafted tokens are kept too: whether they hold shows in the tokens, once those are decided.
    """

    def __init__(self, width: int, size: int = LONGEST_WINDOW) -> None:
        """Keep the last ``size`` states of ``width`` numbers."""
        self._size = size
        self._width = width
        self._rows = np.empty((0, width), np.float32)
        self._tokens = TokenBuffer(np.empty(0, np.int32))
        self._first = 0
        self._begin = 0
        self._end = 0

    def take(self, before: TokenIds, tokens: TokenIds, parts: tuple[StateRows, ...]) -> None:
        """Add the states of ``tokens``, which came after ``before``.

        ``parts`` have one row per token and lie side by side. What was kept of other texts, or from there on, goes.
        """
        start, count = len(before), len(tokens)
        if self._tokens.common_prefix(before) < start or start < self._first:
            self._tokens = TokenBuffer(before)
            self._first, self._begin, self._end = start, 0, 0
        self._tokens.truncate(start)
        self._end = self._begin + start - self._first
        skipped = max(count - self._size, 0)
        if skipped:
            self._first, self._begin, self._end = start + skipped, 0, 0
        self._make_room(count - skipped)
        column = 0
        for part in parts:
            self._rows[self._end : self._end + count - skipped, column : column + part.shape[1]] = part[skipped:]
            column += part.shape[1]
        self._end += count - skipped
        self._tokens.extend(tokens)

    def known(self, tokens: TokenIds) -> range:
        """Return the positions whose states belong to ``tokens``."""
        return range(self._first, max(self._tokens.common_prefix(tokens), self._first))

    def rows(self, start: int, end: int) -> StateRows:
        """Return the states of positions [start, end), valid until the next ``take``."""
        offset = self._begin - self._first
        return self._rows[start + offset : end + offset]

    def _make_room(self, count: int) -> None:
        if self._end + count <= len(self._rows):
            return
        kept = min(self._end - self._begin, self._size)
        latest = self._rows[self._end - kept : self._end]
        if kept + count > len(self._rows):
            grown = min(max(2 * (kept + count), 64), 2 * self._size)
            self._rows = np.empty((grown, self._width), np.float32)
        self._rows[:kept] = latest
        self._first += self._end - self._begin - kept
        self._begin, self._end = 0, kept
