"""A context that gives vectors instead of tokens."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from core.llama.batch import Batch
from core.llama.context import FLASH_ATTENTION_TYPES, DecodeStatus
from core.llama.library import L
from core.llama.model import Model
from core.values.engine_options import FlashAttention, Pooling
from core.values.errors import LoadFailed
from models.formatting.sentence import Sentence

_POOLINGS: dict[Pooling, int] = {"none": 0, "mean": 1, "cls": 2, "last": 3, "rank": 4}
_F32 = 4  # bytes


def pooling_of(model: Model, architecture: str) -> Pooling | None:
    """Return the pooling that the model's file names; None if it names none."""
    named = model.metadata(f"{architecture}.pooling_type")
    return {str(value): kind for kind, value in _POOLINGS.items()}.get(named or "")


@dataclass(frozen=True, slots=True)
class EmbeddingOptions:
    """How the context is opened: for ``n_tokens`` tokens of at most ``n_sequences`` texts at once.

    With ``reads_parts`` a text may be split over several batches of ``n_rows`` rows; the last one gives its vector.
    Otherwise each text must be in one batch.
    """

    pooling: Pooling
    n_tokens: int
    n_sequences: int
    n_threads: int
    n_rows: int = 512
    reads_parts: bool = False
    flash_attention: FlashAttention = "auto"


class Rows(NamedTuple):
    """Tokens of one text from ``position`` on, in shape (n,)."""

    tokens: npt.NDArray[np.int32]
    position: int
    sequence: int


class EmbeddingContext:
    """Evaluates texts side by side, each a sequence of its own. Owned by one thread at a time."""

    def __init__(self, model: Model, options: EmbeddingOptions) -> None:
        """Allocate the buffers; raises LoadFailed when llama.cpp refuses."""
        self.options = options
        self.reads_parts = options.reads_parts
        self.n_rows = options.n_rows if self.reads_parts else options.n_tokens
        params = L.llama_context_default_params()
        params.n_ctx = options.n_tokens
        params.n_seq_max = options.n_sequences
        params.n_batch = params.n_ubatch = self.n_rows
        params.n_outputs_max = min(options.n_sequences, self.n_rows) if self.reads_parts else self.n_rows
        params.n_threads = params.n_threads_batch = options.n_threads
        params.flash_attn_type = FLASH_ATTENTION_TYPES[options.flash_attention]
        params.kv_unified = True
        params.embeddings = True
        params.pooling_type = _POOLINGS[options.pooling]
        params.no_perf = True
        pointer = L.llama_init_from_model(model.c, params)
        self._context: Any = ctypes.cast(pointer, ctypes.c_void_p) if pointer else None
        if not self._context:
            raise LoadFailed(
                Sentence(
                    "llama.cpp could not make a context for embeddings of {n_tokens:,} tokens.",
                    n_tokens=options.n_tokens,
                )
            )
        memory = L.llama_get_memory(self._context)
        self._memory: Any = memory or None
        self._width = model.n_scores if options.pooling == "rank" else model.n_embd_out
        self._batch = Batch(self.n_rows)

    @property
    def n_tokens(self) -> int:
        """Tokens of all texts that can be evaluated together."""
        return self.options.n_tokens

    def run(self, rows: Sequence[Rows], *, is_end: bool = True) -> DecodeStatus:
        """Evaluate rows; with ``is_end`` False they are beginnings of texts, whose vectors are not wanted yet."""
        batch = self._batch
        batch.clear()
        for tokens, position, sequence in rows:
            batch.add_run(tokens, position, sequence, n_wanted=0)
        if is_end:
            batch.want_all()
        if self._memory is None:
            code = L.llama_encode(self._context, batch.c)
        else:
            L.llama_set_embeddings(self._context, is_end)
            code = L.llama_decode(self._context, batch.c)
        return DecodeStatus(code)

    def vectors(self, sequence: int) -> npt.NDArray[np.float32]:
        """Return a copy of the pooled vector of a text of the last batch, shape (1, width)."""
        address = L.llama_get_embeddings_seq(self._context, sequence)
        return _floats(address, 1, self._width)

    def all_vectors(self) -> npt.NDArray[np.float32]:
        """Return a copy of the vectors of all rows of the last batch, shape (n_rows, width): for pooling none."""
        return _floats(L.llama_get_embeddings(self._context), self._batch.n_tokens, self._width)

    def clear(self) -> None:
        """Forget every text."""
        if self._memory is not None:
            L.llama_memory_clear(self._memory, False)

    def close(self) -> None:
        """Free the buffers."""
        if self._context:
            L.llama_free(self._context)
            self._context = None


def _floats(address: Any, n_rows: int, width: int) -> npt.NDArray[np.float32]:
    data = ctypes.string_at(ctypes.cast(address, ctypes.c_void_p), n_rows * width * _F32)
    return np.frombuffer(data, np.float32).reshape(n_rows, width)
