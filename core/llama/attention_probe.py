"""How long attention takes, by llama.cpp's two ways to compute it: in one kernel, and as products of matrices.

Each is built as ``llm_graph_context::build_attn_mha`` (llama-graph.cpp) builds it.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

from core.llama.library import declare, ggml
from core.llama.op_timer import F16, F32, Nodes, OpTimer, P, Scratch, attention, find_device, matrices, mul_mat, permute
from models.ggml_types import BY_NAME

_softmax = declare(ggml, "ggml_soft_max_ext", P, P, P, P, ctypes.c_float, ctypes.c_float)
_contiguous = declare(ggml, "ggml_cont", P, P, P)
FEW, MANY = 256, 2048
# Enough layers that a processor's own caches do not hold all keys; matrices of which they hold none.
_N_LAYERS = 4
_KIND, _WIDTH, _N_MATRICES = BY_NAME["q8_0"], 2048, 8
_SECONDS = 0.02
_MASK_ROWS = 64
_SCALE = 0.1


class Heads(NamedTuple):
    """The heads of a layer: how many ask, how many have keys and values, and how long these are."""

    n_heads: int
    n_key_heads: int
    key_length: int
    value_length: int


class AttentionTimes(NamedTuple):
    """Seconds of one layer: by flash attention, and by products of matrices with the scores between them."""

    flash: float
    products: float


class AttentionProbe(NamedTuple):
    """Attention of one row to few and to many cells (``FEW``, ``MANY``), and the bytes of weights read in a second."""

    few: AttentionTimes
    many: AttentionTimes
    bytes_per_second: float


def by_flash(heads: Heads, n_rows: int, n_cells: int, n_layers: int, kind: int = F16) -> Nodes:
    """Return what makes ``n_layers`` of flash attention to cells of a ``ggml_type``."""

    def cells(scratch: Scratch, length: int) -> Any:
        # The heads of a cell lie side by side.
        return permute(scratch.values, scratch.matrix(kind, length, heads.n_key_heads, n_cells), 0, 2, 1, 3)

    def nodes(scratch: Scratch) -> list[Any]:
        query = scratch.row(heads.key_length, n_rows, heads.n_heads)
        mask = scratch.row(n_cells, _MASK_ROWS, kind=F16)
        pairs = [(cells(scratch, heads.key_length), cells(scratch, heads.value_length)) for _ in range(n_layers)]
        return [attention(scratch.values, query, keys, values, mask, _SCALE, 0.0, 0.0) for keys, values in pairs]

    return nodes


def by_products(heads: Heads, n_rows: int, n_cells: int, n_layers: int) -> Nodes:
    """Return what makes ``n_layers`` of attention to cells of F16 without flash attention."""

    def layer(scratch: Scratch, query: Any, mask: Any) -> Any:
        cells = scratch.matrix(F16, heads.key_length, heads.n_key_heads, n_cells)
        scores = mul_mat(scratch.values, permute(scratch.values, cells, 0, 2, 1, 3), query)
        weights = _softmax(scratch.values, scores, mask, _SCALE, 0.0)
        # Values lie by their own place here, not by cell.
        found = mul_mat(scratch.values, scratch.matrix(F16, n_cells, heads.value_length, heads.n_key_heads), weights)
        return _contiguous(scratch.values, permute(scratch.values, found, 0, 2, 1, 3))

    def nodes(scratch: Scratch) -> list[Any]:
        query = scratch.row(heads.key_length, n_rows, heads.n_heads)
        mask = scratch.row(n_cells, _MASK_ROWS, kind=F32)
        return [layer(scratch, query, mask) for _ in range(n_layers)]

    return nodes


def probe_attention(heads: Heads, n_threads: int) -> AttentionProbe | None:
    """Measure on the processor, for some tens of milliseconds; None where this build cannot compute one of the ways."""
    device = find_device("CPU")
    if device is None:
        return None
    timer = OpTimer(device, "cpu", n_threads, _SECONDS)
    try:
        few, many = (_times(timer, heads, n_cells) for n_cells in (FEW, MANY))
        seconds = timer.time(matrices(_KIND.id, _WIDTH, _N_MATRICES), timer.plain)
    finally:
        timer.close()
    if few is None or many is None or not seconds:
        return None
    return AttentionProbe(few, many, _N_MATRICES * _KIND.bytes_for(_WIDTH * _WIDTH) / seconds)


def _times(timer: OpTimer, heads: Heads, n_cells: int) -> AttentionTimes | None:
    shape = (heads, 1, n_cells, _N_LAYERS)
    flash, products = timer.time(by_flash(*shape), timer.plain), timer.time(by_products(*shape), timer.plain)
    return AttentionTimes(flash / _N_LAYERS, products / _N_LAYERS) if flash and products else None
