"""Where llama.cpp's log goes: nowhere or to stderr, never into Python."""

from __future__ import annotations

import ctypes

from core.llama.library import L, address_of

# llama_max_devices() takes no arguments and only reads a constant: as a log callback it does nothing, in C.
_NOTHING = ctypes.cast(address_of(L._lib, "llama_max_devices"), L.llama_log_callback)


def silence() -> None:
    """Drop every log line without leaving C."""
    L.llama_log_set(_NOTHING, ctypes.c_void_p(0))


def to_stderr() -> None:
    """Let llama.cpp print to stderr, its default."""
    L.llama_log_set(L.llama_log_callback(), ctypes.c_void_p(0))
