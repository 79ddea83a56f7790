"""How fast each device multiplies each tensor type: ggml's own kernels, on matrices that no cache holds.

The matrices lie where llama.cpp would put them: where a processor's kernels want another order of the weights, in the
buffers that reorder them (``ggml_backend_dev_get_extra_bufts``).
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from core.llama.devices import Device
from core.llama.library import declare, ggml
from core.machine.attention_probe import AttentionHeads, by_flash, by_products
from core.machine.op_timer import F16, F32, OpTimer, P, Scratch, find_device, matrices, mul_mat
from models.estimate.speed.probe import Probe
from models.gguf.tensor_types import BY_NAME, GgmlType

PROBED = (
    "F32", "F16", "BF16", "Q8_0", "Q6_K", "Q5_K", "Q4_K", "Q3_K", "Q2_K", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "IQ4_NL",
    "IQ4_XS", "IQ3_S", "IQ3_XXS", "IQ2_XXS", "MXFP4",
)  # fmt: skip
PROBED_CACHES = ("F16", "Q8_0", "Q4_0")
_WIDTH = 2048
_HEADS, _N_CELLS = AttentionHeads(8, 4, 128, 128), 1024
_NODES, _FEW_ROWS = 512, 5
# Where a cache ends is looked for with matrices of 4 MB: in steps of half a power of two, up to half a gigabyte. It
# matters where few bytes are read so many times as fast as many.
_NARROW, _MOST_SIZES, _CLIFF = 1024, 15, 1.25
_FEW_OF_CACHE = 0.5
# Of so many times what a cache holds nothing stays in it; to fill more matrices than that takes most of the time.
_BEYOND_CACHE, _LEAST_BYTES = 3, 128 << 20
_ROUNDS = 2
_norm = declare(ggml, "ggml_rms_norm", P, P, P, ctypes.c_float)


def probe(device: Device, *, n_threads: int, n_bytes: int, seconds: float = 2.5) -> Probe | None:
    """Measure one device in about ``seconds``, each type on up to ``n_bytes`` of matrices; None where it cannot.

    Call it in a process of its own: what a backend does not like ends the process.
    """
    handle = find_device(device.name)
    if handle is None:
        return None
    n_measured = _ROUNDS * (2 * len(PROBED) + len(PROBED_CACHES) + 4) + _MOST_SIZES
    bench = _Bench(OpTimer(handle, device.kind.value, n_threads, seconds / n_measured))
    try:
        cache = 0.0 if bench.timer.is_gpu else cache_size(bench.rates_by_size(n_bytes))
        enough = min(n_bytes, max(_LEAST_BYTES, int(_BEYOND_CACHE * cache))) if cache else n_bytes
        return _best([bench.probe(enough, cache) for _ in range(_ROUNDS)])
    finally:
        bench.timer.close()


def _best(rounds: Sequence[Probe]) -> Probe | None:
    """The best of each: what disturbs a measurement only makes it slower, and seldom lasts until the next round."""
    weights: dict[str, float] = {}
    cached: dict[str, float] = {}
    near: dict[str, float] = {}
    for one in rounds:
        for best, rates in ((weights, one.weights), (cached, one.cached), (near, one.near)):
            best |= {name: max(rate, best.get(name, 0.0)) for name, rate in rates.items()}
    node, row = min(one.node for one in rounds), min(one.row for one in rounds)
    return Probe(weights, cached, node, row, near, rounds[0].cache) if weights else None


def cache_size(rates: Mapping[int, float]) -> float:
    """Return how many bytes stay in a device's cache from one reading to the next, 0 where that makes no difference.

    ``rates`` are bytes per second by the size of what is read again and again.
    """
    sizes = sorted(rates)
    if not sizes:
        return 0.0
    # The innermost caches are faster still, and hold next to nothing.
    near, far = median(sorted(rates.values())[len(rates) // 2 :]), rates[sizes[-1]]
    if near < _CLIFF * far:
        return 0.0
    middle = math.sqrt(near * far)
    return float(max((size for size in sizes if rates[size] >= middle), default=0))


class _Bench:
    """What is measured on one device."""

    def __init__(self, timer: OpTimer) -> None:
        self.timer = timer

    def probe(self, n_bytes: int, cache: float) -> Probe:
        """Measure everything once; with a ``cache``, also what few bytes take."""
        rates = {name: self.matrix_rate(BY_NAME[name.lower()], n_bytes) for name in PROBED}
        few = int(cache * _FEW_OF_CACHE)
        near = {name: self.matrix_rate(BY_NAME[name.lower()], few) for name in PROBED} if cache else {}
        caches = {name: self.cache_rate(BY_NAME[name.lower()], n_bytes) for name in PROBED_CACHES}
        return Probe(_known(rates), _known(caches), self.node_seconds(), self.row_cost(n_bytes), _known(near), cache)

    def rates_by_size(self, n_bytes: int) -> dict[int, float]:
        """Bytes per second of matrices of more and more bytes, up to ``n_bytes``, of the type that is simplest."""
        each = 4 * _NARROW * _NARROW
        found: dict[int, float] = {}
        for step in range(_MOST_SIZES):
            count = round(2 ** (step / 2))
            if count * each > n_bytes:
                break
            seconds = self.timer.time(matrices(F32, _NARROW, count), self.timer.plain)
            if seconds:
                found[count * each] = count * each / seconds
        return found

    def matrix_rate(self, kind: GgmlType, n_bytes: int) -> float | None:
        """Bytes per second of matrices times one row, in the order of weights that llama.cpp would choose."""
        for buffer in (*self.timer.reordering, self.timer.plain):
            seconds = self._matrices(kind, n_bytes, 1, buffer)
            if seconds is not None:
                return _count(kind, n_bytes) * kind.bytes_for(_WIDTH * _WIDTH) / seconds
        return None

    def row_cost(self, n_bytes: int) -> float:
        """What each further row adds, as a share of one row."""
        kind = BY_NAME["q8_0"]
        one, few = (self._matrices(kind, n_bytes, n_rows, self.timer.plain) for n_rows in (1, _FEW_ROWS))
        return max(few / one - 1.0, 0.0) / (_FEW_ROWS - 1) if one and few else 1.0

    def cache_rate(self, kind: GgmlType, n_bytes: int) -> float | None:
        """Bytes per second of attention; where heads share keys, these count once for each head as the CPU reads."""
        pair = 2 * kind.bytes_for(_HEADS.key_length * _N_CELLS * _HEADS.n_key_heads)
        count = max(1, n_bytes // pair)
        ways = [by_flash(_HEADS, 1, _N_CELLS, count, kind.id)]
        if kind.id == F16 and not self.timer.is_gpu:
            ways.append(by_products(_HEADS, 1, _N_CELLS, count))
        seconds = [found for way in ways if (found := self.timer.time(way, self.timer.plain))]
        return count * pair * (_HEADS.n_heads // _HEADS.n_key_heads) / min(seconds) if seconds else None

    def node_seconds(self) -> float:
        """Seconds of one of many tiny operations that wait for each other."""

        def nodes(scratch: Scratch) -> list[Any]:
            matrix, value = scratch.matrix(BY_NAME["q8_0"].id, 256, 256), scratch.row(256)
            for _ in range(_NODES // 2):
                value = _norm(scratch.values, mul_mat(scratch.values, matrix, value), 1e-5)
            return [value]

        return (self.timer.time(nodes, self.timer.plain) or 0.0) / _NODES

    def _matrices(self, kind: GgmlType, n_bytes: int, n_rows: int, buffer: Any) -> float | None:
        return self.timer.time(matrices(kind.id, _WIDTH, _count(kind, n_bytes), n_rows), buffer)


def _known(rates: dict[str, float | None]) -> dict[str, float]:
    return {name: rate for name, rate in rates.items() if rate is not None}


def _count(kind: GgmlType, n_bytes: int) -> int:
    return max(1, n_bytes // kind.bytes_for(_WIDTH * _WIDTH))
