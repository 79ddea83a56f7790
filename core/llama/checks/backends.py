"""Which GPU backends the installed llama.cpp has, without loading it."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

_GPU = ("cuda", "metal", "vulkan", "hip", "sycl", "musa", "cann", "opencl")


def gpu_backends() -> tuple[str, ...]:
    """Return the kinds of GPU that have a backend library ("cuda"); the machine may lack such a GPU."""
    names = [path.name.lower() for folder in _folders() for path in folder.glob("*ggml-*")]
    return tuple(kind for kind in _GPU if any(f"ggml-{kind}" in name for name in names))


def _folders() -> Iterator[Path]:
    if os.environ.get("LLAMA_CPP_LIB_PATH"):
        yield Path(os.environ["LLAMA_CPP_LIB_PATH"])
    spec = importlib.util.find_spec("llama_cpp")
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        yield Path(place) / "lib"
