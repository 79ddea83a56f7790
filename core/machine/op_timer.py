"""Times graphs of ggml operations on one device, with the kernels of this build."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from core.llama.library import declare, ggml

# ``ggml_type``.
F32, F16 = 0, 1
# Fill byte that gives small finite numbers in every type.
_FILL = 0x3C
# On processors with half a gigabyte of cache, thousands of small matrices are needed to exceed it.
_MOST_NODES = 32_768
_GPU_KINDS = ("gpu", "igpu")

P = ctypes.c_void_p


class _InitParams(ctypes.Structure):
    _fields_ = [("mem_size", ctypes.c_size_t), ("mem_buffer", P), ("no_alloc", ctypes.c_bool)]


_i64 = ctypes.c_int64
_init = declare(ggml, "ggml_init", P, _InitParams)
_free = declare(ggml, "ggml_free", None, P)
_tensor = declare(ggml, "ggml_new_tensor_4d", P, P, ctypes.c_int, _i64, _i64, _i64, _i64)
permute = declare(ggml, "ggml_permute", P, P, P, *(ctypes.c_int,) * 4)
mul_mat = declare(ggml, "ggml_mul_mat", P, P, P, P)
attention = declare(ggml, "ggml_flash_attn_ext", P, P, P, P, P, P, *(ctypes.c_float,) * 3)
_new_graph = declare(ggml, "ggml_new_graph_custom", P, P, ctypes.c_size_t, ctypes.c_bool)
_expand = declare(ggml, "ggml_build_forward_expand", None, P, P)
_start = declare(ggml, "ggml_backend_dev_init", P, P, ctypes.c_char_p)
_stop = declare(ggml, "ggml_backend_free", None, P)
_buffer_type = declare(ggml, "ggml_backend_dev_buffer_type", P, P)
_supports = declare(ggml, "ggml_backend_dev_supports_op", ctypes.c_bool, P, P)
_registry = declare(ggml, "ggml_backend_dev_backend_reg", P, P)
_function = declare(ggml, "ggml_backend_reg_get_proc_address", P, P, ctypes.c_char_p)
_allocate = declare(ggml, "ggml_backend_alloc_ctx_tensors_from_buft", P, P, P)
_clear = declare(ggml, "ggml_backend_buffer_clear", None, P, ctypes.c_uint8)
_free_buffer = declare(ggml, "ggml_backend_buffer_free", None, P)
_compute = declare(ggml, "ggml_backend_graph_compute", ctypes.c_int, P, P)
_synchronize = declare(ggml, "ggml_backend_synchronize", None, P)


@dataclass
class Scratch:
    """Two sets of tensors: ``weights``, and the ``values`` computed with them."""

    weights: Any = field(default_factory=lambda: _init(_InitParams(8 << 20, None, True)))
    values: Any = field(default_factory=lambda: _init(_InitParams(32 << 20, None, True)))

    def free(self) -> None:
        """Free all tensors."""
        _free(self.values)
        _free(self.weights)

    def matrix(self, kind: int, *shape: int) -> Any:
        """Return a tensor among the weights; ``kind`` is its ``ggml_type``."""
        return _tensor(self.weights, kind, *shape, *(1,) * (4 - len(shape)))

    def row(self, *shape: int, kind: int = F32) -> Any:
        """Return a tensor among the values."""
        return _tensor(self.values, kind, *shape, *(1,) * (4 - len(shape)))


Nodes = Callable[[Scratch], Sequence[Any]]
"""Makes the operations of a graph and returns those that nothing else needs."""


def matrices(kind: int, width: int, count: int, n_rows: int = 1) -> Nodes:
    """Return a builder that multiplies ``count`` square matrices of a ``ggml_type`` by the same rows."""

    def nodes(scratch: Scratch) -> list[Any]:
        rows = scratch.row(width, n_rows)
        return [mul_mat(scratch.values, scratch.matrix(kind, width, width), rows) for _ in range(count)]

    return nodes


class OpTimer:
    """One device, and the ``seconds`` that each measurement on it may take. ``close`` frees its backend."""

    def __init__(self, device: int, kind: str, n_threads: int, seconds: float) -> None:
        """``device`` is ggml's handle, ``kind`` one of "cpu", "gpu" and others."""
        self.is_gpu = kind in _GPU_KINDS
        self._device, self._seconds = device, seconds
        self._backend = _start(device, None)
        self.plain = _buffer_type(device)
        registry = _registry(device)
        set_threads = _function(registry, b"ggml_backend_set_n_threads")
        if set_threads and not self.is_gpu:
            ctypes.CFUNCTYPE(None, P, ctypes.c_int)(set_threads)(self._backend, n_threads)
        # Buffers that reorder weights for the kernels of a processor.
        self.reordering = tuple(_extra_buffers(device, registry))

    def time(self, nodes: Nodes, buffer: Any) -> float | None:
        """Return the median seconds of the nodes, None if the device or the ``buffer`` does not support them."""
        with _allocated(self._device, nodes, buffer, self.plain) as graph:
            if graph is None:
                return None
            times: list[float] = []
            self._run(graph)
            deadline = time.perf_counter() + self._seconds
            while len(times) < 3 or time.perf_counter() < deadline:
                began = time.perf_counter()
                self._run(graph)
                times.append(time.perf_counter() - began)
            return sorted(times)[len(times) // 2]

    def close(self) -> None:
        """Free the backend."""
        _stop(self._backend)

    def _run(self, graph: Any) -> None:
        _compute(self._backend, graph)
        _synchronize(self._backend)


@contextmanager
def _allocated(device: int, nodes: Nodes, for_weights: Any, for_values: Any) -> Iterator[Any]:
    """Yield a graph of the nodes with memory allocated; None without memory or if the device cannot compute it."""
    scratch, buffers = Scratch(), []
    try:
        ends = nodes(scratch)
        buffers = [_allocate(scratch.weights, for_weights), _allocate(scratch.values, for_values)]
        if not all(buffers) or not all(_supports(device, end) for end in ends):
            yield None
            return
        for buffer in buffers:
            _clear(buffer, _FILL)
        graph = _new_graph(scratch.values, _MOST_NODES, False)
        for end in ends:
            _expand(graph, end)
        yield graph
    finally:
        for buffer in buffers:
            if buffer:
                _free_buffer(buffer)
        scratch.free()


def _extra_buffers(device: int, registry: Any) -> Iterator[Any]:
    address = _function(registry, b"ggml_backend_dev_get_extra_bufts")
    if not address:
        return
    found = ctypes.CFUNCTYPE(ctypes.POINTER(P), P)(address)(device)
    index = 0
    while found and found[index]:
        yield found[index]
        index += 1


# The heads of an attention layer, those of its keys, their length, and the cells of its cache. The mask has more rows
# than any step that is timed, and the scale of scores is any.
N_HEADS, N_KEY_HEADS, HEAD_LENGTH, N_CELLS = 8, 4, 128, 1024
_MASK_ROWS, _SCALE = 64, 0.1


def attentions(kind: int, count: int) -> Nodes:
    """Return a builder of ``count`` layers of flash attention for one row, to cells of a ``ggml_type``."""

    def nodes(scratch: Scratch) -> list[Any]:
        query = scratch.row(HEAD_LENGTH, 1, N_HEADS)
        mask = scratch.row(N_CELLS, _MASK_ROWS, kind=F16)

        def cells() -> Any:
            # The heads of a cell are adjacent in memory.
            return permute(scratch.values, scratch.matrix(kind, HEAD_LENGTH, N_KEY_HEADS, N_CELLS), 0, 2, 1, 3)

        return [attention(scratch.values, query, cells(), cells(), mask, _SCALE, 0.0, 0.0) for _ in range(count)]

    return nodes
