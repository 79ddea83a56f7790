"""A flag that stops a running llama_decode, polled in C without the GIL."""

from __future__ import annotations

import ctypes
from typing import Any

from core.llama.library import L, address_of, ggml


class _TensorHead(ctypes.Structure):
    """The first fields of ``ggml_tensor``: all that ``ggml_is_empty`` reads."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("buffer", ctypes.c_void_p),
        ("ne", ctypes.c_int64 * 4),
        ("rest", ctypes.c_byte * 512),
    )


class AbortFlag:
    """Makes ``llama_decode`` return 2 once raised; works on the CPU and Metal backends (``llama_set_abort_callback``).

    The callback is ``ggml_is_empty`` itself, given a made-up tensor: it is empty, and the decode stops, as soon as
    one of its dimensions is zero. No Python runs in llama.cpp's threads.
    """

    def __init__(self) -> None:
        self._tensor = _TensorHead()
        self._tensor.ne[:] = [1, 1, 1, 1]
        self._callback = L.ggml_abort_callback(address_of(ggml, "ggml_is_empty"))

    def attach(self, context: Any) -> None:
        """Install the flag on a ``llama_context``."""
        L.llama_set_abort_callback(context, self._callback, ctypes.cast(ctypes.pointer(self._tensor), ctypes.c_void_p))

    def set(self) -> None:
        """Stop the running decode; may be called from any thread."""
        self._tensor.ne[0] = 0

    def clear(self) -> None:
        """Let decodes run."""
        self._tensor.ne[0] = 1

    @property
    def is_set(self) -> bool:
        """True while decodes are stopped."""
        return bool(self._tensor.ne[0] == 0)
