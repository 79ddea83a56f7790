"""Attention graphs as llama.cpp computes them: flash attention in one kernel, or matrix products.

Each graph is built as ``llm_graph_context::build_attn_mha`` (llama-graph.cpp) builds it.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

from core.llama.library import declare, ggml
from core.machine.op_timer import F16, F32, Nodes, P, Scratch, attention, mul_mat, permute

_softmax = declare(ggml, "ggml_soft_max_ext", P, P, P, P, ctypes.c_float, ctypes.c_float)
_contiguous = declare(ggml, "ggml_cont", P, P, P)
_MASK_ROWS = 64
_SCALE = 0.1


class AttentionHeads(NamedTuple):
    """The heads of a layer: numbers of query heads and of key/value heads, and lengths of keys and values."""

    n_heads: int
    n_key_heads: int
    key_length: int
    value_length: int


def by_flash(heads: AttentionHeads, n_rows: int, n_cells: int, n_layers: int, kind: int = F16) -> Nodes:
    """Return a builder of ``n_layers`` of flash attention to cells of a ``ggml_type``."""

    def cells(scratch: Scratch, length: int) -> Any:
        # The heads of a cell are adjacent in memory.
        return permute(scratch.values, scratch.matrix(kind, length, heads.n_key_heads, n_cells), 0, 2, 1, 3)

    def nodes(scratch: Scratch) -> list[Any]:
        query = scratch.row(heads.key_length, n_rows, heads.n_heads)
        mask = scratch.row(n_cells, _MASK_ROWS, kind=F16)
        pairs = [(cells(scratch, heads.key_length), cells(scratch, heads.value_length)) for _ in range(n_layers)]
        return [attention(scratch.values, query, keys, values, mask, _SCALE, 0.0, 0.0) for keys, values in pairs]

    return nodes


def by_products(heads: AttentionHeads, n_rows: int, n_cells: int, n_layers: int) -> Nodes:
    """Return a builder of ``n_layers`` of attention to F16 cells without flash attention."""

    def layer(scratch: Scratch, query: Any, mask: Any) -> Any:
        cells = scratch.matrix(F16, heads.key_length, heads.n_key_heads, n_cells)
        scores = mul_mat(scratch.values, permute(scratch.values, cells, 0, 2, 1, 3), query)
        weights = _softmax(scratch.values, scores, mask, _SCALE, 0.0)
        # Values are stored transposed here: by dimension, not by cell.
        found = mul_mat(scratch.values, scratch.matrix(F16, n_cells, heads.value_length, heads.n_key_heads), weights)
        return _contiguous(scratch.values, permute(scratch.values, found, 0, 2, 1, 3))

    def nodes(scratch: Scratch) -> list[Any]:
        query = scratch.row(heads.key_length, n_rows, heads.n_heads)
        mask = scratch.row(n_cells, _MASK_ROWS, kind=F32)
        return [layer(scratch, query, mask) for _ in range(n_layers)]

    return nodes
