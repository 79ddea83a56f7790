"""Runs ggml's attention on the processor on given numbers, and computes the same with numpy."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from core.llama.devices import device_handles
from core.llama.library import declare, ggml
from core.machine.kernel_probe import (
    F16,
    F32,
    OpTimer,
    P,
    Scratch,
    _allocate,
    _expand,
    _free_buffer,
    _new_graph,
    attention,
)

_set = declare(ggml, "ggml_backend_tensor_set", None, P, P, ctypes.c_size_t, ctypes.c_size_t)
_get = declare(ggml, "ggml_backend_tensor_get", None, P, P, ctypes.c_size_t, ctypes.c_size_t)
_add_sinks = declare(ggml, "ggml_flash_attn_ext_add_sinks", None, P, P)

Numbers = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Case:
    """Attention of rows to cells, which are kept in F16.

    Shapes: ``query`` (n_heads, n_rows, length), ``keys`` and ``values`` (n_kv_heads, n_cells, length), ``is_visible``
    (n_rows, n_cells), ``sinks`` (n_heads).
    """

    query: Numbers
    keys: Numbers
    values: Numbers
    is_visible: npt.NDArray[np.bool_]
    sinks: Numbers | None = None

    @property
    def scale(self) -> float:
        """What scores are multiplied with."""
        return float(1.0 / np.sqrt(self.query.shape[-1]))


def by_numpy(case: Case) -> Numbers:
    """Return the result, shape (n_rows, n_heads, length)."""
    n_heads, n_kv_heads = len(case.query), len(case.keys)
    keys, values = (
        np.repeat(part.astype(np.float16).astype(np.float64), n_heads // n_kv_heads, axis=0)
        for part in (case.keys, case.values)
    )
    scores = np.einsum("hrd,hcd->hrc", case.query.astype(np.float64), keys) * case.scale
    scores = np.where(case.is_visible[None], scores, -np.inf)
    if case.sinks is not None:
        sinks = np.broadcast_to(case.sinks[:, None, None].astype(np.float64), (*scores.shape[:2], 1))
        scores = np.concatenate((scores, sinks), axis=-1)
        values = np.concatenate((values, np.zeros((n_heads, 1, values.shape[-1]))), axis=1)
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    found: Numbers = np.einsum("hrc,hcd->rhd", shares, values).astype(np.float32)
    return found


def by_ggml(case: Case, n_threads: int) -> Numbers:
    """Return the result of llama.cpp's flash attention, shape (n_rows, n_heads, length)."""
    timer, scratch = OpTimer(device_handles("CPU")[0], "cpu", n_threads, 0.0), Scratch()
    n_heads, n_rows, length = case.query.shape
    n_kv_heads, n_cells, _ = case.keys.shape
    query = scratch.row(length, n_rows, n_heads)
    keys, values = (scratch.matrix(F16, length, n_cells, n_kv_heads) for _ in range(2))
    mask = scratch.row(n_cells, n_rows, kind=F16)
    result = attention(scratch.values, query, keys, values, mask, case.scale, 0.0, 0.0)
    data: list[tuple[Any, npt.NDArray[Any]]] = [
        (query, case.query.astype(np.float32)),
        (keys, case.keys.astype(np.float16)),
        (values, case.values.astype(np.float16)),
        (mask, np.where(case.is_visible, 0.0, -np.inf).astype(np.float16)),
    ]
    if case.sinks is not None:
        sinks = scratch.row(n_heads, kind=F32)
        _add_sinks(result, sinks)
        data.append((sinks, case.sinks.astype(np.float32)))
    buffers = [_allocate(part, timer.plain) for part in (scratch.weights, scratch.values)]
    try:
        for tensor, numbers in data:
            flat = np.ascontiguousarray(numbers)
            _set(tensor, flat.ctypes.data, 0, flat.nbytes)
        graph = _new_graph(scratch.values, 64, False)
        _expand(graph, result)
        timer.run(graph)
        found = np.empty((n_rows, n_heads, length), np.float32)
        _get(result, found.ctypes.data, 0, found.nbytes)
        return found
    finally:
        for buffer in buffers:
            _free_buffer(buffer)
        scratch.free()
        timer.close()
