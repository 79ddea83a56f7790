"""Measures how fast a device's kernels are: ggml's multiplications of each tensor type, and its attention.

The matrices are too large for caches. They are in the buffers that llama.cpp would use: for CPU kernels that need
another order of the weights, in the buffers that reorder them (``ggml_backend_dev_get_extra_bufts``).

``python -m core.machine.kernel_probe`` measures every device and prints a MachineProbe as JSON; with ``--only-gpus``
the GPUs' most used types.
"""

from __future__ import annotations

import ctypes
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from core.llama.devices import device_handles, list_devices
from core.llama.library import declare, ggml, silence_log
from core.machine.host import (
    OtherPrograms,
    core_count,
    last_level_cache,
    others_are_busy,
    set_allocator,
    this_machine,
)
from core.machine.known_machine import ONLY_GPUS, MachineProbe, as_dict
from core.process.child_process import die_with_parent
from core.values.engine_options import Device
from models.estimate.fit.memory import free_memory
from models.estimate.speed.probe import Probe
from models.gguf.tensor_types import BY_NAME, GgmlType

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
            self.run(graph)
            deadline = time.perf_counter() + self._seconds
            while len(times) < 3 or time.perf_counter() < deadline:
                began = time.perf_counter()
                self.run(graph)
                times.append(time.perf_counter() - began)
            return sorted(times)[len(times) // 2]

    def close(self) -> None:
        """Free the backend."""
        _stop(self._backend)

    def run(self, graph: Any) -> None:
        """Compute a graph once."""
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


def attentions(kind: int, count: int, n_cells: int) -> Nodes:
    """Return a builder of ``count`` layers of flash attention for one row, to ``n_cells`` of a ``ggml_type``."""

    def nodes(scratch: Scratch) -> list[Any]:
        query = scratch.row(HEAD_LENGTH, 1, N_HEADS)
        mask = scratch.row(n_cells, _MASK_ROWS, kind=F16)

        def cells() -> Any:
            # The heads of a cell are adjacent in memory.
            return permute(scratch.values, scratch.matrix(kind, HEAD_LENGTH, N_KEY_HEADS, n_cells), 0, 2, 1, 3)

        return [attention(scratch.values, query, cells(), cells(), mask, _SCALE, 0.0, 0.0) for _ in range(count)]

    return nodes


PROBED = (
    "F32", "F16", "BF16", "Q8_0", "Q6_K", "Q5_K", "Q4_K", "Q3_K", "Q2_K", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "IQ4_NL",
    "IQ4_XS", "IQ3_S", "IQ3_XXS", "IQ2_XXS", "MXFP4",
)  # fmt: skip
# Those of most files. Seconds for a device, and for these types alone.
MOST_USED = ("F16", "Q8_0", "Q6_K", "Q4_K")
_SECONDS, _SOON_SECONDS = 2.5, 0.6
PROBED_CACHES = ("F16", "Q8_0", "Q4_0")
# Width of the square matrices, as in a small model. A GPU would start kernels for most of the time: the time of a start
# is measured apart. So its matrices are those of a large model, and its attention is to a long text.
_WIDTH = 2048
_GPU_WIDTH, _GPU_CELLS = 8192, 16_384
# Operations for the time of one node, and rows for the cost of a further row.
_NODES, _FEW_ROWS = 512, 5
# The cache size is searched with matrices of 4 MB, in steps of half a power of two, up to half a gigabyte. It matters
# if few bytes are read faster than many by the factor _CLIFF.
_NARROW, _MOST_SIZES, _CLIFF = 1024, 15, 1.25
# Matrices that are to stay in the cache take this share of it.
_FEW_OF_CACHE = 0.5
# A working set of this many cache sizes is never served from the cache; filling larger ones would take most of the
# time.
_BEYOND_CACHE, _LEAST_BYTES = 3, 128 << 20
# Rounds of all measurements, of which the best count.
_ROUNDS = 2
_norm = declare(ggml, "ggml_rms_norm", P, P, P, ctypes.c_float)


def probe(
    device: Device, *, n_threads: int, n_bytes: int, seconds: float = _SECONDS, types: Sequence[str] = PROBED
) -> Probe | None:
    """Measure one device in about ``seconds``, each of ``types`` on up to ``n_bytes`` of matrices; None if that fails.

    Call it in its own process, because a backend can abort the process.
    """
    handles = device_handles(device.name)
    if not handles:
        return None
    n_measured = _ROUNDS * (2 * len(types) + len(PROBED_CACHES) + 4) + _MOST_SIZES
    bench = _Bench(handles[0], device.kind, n_threads, seconds / n_measured)
    try:
        cache = 0.0 if bench.is_gpu else cache_size(bench.rates_by_size(n_bytes))
        enough = min(n_bytes, max(_LEAST_BYTES, int(_BEYOND_CACHE * cache))) if cache else n_bytes
        return _best([bench.probe(enough, cache, types) for _ in range(_ROUNDS)])
    finally:
        bench.close()


def _best(rounds: Sequence[Probe]) -> Probe | None:
    """Return the best values of all rounds: a disturbance only makes a value worse, and seldom lasts two rounds."""
    weights: dict[str, float] = {}
    cached: dict[str, float] = {}
    near: dict[str, float] = {}
    for one in rounds:
        for best, rates in ((weights, one.weights), (cached, one.cached), (near, one.near)):
            best |= {name: max(rate, best.get(name, 0.0)) for name, rate in rates.items()}
    node, row = min(one.node for one in rounds), min(one.row for one in rounds)
    return Probe(weights, cached, node, row, near, rounds[0].cache) if weights else None


def cache_size(rates: Mapping[int, float]) -> float:
    """Return how many bytes stay in a device's cache between two reads, 0 if that makes no difference.

    ``rates`` are bytes per second by the size in bytes of a working set that is read repeatedly.
    """
    sizes = sorted(rates)
    if not sizes:
        return 0.0
    # The innermost caches are faster still, but very small.
    near, far = median(sorted(rates.values())[len(rates) // 2 :]), rates[sizes[-1]]
    if near < _CLIFF * far:
        return 0.0
    middle = math.sqrt(near * far)
    return float(max((size for size in sizes if rates[size] >= middle), default=0))


class _Bench(OpTimer):
    """The measurements of one device."""

    @property
    def _width(self) -> int:
        return _GPU_WIDTH if self.is_gpu else _WIDTH

    def probe(self, n_bytes: int, cache: float, types: Sequence[str]) -> Probe:
        """Measure everything once; with a ``cache`` size, also matrices that fit into it."""
        rates = {name: self.matrix_rate(BY_NAME[name.lower()], n_bytes) for name in types}
        few = int(cache * _FEW_OF_CACHE)
        near = {name: self.matrix_rate(BY_NAME[name.lower()], few) for name in types} if cache else {}
        caches = {name: self.cache_rate(BY_NAME[name.lower()], n_bytes) for name in PROBED_CACHES}
        return Probe(_known(rates), _known(caches), self.node_seconds(), self.row_cost(n_bytes), _known(near), cache)

    def rates_by_size(self, n_bytes: int) -> dict[int, float]:
        """Return bytes per second of F32 matrices by total size, for growing sizes up to ``n_bytes``."""
        each = 4 * _NARROW * _NARROW
        found: dict[int, float] = {}
        for step in range(_MOST_SIZES):
            count = round(2 ** (step / 2))
            if count * each > n_bytes:
                break
            seconds = self.time(matrices(F32, _NARROW, count), self.plain)
            if seconds:
                found[count * each] = count * each / seconds
        return found

    def matrix_rate(self, kind: GgmlType, n_bytes: int) -> float | None:
        """Return bytes per second of matrices times one row, in the weight order that llama.cpp would choose."""
        for buffer in (*self.reordering, self.plain):
            seconds = self._matrices(kind, n_bytes, 1, buffer)
            if seconds is not None:
                return self._count(kind, n_bytes) * kind.bytes_for(self._width**2) / seconds
        return None

    def row_cost(self, n_bytes: int) -> float:
        """Return the time that each further row adds, as a share of one row."""
        kind = BY_NAME["q8_0"]
        one, few = (self._matrices(kind, n_bytes, n_rows, self.plain) for n_rows in (1, _FEW_ROWS))
        return max(few / one - 1.0, 0.0) / (_FEW_ROWS - 1) if one and few else 1.0

    def cache_rate(self, kind: GgmlType, n_bytes: int) -> float | None:
        """Return bytes per second of attention. A CPU reads shared keys for each head, a GPU once."""
        n_cells = _GPU_CELLS if self.is_gpu else N_CELLS
        pair = 2 * kind.bytes_for(HEAD_LENGTH * n_cells * N_KEY_HEADS)
        count = max(1, n_bytes // pair)
        seconds = self.time(attentions(kind.id, count, n_cells), self.plain)
        n_reads = count if self.is_gpu else count * (N_HEADS // N_KEY_HEADS)
        return n_reads * pair / seconds if seconds else None

    def node_seconds(self) -> float:
        """Return the seconds of one of many tiny operations that depend on each other."""

        def nodes(scratch: Scratch) -> list[Any]:
            matrix, value = scratch.matrix(BY_NAME["q8_0"].id, 256, 256), scratch.row(256)
            for _ in range(_NODES // 2):
                value = _norm(scratch.values, mul_mat(scratch.values, matrix, value), 1e-5)
            return [value]

        return (self.time(nodes, self.plain) or 0.0) / _NODES

    def _matrices(self, kind: GgmlType, n_bytes: int, n_rows: int, buffer: Any) -> float | None:
        return self.time(matrices(kind.id, self._width, self._count(kind, n_bytes), n_rows), buffer)

    def _count(self, kind: GgmlType, n_bytes: int) -> int:
        return max(1, n_bytes // kind.bytes_for(self._width**2))


def _known(rates: dict[str, float | None]) -> dict[str, float]:
    return {name: rate for name, rate in rates.items() if rate is not None}


# -- the process of a probe ---------------------------------------------------------------------------------------

# Bytes of a working set: twice a processor's cache within these bounds, and an eighth of the free memory at most. The
# caches of GPUs are not known, and some have more than 100 MB.
_SMALLEST_SET, _LARGEST_SET, _SHARE_OF_FREE = 64 << 20, 1 << 29, 8
_CACHES = 2  # times the last-level cache, so that nothing is found in it
# malloc.h: M_MMAP_MAX is -4, M_TRIM_THRESHOLD -1. No block is a mapping of its own, and none goes back to the system.
_KEEP = ((-4, 0), (-1, (1 << 31) - 1))


def _measure_here(only_gpus: bool) -> MachineProbe:
    types, seconds = (MOST_USED, _SOON_SECONDS) if only_gpus else (PROBED, _SECONDS)
    machine, others, found = this_machine(), OtherPrograms(), {}
    for device in list_devices():
        is_cpu = device.kind == "cpu"
        if only_gpus if is_cpu else not device.is_gpu:
            continue
        free = free_memory() if is_cpu else device.free
        enough = max(_SMALLEST_SET, _CACHES * last_level_cache()) if is_cpu else _LARGEST_SET
        n_bytes = min(enough, _LARGEST_SET, free // _SHARE_OF_FREE)
        result = probe(device, n_threads=core_count(), n_bytes=n_bytes, seconds=seconds, types=types)
        if result is not None:
            found[device.name] = result
    is_estimate = others_are_busy(others)
    return MachineProbe(machine.cpu, machine.ram, found, is_estimate=is_estimate, is_partial=only_gpus)


def main() -> int:
    """Print what was measured as one JSON object."""
    silence_log()
    set_allocator(*_KEEP)  # getting new pages took up to half the time of a measurement
    print(json.dumps(as_dict(_measure_here(ONLY_GPUS in sys.argv[1:]))))
    return 0


if __name__ == "__main__":
    # The thread that started this process waits for the result. Nobody else needs it.
    die_with_parent()
    sys.exit(main())
