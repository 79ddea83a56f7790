"""The shared libraries of llama.cpp, loaded without the high-level Python package around them."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import os
import sys
import types
from typing import Any

from core.values.errors import SlipstreamError
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
        raise LibraryMissing(Sentence("llama.cpp is not installed. {how}: it builds it for this machine.", how=how))
    if "llama_cpp" not in sys.modules:
        package = types.ModuleType("llama_cpp")
        package.__path__ = list(spec.submodule_search_locations)
        package.__spec__ = spec
        sys.modules["llama_cpp"] = package
    try:
        return importlib.import_module("llama_cpp.llama_cpp"), importlib.import_module("llama_cpp._ggml").libggml
    except (OSError, RuntimeError, FileNotFoundError) as error:
        how = advice(
            f"Delete .venv and run {PROGRAM}",
            Sentence("Quit, delete the folder .venv and start it again"),
        )
        raise LibraryMissing(
            Sentence("llama.cpp's libraries do not load: {error}. {how}.", error=error, how=how)
        ) from error


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
