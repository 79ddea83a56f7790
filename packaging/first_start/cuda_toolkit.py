"""CUDA's compiler and libraries as NVIDIA publishes them for pip, for machines with a GPU and no toolkit.

They are installed into the venv, where llama.cpp is compiled with them and finds their libraries when it runs.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from first_start.errors import SetupError
from first_start.machine import BuildMachine, output_of

# As in pyproject.toml. It asks for a driver from this version on, and a GPU from Turing on.
VERSION = "13.0"
_OLDEST_DRIVER, _OLDEST_GPU = 580, (7, 5)
# The first CUDA that builds for GPUs from this compute capability on: Ampere, Ada and Hopper, Blackwell.
_FIRST_CUDA = (
    ((8, 0), (11, 0)), ((8, 6), (11, 1)), ((8, 9), (11, 8)), ((10, 0), (12, 8)), ((10, 3), (12, 9)), ((12, 0), (12, 8)),
    ((12, 1), (12, 9)),
)  # fmt: skip
# Download, installation and build.
_NEEDED_BYTES = 4_000_000_000
_FOLDER = Path("nvidia", "cu13")
_LIBRARIES = ("cudart", "cublas", "cublasLt")
_DRIVER = "libcuda.so.1"


def why_not(machine: BuildMachine) -> str:
    """Return what keeps a machine with an NVIDIA GPU from using these packages, and what helps; "" if nothing does."""
    if machine.system != "Linux" or machine.architecture not in ("x86_64", "aarch64"):
        return "Install the CUDA toolkit"
    if any(found < _OLDEST_GPU for found in _capabilities(machine)):
        return "Install a CUDA toolkit for this GPU (12 or older)"
    if machine.nvidia_driver < _OLDEST_DRIVER:
        return f"Update the driver to {_OLDEST_DRIVER} or newer, or install a CUDA toolkit for this one"
    return ""


def needed_by(machine: BuildMachine) -> str:
    """Return the version of CUDA that the GPUs need, if the system's compiler is older; "" where it is new enough.

    Distributions keep one version for years: Ubuntu's nvcc 12.0 knows no GPU that is newer than Hopper.
    """
    found = re.search(r"release (\d+)\.(\d+)", machine.nvcc_version)
    needed = max((_first_cuda(capability) for capability in _capabilities(machine)), default=(0, 0))
    is_old = found is not None and (int(found[1]), int(found[2])) < needed
    return ".".join(map(str, needed)) if is_old else ""


def _capabilities(machine: BuildMachine) -> list[tuple[int, int]]:
    found = (re.search(r", (\d+)\.(\d+)$", gpu) for gpu in machine.nvidia_gpus)
    return [(int(match[1]), int(match[2])) for match in found if match is not None]


def _first_cuda(capability: tuple[int, int]) -> tuple[int, int]:
    return next((cuda for since, cuda in reversed(_FIRST_CUDA) if capability >= since), (0, 0))


def check_free_space(folder: Path) -> None:
    """Raise SetupError if the disk of a folder has too little space for the packages."""
    free = shutil.disk_usage(folder).free
    if free < _NEEDED_BYTES:
        raise SetupError(f"They need {_NEEDED_BYTES / 1e9:.0f} GB of disk, and {free / 1e9:.1f} GB is free.")


def environment_of(site_packages: Path) -> dict[str, str]:
    """Return what tells CMake where the toolkit is. Not being an option, it leaves a build's key the same anywhere."""
    folder = site_packages / _FOLDER
    return {"CUDACXX": str(folder / "bin" / "nvcc"), "CUDAToolkit_ROOT": str(folder)}


def link_names(site_packages: Path) -> None:
    """Add the names under which compilers look for folders and libraries, which the packages leave out.

    Raises SetupError where a package or the driver's library is missing.
    """
    folder = site_packages / _FOLDER
    _link(folder / "lib64", Path("lib"))
    for name in _LIBRARIES:
        _link(folder / "lib" / f"lib{name}.so", Path(_library_in(folder / "lib", name).name))
    (folder / "lib" / "stubs").mkdir(exist_ok=True)
    _link(folder / "lib" / "stubs" / "libcuda.so", _driver_library())


def link_libraries(site_packages: Path) -> None:
    """Let the installed llama.cpp find the libraries: it looks for them in its own folder."""
    own = site_packages / "llama_cpp" / "lib"
    for name in _LIBRARIES:
        library = _library_in(site_packages / _FOLDER / "lib", name)
        _link(own / library.name, Path("..", "..", _FOLDER, "lib", library.name))


def _library_in(folder: Path, name: str) -> Path:
    found = sorted(folder.glob(f"lib{name}.so.[0-9]*"))
    if not found:
        raise SetupError(f"CUDA's packages hold no lib{name}.so in {folder}.")
    return found[0]


def _driver_library() -> Path:
    """Return the driver's library, which programs are linked with. Raises SetupError."""
    known = output_of("ldconfig", "-p") or output_of("/sbin/ldconfig", "-p")
    found = re.search(rf"^\s*{re.escape(_DRIVER)} .*=> (\S+)$", known, re.MULTILINE)
    if found is None:
        raise SetupError(f"The system does not know where {_DRIVER} of NVIDIA's driver is.")
    return Path(found.group(1))


def _link(place: Path, target: Path) -> None:
    place.unlink(missing_ok=True)
    place.symlink_to(target)
