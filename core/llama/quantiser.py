"""Writes a model with other tensor types (``llama_model_quantize``)."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable
from dataclasses import dataclass

from core.llama.library import MIB, L, log_to_stderr, start_backend
from core.values.errors import SlipstreamError

TensorCallback = Callable[[str], None]
"""Called with the name of each tensor before it is written."""

# llama.cpp's own bound on the rows in memory at once is 8 GiB.
_MOST_BUFFERED = 1 << 30
_TENSOR = re.compile(r"\[ *\d+/ *(?P<count>\d+)\] (?P<name>\S+)")
_SIZE = re.compile(r"quant size += +(?P<mib>[\d.]+) MiB")
_FALLBACK = re.compile(r"(?P<count>\d+) of \d+ tensor\(s\) required fallback")
_FAILURE = re.compile(r"failed to quantize: (?P<reason>.+)", re.DOTALL)


class QuantiserRefused(SlipstreamError):
    """llama.cpp could not quantise; the text is its reason."""


@dataclass(frozen=True, slots=True)
class QuantiseOutcome:
    """Bytes of all tensors (to a hundredth of a MiB), how many there are, and how many got a larger type."""

    n_bytes: int
    n_tensors: int
    n_fallback: int


def quantise(
    source: str,
    target: str | None,
    *,
    file_type: int,
    n_threads: int,
    may_requantise: bool,
    progress: TensorCallback = lambda name: None,
) -> QuantiseOutcome:
    """Write ``source`` (the first part of a split model) to ``target`` as ``file_type`` (``llama_ftype``).

    ``target`` None writes nothing and only returns the size. Raises QuantiserRefused; an unfinished file stays. Bad
    input can abort the process: call it in a child process.
    """
    start_backend()
    params = L.llama_model_quantize_default_params()
    params.nthread, params.ftype = n_threads, file_type
    params.allow_requantize, params.dry_run = may_requantise, target is None
    params.max_buf_size = _MOST_BUFFERED
    listener = _LogReader(progress)
    # Progress is only in the log. The callback runs on this thread, so it may be Python.
    callback = L.llama_log_callback(listener.hear)
    L.llama_log_set(callback, ctypes.c_void_p(0))
    try:
        code = L.llama_model_quantize(os.fsencode(source), os.fsencode(target or os.devnull), ctypes.byref(params))
    finally:
        log_to_stderr()
    if code:
        raise QuantiserRefused(listener.reason or "llama.cpp gives no reason")
    return QuantiseOutcome(round(listener.mib * MIB), listener.n_tensors, listener.n_fallback)


class _LogReader:
    """Parses the log of ``llama_model_quantize_impl``."""

    def __init__(self, progress: TensorCallback) -> None:
        self._progress = progress
        self.n_tensors = self.n_fallback = 0
        self.mib = 0.0
        self.reason = ""

    def hear(self, _level: int, text: bytes, _data: object) -> None:
        line = text.decode("utf-8", "replace")
        if found := _TENSOR.match(line):
            self.n_tensors = int(found["count"])
            self._progress(found["name"])
        elif found := _SIZE.search(line):
            self.mib = float(found["mib"])
        elif found := _FALLBACK.search(line):
            self.n_fallback = int(found["count"])
        elif found := _FAILURE.search(line):
            self.reason = found["reason"].strip()
