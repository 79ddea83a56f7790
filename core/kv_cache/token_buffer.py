"""A growing row of token ids whose contents numpy can see without a copy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


class TokenBuffer:
    """``size`` token ids with O(1) append.

    Single tokens go through a view of Python's own: after a step, whose weights have emptied the processor's caches,
    numpy's way to one element takes several times as long.
    """

    def __init__(self, tokens: npt.NDArray[np.int32]) -> None:
        """Start with a copy of ``tokens``."""
        self._data = np.empty(max(64, len(tokens) + 64), np.int32)
        self._data[: len(tokens)] = tokens
        self._cells = self._data.data
        self.size = len(tokens)

    def __len__(self) -> int:
        return self.size

    def append(self, token: int) -> None:
        """Add one token at the end."""
        if self.size == len(self._cells):
            self._grow(self.size)
        self._cells[self.size] = token
        self.size += 1

    def extend(self, tokens: npt.NDArray[np.int32]) -> None:
        """Add tokens at the end."""
        need = self.size + len(tokens)
        if need > len(self._data):
            self._grow(max(need, len(self._data)))
        self._data[self.size : need] = tokens
        self.size = need

    def _grow(self, n_more: int) -> None:
        self._data = np.concatenate((self._data, np.empty(n_more, np.int32)))
        self._cells = self._data.data

    def truncate(self, size: int) -> None:
        """Keep the first ``size`` tokens."""
        self.size = min(size, self.size)

    @property
    def last(self) -> int:
        """The last token."""
        return self._cells[self.size - 1]

    @property
    def view(self) -> npt.NDArray[np.int32]:
        """The tokens, valid until the next ``append``."""
        return self._data[: self.size]

    def common_prefix(self, other: npt.NDArray[np.int32]) -> int:
        """Return how many tokens at the start equal those of ``other``."""
        size = min(self.size, len(other))
        differs = self._data[:size] != other[:size]
        first = int(differs.argmax()) if size else 0
        return first if size and differs[first] else size
