"""A llama_batch over numpy arrays: filling it needs no call into C for each token."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

from core.llama.library import INT32_P, L


class Batch:
    """Rows of the next ``llama_decode``: token, position, sequence, and whether logits are wanted.

    Row ``i`` with logits wanted becomes one row of the context's logits, in batch order.
    """

    def __init__(self, capacity: int) -> None:
        """Make room for ``capacity`` rows."""
        self.capacity = capacity
        self._token = np.zeros(capacity, np.int32)
        self._pos = np.zeros(capacity, np.int32)
        self._n_seq = np.ones(capacity, np.int32)
        self._seq = np.zeros(capacity, np.int32)
        self._out = np.zeros(capacity, np.int8)
        rows = np.arange(capacity, dtype=np.uint64)
        self._seq_pointers = np.append(self._seq.ctypes.data + 4 * rows, np.uint64(0)).astype(np.uint64)
        self._counts = np.arange(capacity, dtype=np.int32)
        # For single rows: Python's memory views, which are faster than numpy's indexing.
        self._token_cells = self._token.data
        self._pos_cells = self._pos.data
        self._seq_cells = self._seq.data
        self._out_cells = self._out.data
        self.n_tokens = 0
        self.n_outputs = 0
        batch = L.llama_batch()
        batch.token = self._token.ctypes.data_as(INT32_P)
        batch.pos = self._pos.ctypes.data_as(INT32_P)
        batch.n_seq_id = self._n_seq.ctypes.data_as(INT32_P)
        batch.seq_id = self._seq_pointers.ctypes.data_as(ctypes.POINTER(INT32_P))
        batch.logits = self._out.ctypes.data_as(ctypes.POINTER(ctypes.c_int8))
        batch.embd = None
        self._c = batch

    def clear(self) -> None:
        """Forget all rows."""
        self.n_tokens = self.n_outputs = 0

    def add(self, token: int, position: int, sequence: int) -> None:
        """Add one row whose logits are wanted."""
        row = self.n_tokens
        self._token_cells[row] = token
        self._pos_cells[row] = position
        self._seq_cells[row] = sequence
        self._out_cells[row] = 1
        self.n_tokens = row + 1
        self.n_outputs += 1

    def add_run(self, tokens: npt.NDArray[np.int32], position: int, sequence: int, n_wanted: int) -> None:
        """Add consecutive tokens from ``position`` on; the logits of the last ``n_wanted`` of them are wanted."""
        start, count = self.n_tokens, len(tokens)
        end = start + count
        self._token[start:end] = tokens
        np.add(self._counts[:count], position, out=self._pos[start:end])
        self._seq[start:end] = sequence
        self._out[start:end] = 0
        self._out[end - n_wanted : end] = 1
        self.n_tokens = end
        self.n_outputs += n_wanted

    def want_all(self) -> None:
        """Mark every row as an output."""
        self._out[: self.n_tokens] = 1
        self.n_outputs = self.n_tokens

    @property
    def c(self) -> Any:
        """The C structure, valid until the next ``add`` or ``clear``."""
        self._c.n_tokens = self.n_tokens
        return self._c


class EmbeddingBatch:
    """Rows of one sequence that are given as embeddings instead of tokens (``llama_batch.embd``); no logits."""

    n_outputs = 0

    def __init__(self, embeddings: npt.NDArray[np.float32], positions: npt.NDArray[np.int32], sequence: int) -> None:
        """``embeddings`` have shape (n_rows, n_embd), ``positions`` (n_rows,), or (4, n_rows) for M-RoPE."""
        self.n_tokens = n_rows = len(embeddings)
        self._embeddings = np.ascontiguousarray(embeddings, np.float32)
        self._positions = np.ascontiguousarray(positions, np.int32)
        self._n_seq = np.ones(n_rows, np.int32)
        self._sequence = np.array([sequence], np.int32)
        self._seq_pointers = np.full(n_rows, self._sequence.ctypes.data, np.uint64)
        self._out = np.zeros(n_rows, np.int8)
        batch = L.llama_batch()
        batch.n_tokens = n_rows
        batch.token = None
        batch.embd = self._embeddings.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        batch.pos = self._positions.ctypes.data_as(INT32_P)
        batch.n_seq_id = self._n_seq.ctypes.data_as(INT32_P)
        batch.seq_id = self._seq_pointers.ctypes.data_as(ctypes.POINTER(INT32_P))
        batch.logits = self._out.ctypes.data_as(ctypes.POINTER(ctypes.c_int8))
        self.c: Any = batch
