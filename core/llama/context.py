"""Contexts and the batches that they evaluate: a context gives logits from its KV cache, or vectors of texts."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from core.llama.library import INT32_P, L, declare, ggml, quick, waiting
from core.llama.model import Model
from core.values.engine_options import DEFAULT_KV_TYPE, MANY_ROWS, FlashAttention, KvType, Pooling, whole_lines
from core.values.errors import LoadFailed


class Batch:
    """Rows of the next ``llama_decode``: token, position, sequence, and whether logits are wanted.

    Row ``i`` with logits wanted becomes one row of the context's logits, in batch order.
    """

    def __init__(self, capacity: int) -> None:
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
    """Rows that are given as embeddings instead of tokens (``llama_batch.embd``). All of them are outputs, or none."""

    def __init__(
        self,
        embeddings: npt.NDArray[np.float32],
        positions: npt.NDArray[np.int32],
        sequences: npt.NDArray[np.int32] | int,
        *,
        are_outputs: bool = False,
    ) -> None:
        """``embeddings`` have shape (n_rows, n_embd), ``positions`` (n_rows,), or (4, n_rows) for M-RoPE.

        ``sequences`` has shape (n_rows,), or is the sequence of all rows.
        """
        self.n_tokens = n_rows = len(embeddings)
        self.n_outputs = n_rows if are_outputs else 0
        self._embeddings = np.ascontiguousarray(embeddings, np.float32)
        self._positions = np.ascontiguousarray(positions, np.int32)
        self._n_seq = np.ones(n_rows, np.int32)
        self._sequences = np.array(np.broadcast_to(sequences, n_rows), np.int32)
        self._seq_pointers = self._sequences.ctypes.data + 4 * np.arange(n_rows, dtype=np.uint64)
        self._out = np.full(n_rows, are_outputs, np.int8)
        batch = L.llama_batch()
        batch.n_tokens = n_rows
        batch.token = None
        batch.embd = self._embeddings.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        batch.pos = self._positions.ctypes.data_as(INT32_P)
        batch.n_seq_id = self._n_seq.ctypes.data_as(INT32_P)
        batch.seq_id = self._seq_pointers.ctypes.data_as(ctypes.POINTER(INT32_P))
        batch.logits = self._out.ctypes.data_as(ctypes.POINTER(ctypes.c_int8))
        self.c: Any = batch


FLASH_ATTENTION_TYPES: dict[FlashAttention, int] = {"auto": -1, "off": 0, "on": 1}

_P, _I32 = ctypes.c_void_p, ctypes.c_int32
_type_name = declare(ggml, "ggml_type_name", ctypes.c_char_p, _I32)
# ``ggml_type`` by its name in ggml, which is also that of a ``KvType``.
_GGML_TYPES = {_type_name(number): number for number in range(L.GGML_TYPE_COUNT)}
_seq_rm = declare(quick, "llama_memory_seq_rm", ctypes.c_bool, _P, _I32, _I32, _I32)
_seq_cp = declare(quick, "llama_memory_seq_cp", None, _P, _I32, _I32, _I32, _I32)
_seq_pos_max = declare(quick, "llama_memory_seq_pos_max", _I32, _P, _I32)
_seq_pos_min = declare(quick, "llama_memory_seq_pos_min", _I32, _P, _I32)
# Waits for the last decode, with the GIL released.
_get_logits = declare(waiting, "llama_get_logits", _P, _P)
# Saves only the recurrent state (which cannot be cut at a position), in device memory.
_RUNNING_STATE_ON_DEVICE = L.LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY | L.LLAMA_STATE_SEQ_FLAGS_ON_DEVICE


class DecodeStatus(IntEnum):
    """The result of ``llama_decode`` (llama-context.cpp)."""

    OK = 0
    NO_KV_SLOT = 1  # nothing was changed
    ABORTED = 2  # finished ubatches stay in the cache
    INVALID_BATCH = -1
    ALLOCATION_FAILED = -2
    COMPUTE_FAILED = -3


@dataclass(frozen=True, slots=True)
class ContextOptions:
    """How a context is opened.

    ``n_outputs`` is the most rows of one batch whose logits are wanted, rounded up to whole cache lines
    (``whole_lines``); llama.cpp aborts beyond it. ``n_snapshots`` keeps the recurrent states after the latest rows of
    each sequence (``n_rs_seq``). ``cuts_windows`` keeps only the window in layers with a sliding window (``swa_full``
    off). ``is_mtp`` runs the model's prediction layers instead of its main layers.
    """

    n_cells: int
    n_sequences: int
    n_outputs: int
    n_batch: int
    n_ubatch: int
    n_threads: int
    flash_attention: FlashAttention = "auto"
    kv_type: KvType = DEFAULT_KV_TYPE
    n_snapshots: int = 0
    cuts_windows: bool = False
    is_mtp: bool = False


class Context:
    """One unified KV cache of ``n_cells`` cells for up to ``n_sequences`` sequences (``c``). Owned by one thread.

    ``is_asynchronous``: ``decode`` may return before the result is there. ``synchronize`` waits for it.
    """

    def __init__(self, model: Model, options: ContextOptions, target: Context | None = None) -> None:
        """Allocate cache and buffers; raises LoadFailed. A head without own embeddings uses those of ``target``."""
        n_outputs = min(whole_lines(options.n_outputs), max(options.n_outputs, options.n_batch))
        n_threads = options.n_threads
        params = L.llama_context_default_params()
        params.n_ctx = options.n_cells
        params.n_seq_max = options.n_sequences
        params.n_batch = options.n_batch
        params.n_ubatch = options.n_ubatch
        params.n_outputs_max = n_outputs
        params.n_rs_seq = options.n_snapshots
        params.swa_full = not options.cuts_windows
        params.n_threads = n_threads
        params.n_threads_batch = n_threads
        params.flash_attn_type = FLASH_ATTENTION_TYPES[options.flash_attention]
        params.type_k = params.type_v = _GGML_TYPES[options.kv_type.encode()]
        if options.is_mtp:
            params.ctx_type = L.LLAMA_CONTEXT_TYPE_MTP
        if target is not None:
            params.ctx_other = target.c
        # One stream: rows of any sequences share a graph, whatever their order and lengths.
        params.kv_unified = True
        params.no_perf = True
        pointer = L.llama_init_from_model(model.c, params)
        self.c: Any = ctypes.cast(pointer, ctypes.c_void_p) if pointer else None
        if not self.c:
            cells = f"{options.n_cells} KV cells of type {options.kv_type}"
            raise LoadFailed("llama.cpp could not make a context of {cells}.", cells=cells)
        self._memory: Any = ctypes.cast(L.llama_get_memory(self.c), ctypes.c_void_p)
        self.n_vocab = int(L.llama_vocab_n_tokens(L.llama_model_get_vocab(model.c)))
        self.n_cells = int(L.llama_n_ctx(self.c))
        self.n_batch = int(L.llama_n_batch(self.c))
        self.n_snapshots = int(L.llama_n_rs_seq(self.c))
        self.n_ubatch = int(L.llama_n_ubatch(self.c))
        self.n_outputs = n_outputs
        self.flash_attention = options.flash_attention
        self.is_asynchronous = model.is_offloaded
        self._logits_address = 0
        self._logits = np.empty((0, self.n_vocab), np.float32)
        # Views of the logits by number of rows.
        self._logits_of: dict[int, npt.NDArray[np.float32]] = {}
        self._threads = (n_threads, n_threads, n_threads)
        self._n_threads_batch = n_threads

    def set_threads(self, decode: int, few: int, many: int) -> None:
        """Set the number of threads for steps of one row, of a few, and of 32 rows or more."""
        self._threads = (decode, few, many)
        self._use_threads(few)

    def _use_threads(self, n_threads_batch: int) -> None:
        self._n_threads_batch = n_threads_batch
        L.llama_set_n_threads(self.c, self._threads[0], n_threads_batch)

    def decode(self, batch: Batch | EmbeddingBatch, *, is_causal: bool = True) -> DecodeStatus:
        """Evaluate a batch (``llama_decode``).

        If ``is_causal`` is False, all rows attend to each other, and there may be at most ``n_ubatch`` of them.
        """
        # llama.cpp has thread counts for one row and for more; with a few rows, synchronising many threads can cost
        # more than it saves.
        wanted = self._threads[1] if batch.n_tokens < MANY_ROWS else self._threads[2]
        if wanted != self._n_threads_batch and batch.n_tokens > 1:
            self._use_threads(wanted)
        if not is_causal:
            L.llama_set_causal_attn(self.c, False)
        code = L.llama_decode(self.c, batch.c)
        if not is_causal:
            L.llama_set_causal_attn(self.c, True)
        return DecodeStatus.OK if code == 0 else DecodeStatus(code)

    def synchronize(self) -> None:
        """Wait for the last decode and put its logits in order (``llama_get_logits`` does both)."""
        address = _get_logits(self.c)
        if address and address != self._logits_address:
            self._logits_address = address
            buffer = (ctypes.c_float * (self.n_outputs * self.n_vocab)).from_address(address)
            self._logits = np.ndarray((self.n_outputs, self.n_vocab), np.float32, buffer=memoryview(buffer))
            self._logits_of.clear()

    def logits(self, n_outputs: int) -> npt.NDArray[np.float32]:
        """Return the logits of the last batch's outputs, shape (n_outputs, n_vocab), valid until the next decode.

        Call ``synchronize`` first. The array is llama.cpp's own buffer: writing to it changes no later step.
        """
        rows = self._logits_of.get(n_outputs)
        if rows is None:
            rows = self._logits_of[n_outputs] = self._logits[:n_outputs]
        return rows

    def remove(self, sequence: int, start: int, end: int = -1) -> bool:
        """Drop positions [start, end) of a sequence; False if this kind of memory cannot cut there."""
        return bool(_seq_rm(self._memory, sequence, start, end))

    def copy(self, source: int, target: int, end: int, start: int = 0) -> None:
        """Let ``target`` share positions [start, end) of ``source``; no data is moved in a unified cache."""
        _seq_cp(self._memory, source, target, start, end)

    def last_position(self, sequence: int) -> int:
        """Return the highest position held for a sequence, -1 when it is empty."""
        return int(_seq_pos_max(self._memory, sequence))

    def first_position(self, sequence: int) -> int:
        """Return the lowest position that all layers hold for a sequence, -1 when it is empty."""
        return int(_seq_pos_min(self._memory, sequence))

    def save_state(self, sequence: int) -> npt.NDArray[np.uint8] | None:
        """Save a sequence's recurrent state (``llama_state_seq_get_data_ext``); None if it cannot be saved.

        llama.cpp keeps one state for each sequence: saving again invalidates the earlier handle.
        """
        return self._state(sequence, _RUNNING_STATE_ON_DEVICE)

    def load_state(self, sequence: int, state: npt.NDArray[np.uint8]) -> bool:
        """Restore the recurrent state that ``save_state`` saved last for a sequence; False if llama.cpp cannot."""
        return self._set_state(sequence, state, _RUNNING_STATE_ON_DEVICE)

    def read_cells(self, sequence: int) -> npt.NDArray[np.uint8] | None:
        """Return all state of a sequence, after the last decode (``llama_state_seq_get_data_ext``); None if empty."""
        return self._state(sequence, 0)

    def write_cells(self, sequence: int, blob: npt.NDArray[np.uint8]) -> bool:
        """Replace a sequence's state by the bytes of ``read_cells``; False if there are not enough free cells.

        Bytes of another model or other options can crash the process.
        """
        return self._set_state(sequence, blob, 0)

    def _state(self, sequence: int, flags: int) -> npt.NDArray[np.uint8] | None:
        size = L.llama_state_seq_get_size_ext(self.c, sequence, flags)
        state = np.empty(size, np.uint8)
        pointer = state.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
        done = L.llama_state_seq_get_data_ext(self.c, pointer, size, sequence, flags)
        return state if done == size > 0 else None

    def _set_state(self, sequence: int, state: npt.NDArray[np.uint8], flags: int) -> bool:
        size = len(state)
        pointer = state.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
        return int(L.llama_state_seq_set_data_ext(self.c, pointer, size, sequence, flags)) == size

    def clear(self) -> None:
        """Forget every sequence."""
        L.llama_memory_clear(L.llama_get_memory(self.c), False)

    def close(self) -> None:
        """Free the cache and the buffers."""
        if self.c:
            L.llama_free(self.c)
            self.c = None


class LoraAdapters:
    """The adapters of a model, in the order in which they were named. llama.cpp frees them with the model."""

    def __init__(self, model: Model, files: Sequence[tuple[str, float]]) -> None:
        """Load them from ``files`` with their usual scales; raises LoadFailed for one that does not fit the model."""
        self.scales = tuple(scale for _, scale in files)
        self._adapters: list[Any] = []
        for path, _ in files:
            adapter = L.llama_adapter_lora_init(model.c, os.fsencode(path))
            if not adapter:
                raise LoadFailed(
                    "llama.cpp could not load the LoRA adapter {path}: it must be a GGUF file made for this model.",
                    path=path,
                )
            self._adapters.append(adapter)

    def apply(self, context: Context | EmbeddingContext, scales: Sequence[float]) -> None:
        """Let ``context`` compute with these scales from now on; 0 leaves an adapter out."""
        used = [(adapter, scale) for adapter, scale in zip(self._adapters, scales, strict=True) if scale]
        handles = (ctypes.c_void_p * len(used))(*[ctypes.cast(adapter, ctypes.c_void_p).value for adapter, _ in used])
        pointers = ctypes.cast(handles, ctypes.POINTER(L.llama_adapter_lora_p_ctypes))
        L.llama_set_adapters_lora(context.c, pointers, len(used), (ctypes.c_float * len(used))(*[s for _, s in used]))


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
    """Evaluates texts side by side, ``n_tokens`` in all, each a sequence of its own. Owned by one thread at a time."""

    def __init__(self, model: Model, options: EmbeddingOptions) -> None:
        """Allocate the buffers; raises LoadFailed when llama.cpp refuses."""
        self.n_tokens, self.reads_parts = options.n_tokens, options.reads_parts
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
        self.c: Any = ctypes.cast(pointer, ctypes.c_void_p) if pointer else None
        if not self.c:
            raise LoadFailed(
                "llama.cpp could not make a context for embeddings of {n_tokens:,} tokens.", n_tokens=options.n_tokens
            )
        memory = L.llama_get_memory(self.c)
        self._memory: Any = memory or None
        self._width = model.n_scores if options.pooling == "rank" else model.n_embd_out
        self._batch = Batch(self.n_rows)

    def set_threads(self, n_threads: int) -> None:
        """Set the number of threads of all steps."""
        L.llama_set_n_threads(self.c, n_threads, n_threads)

    def run(self, rows: Sequence[Rows], *, is_end: bool = True) -> DecodeStatus:
        """Evaluate rows; with ``is_end`` False they are beginnings of texts, whose vectors are not wanted yet."""
        batch = self._batch
        batch.clear()
        for tokens, position, sequence in rows:
            batch.add_run(tokens, position, sequence, n_wanted=0)
        if is_end:
            batch.want_all()
        if self._memory is None:
            code = L.llama_encode(self.c, batch.c)
        else:
            L.llama_set_embeddings(self.c, is_end)
            code = L.llama_decode(self.c, batch.c)
        return DecodeStatus(code)

    def vectors(self, sequence: int) -> npt.NDArray[np.float32]:
        """Return a copy of the pooled vector of a text of the last batch, shape (1, width)."""
        address = L.llama_get_embeddings_seq(self.c, sequence)
        return _floats(address, 1, self._width)

    def all_vectors(self) -> npt.NDArray[np.float32]:
        """Return a copy of the vectors of all rows of the last batch, shape (n_rows, width): for pooling none."""
        return _floats(L.llama_get_embeddings(self.c), self._batch.n_tokens, self._width)

    def clear(self) -> None:
        """Forget every text."""
        if self._memory is not None:
            L.llama_memory_clear(self._memory, False)

    def close(self) -> None:
        """Free the buffers."""
        if self.c:
            L.llama_free(self.c)
            self.c = None


def _floats(address: Any, n_rows: int, width: int) -> npt.NDArray[np.float32]:
    data = ctypes.string_at(ctypes.cast(address, ctypes.c_void_p), n_rows * width * _F32)
    return np.frombuffer(data, np.float32).reshape(n_rows, width)
