"""Which experts stay in host memory although their layers are on a GPU (``--n-cpu-moe`` of llama.cpp's programs)."""

from __future__ import annotations

import ctypes
from typing import Any

from core.llama.library import declare, ggml

_cpu_buffers = declare(ggml, "ggml_backend_cpu_buffer_type", ctypes.c_void_p)


class _Override(ctypes.Structure):
    """``llama_model_tensor_buft_override``."""

    _fields_ = [("pattern", ctypes.c_char_p), ("buffer_type", ctypes.c_void_p)]


def kept_in_host_memory(n_layers: int) -> Any:
    """Return the overrides for the experts of the first ``n_layers`` layers; they must outlive the load.

    The pattern is that of LLM_FFN_EXPS_REGEX in llama.cpp's common.h, for each layer.
    """
    patterns = [rf"blk\.{layer}\.ffn_(up|down|gate|gate_up)_(ch|)exps".encode() for layer in range(n_layers)]
    overrides = [_Override(pattern, _cpu_buffers()) for pattern in patterns]
    return (_Override * (n_layers + 1))(*overrides, _Override(None, None))
