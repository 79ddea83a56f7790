"""The shared libraries of llama.cpp, loaded without the high-level Python package around them; and their log."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import os
import re
import sys
import types
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from core.values.errors import LLAMA_ERROR, SlipstreamError
from models.formatting.program import PROGRAM, advice
from models.formatting.sentence import Sentence

PINNED_VERSION = "0.3.36"


class LibraryMissing(SlipstreamError):
    """llama-cpp-python is not installed, or its shared libraries do not load."""


def _import_bindings() -> tuple[Any, Any]:
    """Import ``llama_cpp.llama_cpp`` without running ``llama_cpp/__init__.py``.

    That file imports the single-sequence ``Llama`` class with its own dependencies, which takes longer than
    loading the libraries and installs a log callback that llama.cpp's threads would run under the GIL.
    """
    # An abort in ggml would otherwise start gdb to print a backtrace, which stops the process for seconds.
    os.environ.setdefault("GGML_NO_BACKTRACE", "1")
    spec = importlib.util.find_spec("llama_cpp")
    if spec is None or not spec.submodule_search_locations:
        how = advice(f"Run {PROGRAM} once", Sentence("Quit and start Slipstream again"))
        raise LibraryMissing("llama.cpp is not installed. {how}: it builds it for this machine.", how=how)
    if "llama_cpp" not in sys.modules:
        package = types.ModuleType("llama_cpp")
        package.__path__ = list(spec.submodule_search_locations)
        package.__spec__ = spec
        sys.modules["llama_cpp"] = package
    try:
        return importlib.import_module("llama_cpp.llama_cpp"), importlib.import_module("llama_cpp._ggml").libggml
    except (OSError, RuntimeError, FileNotFoundError) as error:
        how = advice(f"Delete .venv and run {PROGRAM}", Sentence("Quit, delete the folder .venv and start it again"))
        raise LibraryMissing("llama.cpp's libraries do not load: {error}. {how}.", error=error, how=how) from error


INT32_P, FLOAT_P = ctypes.POINTER(ctypes.c_int32), ctypes.POINTER(ctypes.c_float)
L, ggml = _import_bindings()
"""llama.h's functions, and the library that holds ggml.h's and ggml-backend.h's."""

# Getters that return in well under a microsecond are called with the GIL held: releasing it costs more.
quick = ctypes.PyDLL(L._lib._name)
# Functions that wait for a device release the GIL; their C types differ from the bindings'.
waiting = ctypes.CDLL(L._lib._name)


def declare(library: Any, name: str, result: Any, *arguments: Any) -> Any:
    """Return function ``name`` of a ctypes library with its C types set."""
    function = getattr(library, name)
    function.restype = result
    function.argtypes = list(arguments)
    return function


_started = False


def start_backend() -> None:
    """Initialise llama.cpp once per process (``llama_backend_init``)."""
    global _started
    if not _started:
        L.llama_backend_init()
        _started = True


# llama_max_devices() takes no arguments and only reads a constant: as a log callback it does nothing, in C.
NO_LOG = ctypes.cast(L._lib.llama_max_devices, L.llama_log_callback)


def silence_log() -> None:
    """Drop every log line without leaving C."""
    L.llama_log_set(NO_LOG, ctypes.c_void_p(0))


def log_to_stderr() -> None:
    """Let llama.cpp print to stderr, its default."""
    L.llama_log_set(L.llama_log_callback(), ctypes.c_void_p(0))


# ``ggml_log_level``.
_ERROR = 4


def _print_error(level: int, text: bytes | None, _data: object) -> None:
    if level == _ERROR:
        os.write(2, LLAMA_ERROR.encode() + (text or b"").rstrip() + b"\n")


_ERRORS = L.llama_log_callback(_print_error)


def log_errors() -> None:
    """Print errors alone to stderr, each as a line with LLAMA_ERROR before it.

    ggml-cuda logs what was wrong, then aborts without saying it. The callback takes the GIL: on a processor no step
    logs a line, with CUDA a step whose graph is used again logs one.
    """
    L.llama_log_set(_ERRORS, ctypes.c_void_p(0))


# Bytes of the unit in llama.cpp's log.
MIB = 1 << 20
# "load_tensors: CPU_Mapped model buffer size = 11.47 MiB", and so on; RS is the recurrent state. The size of the cache
# is a line of its own, also with no_alloc: "llama_kv_cache: size = 4.50 MiB ( 1024 cells, ...".
_ALLOCATION = re.compile(
    r"(?P<use>model|KV|RS|compute|output)\s+buffer size\s+=\s+(?P<mib>[\d.]+) MiB"
    r"|(?P<cache>llama_kv_cache)\w*: size =\s+(?P<size>[\d.]+) MiB"
)


@contextmanager
def listening() -> Iterator[Counter[str]]:
    """Collect the bytes that are allocated inside the block, by their use in llama.cpp's log.

    Only for a process that does nothing else: C calls into Python.
    """
    collected, broken = Counter[str](), [b""]

    def take(_level: int, text: bytes, _data: object) -> None:
        # Long lines come in pieces.
        *lines, broken[0] = (broken[0] + (text or b"")).split(b"\n")
        for line in lines:
            if (found := _ALLOCATION.search(line.decode("utf-8", "replace"))) is not None:
                collected[found["use"] or found["cache"]] += round(float(found["mib"] or found["size"]) * MIB)

    callback = L.llama_log_callback(take)
    L.llama_log_set(callback, None)
    try:
        yield collected
    finally:
        silence_log()
