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
        # Plain copies of numbers: numpy copies structured arrays field by field.
        self._start_numbers = self._start.view(np.int32)
        self._numbers = self._data.view(np.int32)
        self._ids = self._numbers[0::3]
        self._logits = self._data.view(np.float32)[1::3]
        self._array = L.llama_token_data_array()
        self._address = self._data.ctypes.data
        self._reference = ctypes.byref(self._array)

    def fill(self, logits: npt.NDArray[np.float32]) -> None:
        """Take every token with its logit; ``logits`` has shape (n_vocab,)."""
        self._numbers[:] = self._start_numbers
        self._logits[:] = logits
        self._reset(len(self._data))

    def fill_some(self, ids: npt.NDArray[np.intp], logits: npt.NDArray[np.float32]) -> None:
        """Take only the tokens ``ids`` with their logits, both of the same length."""
        self._ids[: len(ids)] = ids
        self._logits[: len(ids)] = logits
        self._reset(len(ids))

    def _reset(self, size: int) -> None:
        self._array.data = ctypes.cast(self._address, L.llama_token_data_p)
        self._array.size = size
        self._array.selected = -1
        self._array.sorted = False

    @property
    def c(self) -> Any:
        """The reference that ``llama_sampler_apply`` takes."""
        return self._reference

    def view(self) -> npt.NDArray[np.void]:
        """Return the remaining candidates: fields id, logit, p. Valid until the next ``fill``."""
        address = ctypes.cast(self._array.data, ctypes.c_void_p).value
        size = int(self._array.size)
        if address == self._address:
            return self._data[:size]
        # A sampler may return its own buffer.
        raw = (ctypes.c_byte * (size * TOKEN_DATA.itemsize)).from_address(int(address or 0))
        return np.ndarray((size,), TOKEN_DATA, buffer=memoryview(raw))
