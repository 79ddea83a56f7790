"""How fast each device multiplies each tensor type: ggml's own kernels, on matrices that no cache holds.

The matrices lie where llama.cpp would put them: where a processor's kernels want another order of the weights, in the
buffers that reorder them (``ggml_backend_dev_get_extra_bufts``).
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from core.llama.devices import Device
from core.llama.library import declare, ggml, start_backend
from models.ggml_types import BY_NAME, GgmlType
from models.speed.probe import Probe

PROBED = (
    "F32", "F16", "BF16", "Q8_0", "Q6_K", "Q5_K", "Q4_K", "Q3_K", "Q2_K", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "IQ4_NL",
    "IQ4_XS", "IQ3_S", "IQ3_XXS", "IQ2_XXS", "MXFP4",
)  # fmt: skip
PROBED_CACHES = ("F16", "Q8_0", "Q4_0")
_ROWS, _COLUMNS = 2048, 2048
_HEAD, _N_HEADS, _N_KEY_HEADS, _N_CELLS = 128, 8, 4, 1024
_NODES, _FEW_ROWS = 512, 5
_ROUNDS = 2
# As bytes, small finite numbers in every type.
_FILL = 0x3C
_GPU_KINDS = ("gpu", "igpu")
_F32, _F16 = 0, 1

_P = ctypes.c_void_p


class _InitParams(ctypes.Structure):
    _fields_ = [("mem_size", ctypes.c_size_t), ("mem_buffer", _P), ("no_alloc", ctypes.c_bool)]


_i64 = ctypes.c_int64
_init = declare(ggml, "ggml_init", _P, _InitParams)
_free = declare(ggml, "ggml_free", None, _P)
_tensor = declare(ggml, "ggml_new_tensor_4d", _P, _P, ctypes.c_int, _i64, _i64, _i64, _i64)
_permute = declare(ggml, "ggml_permute", _P, _P, _P, *(ctypes.c_int,) * 4)
_mul_mat = declare(ggml, "ggml_mul_mat", _P, _P, _P, _P)
_norm = declare(ggml, "ggml_rms_norm", _P, _P, _P, ctypes.c_float)
_attention = declare(ggml, "ggml_flash_attn_ext", _P, _P, _P, _P, _P, _P, *(ctypes.c_float,) * 3)
_new_graph = declare(ggml, "ggml_new_graph_custom", _P, _P, ctypes.c_size_t, ctypes.c_bool)
_expand = declare(ggml, "ggml_build_forward_expand", None, _P, _P)
_device_count = declare(ggml, "ggml_backend_dev_count", ctypes.c_size_t)
_device = declare(ggml, "ggml_backend_dev_get", _P, ctypes.c_size_t)
_device_name = declare(ggml, "ggml_backend_dev_name", ctypes.c_char_p, _P)
_start = declare(ggml, "ggml_backend_dev_init", _P, _P, ctypes.c_char_p)
_stop = declare(ggml, "ggml_backend_free", None, _P)
_buffer_type = declare(ggml, "ggml_backend_dev_buffer_type", _P, _P)
_supports = declare(ggml, "ggml_backend_dev_supports_op", ctypes.c_bool, _P, _P)
_registry = declare(ggml, "ggml_backend_dev_backend_reg", _P, _P)
_function = declare(ggml, "ggml_backend_reg_get_proc_address", _P, _P, ctypes.c_char_p)
_allocate = declare(ggml, "ggml_backend_alloc_ctx_tensors_from_buft", _P, _P, _P)
_clear = declare(ggml, "ggml_backend_buffer_clear", None, _P, ctypes.c_uint8)
_free_buffer = declare(ggml, "ggml_backend_buffer_free", None, _P)
_compute = declare(ggml, "ggml_backend_graph_compute", ctypes.c_int, _P, _P)
_synchronize = declare(ggml, "ggml_backend_synchronize", None, _P)

_Nodes = Callable[["_Scratch"], Sequence[Any]]


def probe(device: Device, *, n_threads: int, n_bytes: int, seconds: float = 2.5) -> Probe | None:
    """Measure one device in about ``seconds``, each type on about ``n_bytes`` of matrices; None where it cannot.

    Call it in a process of its own: what a backend does not like ends the process.
    """
    handle = _handle(device.name)
    if handle is None:
        return None
    n_measured = _ROUNDS * (len(PROBED) + len(PROBED_CACHES) + 3)
    bench = _Bench(handle, device.kind.value in _GPU_KINDS, n_threads, seconds / n_measured)
    try:
        return _best([bench.probe(n_bytes) for _ in range(_ROUNDS)])
    finally:
        _stop(bench.backend)


def _best(rounds: Sequence[Probe]) -> Probe | None:
    """The best of each: what disturbs a measurement only makes it slower, and seldom lasts until the next round."""
    weights: dict[str, float] = {}
    cached: dict[str, float] = {}
    for one in rounds:
        for best, rates in ((weights, one.weights), (cached, one.cached)):
            best |= {name: max(rate, best.get(name, 0.0)) for name, rate in rates.items()}
    return Probe(weights, cached, min(o.node for o in rounds), min(o.row for o in rounds)) if weights else None


def _handle(name: str) -> int | None:
    start_backend()
    handles = (_device(index) for index in range(_device_count()))
    return next((int(handle) for handle in handles if _device_name(handle).decode("utf-8", "replace") == name), None)


@dataclass
class _Scratch:
    """Two sets of tensors: ``weights``, and what is computed with them."""

    weights: Any = field(default_factory=lambda: _init(_InitParams(4 << 20, None, True)))
    values: Any = field(default_factory=lambda: _init(_InitParams(16 << 20, None, True)))

    def free(self) -> None:
        _free(self.values)
        _free(self.weights)

    def matrix(self, kind: int, *shape: int) -> Any:
        return _tensor(self.weights, kind, *shape, *(1,) * (4 - len(shape)))

    def row(self, *shape: int, kind: int = _F32) -> Any:
        return _tensor(self.values, kind, *shape, *(1,) * (4 - len(shape)))


class _Bench:
    """One device and the time that each measurement on it may take."""

    def __init__(self, device: int, is_gpu: bool, n_threads: int, seconds: float) -> None:
        self._device, self._seconds = device, seconds
        self.backend = _start(device, None)
        self._plain = _buffer_type(device)
        registry = _registry(device)
        set_threads = _function(registry, b"ggml_backend_set_n_threads")
        if set_threads and not is_gpu:
            ctypes.CFUNCTYPE(None, _P, ctypes.c_int)(set_threads)(self.backend, n_threads)
        self._reordering = tuple(_extra_buffers(device, registry))

    def probe(self, n_bytes: int) -> Probe:
        """Measure everything once."""
        rates = {name: self.matrix_rate(BY_NAME[name.lower()], n_bytes) for name in PROBED}
        caches = {name: self.cache_rate(BY_NAME[name.lower()], n_bytes) for name in PROBED_CACHES}
        return Probe(_known(rates), _known(caches), self.node_seconds(), self.row_cost(n_bytes))

    def matrix_rate(self, kind: GgmlType, n_bytes: int) -> float | None:
        """Bytes per second of matrices times one row, in the order of weights that llama.cpp would choose."""
        for buffer in (*self._reordering, self._plain):
            seconds = self._matrices(kind, n_bytes, 1, buffer)
            if seconds is not None:
                return _count(kind, n_bytes) * kind.bytes_for(_ROWS * _COLUMNS) / seconds
        return None

    def row_cost(self, n_bytes: int) -> float:
        """What each further row adds, as a share of one row."""
        kind = BY_NAME["q8_0"]
        one, few = (self._matrices(kind, n_bytes, n_rows, self._plain) for n_rows in (1, _FEW_ROWS))
        return max(few / one - 1.0, 0.0) / (_FEW_ROWS - 1) if one and few else 1.0

    def cache_rate(self, kind: GgmlType, n_bytes: int) -> float | None:
        """Bytes per second of attention; where heads share keys, these count once for each head as the CPU reads."""
        pair = 2 * kind.bytes_for(_HEAD * _N_CELLS * _N_KEY_HEADS)
        count = max(1, n_bytes // pair)

        def nodes(scratch: _Scratch) -> list[Any]:
            # Heads lie side by side in each cell, as in llama.cpp's cache.
            shape = (_HEAD, _N_KEY_HEADS, _N_CELLS)
            query, mask = scratch.row(_HEAD, 1, _N_HEADS), scratch.row(_N_CELLS, 64, kind=_F16)
            made = []
            for _ in range(count):
                keys, values = (_permute(scratch.values, scratch.matrix(kind.id, *shape), 0, 2, 1, 3) for _ in range(2))
                made.append(_attention(scratch.values, query, keys, values, mask, 0.1, 0.0, 0.0))
            return made

        seconds = self._time(nodes, self._plain)
        return count * pair * (_N_HEADS // _N_KEY_HEADS) / seconds if seconds else None

    def node_seconds(self) -> float:
        """Seconds of one of many tiny operations that wait for each other."""

        def nodes(scratch: _Scratch) -> list[Any]:
            matrix, value = scratch.matrix(BY_NAME["q8_0"].id, 256, 256), scratch.row(256)
            for _ in range(_NODES // 2):
                value = _norm(scratch.values, _mul_mat(scratch.values, matrix, value), 1e-5)
            return [value]

        return (self._time(nodes, self._plain) or 0.0) / _NODES

    def _matrices(self, kind: GgmlType, n_bytes: int, n_rows: int, buffer: Any) -> float | None:
        def nodes(scratch: _Scratch) -> list[Any]:
            row = scratch.row(_ROWS, n_rows)
            return [
                _mul_mat(scratch.values, scratch.matrix(kind.id, _ROWS, _COLUMNS), row)
                for _ in range(_count(kind, n_bytes))
            ]

        return self._time(nodes, buffer)

    def _time(self, nodes: _Nodes, buffer: Any) -> float | None:
        """Median seconds of the nodes, or None where the device or the buffer does not take them."""
        with _allocated(self._device, nodes, buffer, self._plain) as graph:
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

    def _run(self, graph: Any) -> None:
        _compute(self.backend, graph)
        _synchronize(self.backend)


@contextmanager
def _allocated(device: int, nodes: _Nodes, for_weights: Any, for_values: Any) -> Iterator[Any]:
    """A graph of the nodes whose tensors have memory; None where there is none or the device cannot compute it."""
    scratch, buffers = _Scratch(), []
    try:
        ends = nodes(scratch)
        buffers = [_allocate(scratch.weights, for_weights), _allocate(scratch.values, for_values)]
        if not all(buffers) or not all(_supports(device, end) for end in ends):
            yield None
            return
        for buffer in buffers:
            _clear(buffer, _FILL)
        graph = _new_graph(scratch.values, 4096, False)
        for end in ends:
            _expand(graph, end)
        yield graph
    finally:
        for buffer in buffers:
            if buffer:
                _free_buffer(buffer)
        scratch.free()


def _known(rates: dict[str, float | None]) -> dict[str, float]:
    return {name: rate for name, rate in rates.items() if rate is not None}


def _count(kind: GgmlType, n_bytes: int) -> int:
    return max(1, n_bytes // kind.bytes_for(_ROWS * _COLUMNS))


def _extra_buffers(device: int, registry: Any) -> Iterator[Any]:
    address = _function(registry, b"ggml_backend_dev_get_extra_bufts")
    if not address:
        return
    found = ctypes.CFUNCTYPE(ctypes.POINTER(_P), _P)(address)(device)
    index = 0
    while found and found[index]:
        yield found[index]
        index += 1
