"""What llama.cpp reports about itself and this machine; ``python -m core.llama.checks.system`` prints it as JSON."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from core.llama.devices import list_devices
from core.llama.heads import KINDS, why_unavailable
from core.llama.library import L
from core.llama.log import silence
from core.values.engine_options import LlamaSystem
from core.values.errors import SlipstreamError

# Features that packaging/first_start/llama_sources.cmake adds. This one marks a build with Slipstream's own CPU
# attention, which reads only the cells of each sequence.
OWN_ATTENTION = "SLIPSTREAM"


def describe() -> LlamaSystem:
    """Return llama.cpp's report. It starts the backends, so call it in a process that may crash."""
    try:
        package = version("llama-cpp-python")
    except PackageNotFoundError:
        package = "unknown"
    devices = list_devices()
    return LlamaSystem(
        package=package,
        version=llama_version(),
        features=features(),
        # llama_supports_gpu_offload says yes to every build that can use devices of other machines.
        can_offload=any(device.is_gpu for device in devices),
        devices=devices,
        heads={kind: why_unavailable(kind) for kind in KINDS},
    )


def features() -> tuple[str, ...]:
    """Return the features that this build of llama.cpp has and uses here: "CPU", "AVX2" and so on."""
    info = L.llama_print_system_info().decode("utf-8", "replace")
    parts = (part.strip() for part in info.replace(":", "|").split("|"))
    return tuple(part.removesuffix(" = 1") for part in parts if part and not part.endswith("= 0"))


def llama_version() -> str:
    """Return the version of llama.cpp."""
    found = L.llama_version()
    return found.decode("utf-8", "replace") if isinstance(found, bytes) else str(found)


def main() -> int:
    """Print ``describe()`` as one JSON object; exit code 1 with a sentence on stderr where that fails."""
    silence()
    try:
        print(json.dumps(asdict(describe())))
    except SlipstreamError as error:
        print(error.message, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())


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
