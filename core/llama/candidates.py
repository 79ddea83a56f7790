"""The candidate tokens of one position, as the array that llama.cpp's samplers work on."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

from core.llama.library import L

TOKEN_DATA = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])


class Candidates:
    """A reusable ``llama_token_data_array`` over numpy memory. Samplers shorten and reorder it."""

    def __init__(self, n_vocab: int) -> None:
        """Make room for a whole vocabulary."""
        self._start = np.zeros(n_vocab, TOKEN_DATA)
        self._start["id"] = np.arange(n_vocab, dtype=np.int32)
        self._data = self._start.copy()
        self._array = L.llama_token_data_array()
        self._address = self._data.ctypes.data
        self._reference = ctypes.byref(self._array)

    def fill(self, logits: npt.NDArray[np.float32]) -> None:
        """Take every token with its logit; ``logits`` has shape (n_vocab,)."""
        self._data[:] = self._start
        self._data["logit"] = logits
        self._array.data = ctypes.cast(self._address, L.llama_token_data_p)
        self._array.size = len(self._data)
        self._array.selected = -1
        self._array.sorted = False

    @property
    def c(self) -> Any:
        """The reference that ``llama_sampler_apply`` takes."""
        return self._reference

    def view(self) -> npt.NDArray[np.void]:
        """Return what the samplers left: fields id, logit, p. Valid until the next ``fill``."""
        address = ctypes.cast(self._array.data, ctypes.c_void_p).value
        size = int(self._array.size)
        if address == self._address:
            return self._data[:size]
        # A sampler may hand back a buffer of its own.
        raw = (ctypes.c_byte * (size * TOKEN_DATA.itemsize)).from_address(int(address or 0))
        return np.ndarray((size,), TOKEN_DATA, buffer=memoryview(raw))
