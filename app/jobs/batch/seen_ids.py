"""Which custom_ids came before, and in which line, in a few bytes for each."""

from __future__ import annotations

import hashlib
from array import array

_FIRST_SIZE = 1 << 10
_MOST_FILLED = 0.7


class SeenIds:
    """An open-addressed table from 64-bit hashes of texts to line numbers: 25 bytes or so for each text.

    Two texts of five million share a hash with a probability of one in a million.
    """

    def __init__(self) -> None:
        self._hashes = array("Q", bytes(8 * _FIRST_SIZE))
        self._numbers = array("Q", bytes(8 * _FIRST_SIZE))
        self._n_filled = 0

    def add(self, text: str, number: int) -> int | None:
        """Note that line ``number`` has this text; return the line that had it before, None where none did."""
        raw = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        key = int.from_bytes(raw, "big") or 1
        place = self._place(key)
        if self._hashes[place] == key:
            return self._numbers[place]
        self._hashes[place], self._numbers[place] = key, number
        self._n_filled += 1
        if self._n_filled > _MOST_FILLED * len(self._hashes):
            self._grow()
        return None

    def _place(self, key: int) -> int:
        """Return where ``key`` is, or where it belongs."""
        hashes = self._hashes
        mask = len(hashes) - 1
        place = key & mask
        while hashes[place] not in (0, key):
            place = (place + 1) & mask
        return place

    def _grow(self) -> None:
        old = self._hashes, self._numbers
        size = 2 * len(self._hashes)
        self._hashes, self._numbers = array("Q", bytes(8 * size)), array("Q", bytes(8 * size))
        for key, number in zip(*old, strict=True):
            if key:
                place = self._place(key)
                self._hashes[place], self._numbers[place] = key, number
