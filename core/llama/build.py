"""This build of llama.cpp: what it is, and whether it fits these bindings and this processor."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from core.values.errors import SlipstreamError

# llama.cpp is imported within functions: a process that only asks for backends must not load it.

# Features that the patches in packaging/first_start add. The first marks a build with Slipstream's own CPU
# attention, which reads only the cells of each sequence.
OWN_ATTENTION = "SLIPSTREAM"
# Of the builds that keep the graphs of narrow batches.
KEPT_GRAPHS = "SLIPSTREAM_GRAPHS"
# Large buffers ask the kernel for huge pages.
HUGE_PAGES = "SLIPSTREAM_HUGE_PAGES"


def features() -> tuple[str, ...]:
    """Return the features that this build of llama.cpp has and uses here: "CPU", "AVX2" and so on."""
    from core.llama.library import L

    info = L.llama_print_system_info().decode("utf-8", "replace")
    parts = (part.strip() for part in info.replace(":", "|").split("|"))
    return tuple(part.removesuffix(" = 1") for part in parts if part and not part.endswith("= 0"))


def llama_version() -> str:
    """Return the version of llama.cpp."""
    from core.llama.library import L

    found = L.llama_version()
    return found.decode("utf-8", "replace") if isinstance(found, bytes) else str(found)


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


# -- what the self-test checks ----------------------------------------------------------------------------------

# Free memory of a GPU that a tiny model and its driver surely have room in: a full one says nothing of the build. The
# model is spread over all GPUs.
_GPU_BYTES = 1 << 30
# Structures are passed to C by value: sizes of another version would corrupt memory silently.
_STRUCT_SIZES = {"llama_model_params": 80, "llama_context_params": 160, "llama_batch": 56, "llama_token_data": 12}


class SelfTestFailed(SlipstreamError):
    """A check failed; the text says which."""


def check_versions() -> None:
    """Check that the pinned release is installed."""
    from core.llama.library import PINNED_VERSION

    found = version("llama-cpp-python")
    if found != PINNED_VERSION:
        raise SelfTestFailed(f"llama-cpp-python is {found}, but Slipstream is written for {PINNED_VERSION}.")


def check_structures() -> None:
    """Check the sizes of structures passed by value, and the default context parameters."""
    from core.llama.library import L

    if sys.maxsize > 2**32:
        for name, expected in _STRUCT_SIZES.items():
            found = ctypes.sizeof(getattr(L, name))
            if found != expected:
                raise SelfTestFailed(f"The structure {name} has {found} bytes instead of {expected}.")
    params = L.llama_context_default_params()
    if (params.n_ctx, params.n_batch, params.n_ubatch, params.n_seq_max) != (512, 2048, 512, 1):
        raise SelfTestFailed("llama.cpp's default context parameters are not the expected ones.")


def check_decode(path: str) -> None:
    """Check that the tiny model at ``path`` computes finite numbers: on the processor, and on GPUs if all have room."""
    from core.llama.devices import list_devices

    _decode(path, n_gpu_layers=0)
    if min((device.free for device in list_devices() if device.is_gpu), default=0) >= _GPU_BYTES:
        _decode(path, n_gpu_layers=-1)


def _decode(path: str, n_gpu_layers: int) -> None:
    import numpy as np

    from core.llama.context import Batch, Context, ContextOptions, DecodeStatus
    from core.llama.model import Model

    model = Model(path, n_gpu_layers=n_gpu_layers)
    context = Context(
        model, ContextOptions(n_cells=256, n_sequences=2, n_outputs=2, n_batch=64, n_ubatch=64, n_threads=1)
    )
    batch = Batch(64)
    batch.add_run(np.arange(32, dtype=np.int32), 0, 0, n_wanted=1)
    status = context.decode(batch)
    context.synchronize()
    if status is not DecodeStatus.OK or not np.isfinite(context.logits(1)).all():
        raise SelfTestFailed(f"A test decode ended with {status.name} or with numbers that are not finite.")
    context.close()
    model.close()
