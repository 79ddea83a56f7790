"""The cache of llama.cpp builds. A build takes minutes, and one for other flags or another CPU would crash."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from first_start import cuda_toolkit
from first_start.llama_build import Backend, BuildPlan, build_environment, source_files
from first_start.machine import BuildMachine

_KEEP = 6
_BUILDING = ".building-"
_ABANDONED_S = 86_400
_USER_FLAGS = ("CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "CUDAFLAGS", "CUDAARCHS", "SKBUILD_CMAKE_ARGS")


def build_key(
    version: str,
    plan: BuildPlan,
    machine: BuildMachine,
    environment: Mapping[str, str],
    recipe: Path | None = None,
) -> str:
    """Return the key of a build. Equal keys mean that the wheel may be used. Python's version is not part of it.

    ``recipe`` is the file that decides how llama.cpp's sources are changed; None means the set-up's own patches. One
    wheel fits all versions of Python (tag py3-none), because its libraries are loaded with ctypes.
    """
    on_gpu = plan.backend is Backend.CUDA
    parts = {
        "version": version,
        "cmake": build_environment(plan, environment)["CMAKE_ARGS"],
        "sources": _checksum(*([recipe] if recipe else source_files())),
        "user": {name: environment[name] for name in _USER_FLAGS if environment.get(name)},
        "compiler": plan.compiler.version if plan.compiler else "",
        "system": [machine.system, machine.architecture, machine.libc],
        "instructions": machine.instructions,
        "gpu": [machine.nvidia_gpus, machine.nvcc_version] if on_gpu else [],
        **({"cuda": cuda_toolkit.VERSION} if plan.fetches_cuda else {}),
    }
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
    return f"{version}-{plan.backend.value.lower()}-{digest}"


def _checksum(*files: Path) -> str:
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def cache_folder(environment: Mapping[str, str], platform: str = sys.platform) -> Path:
    """Return the folder that keeps the builds."""
    if environment.get("SLIPSTREAM_CACHE"):
        return Path(os.path.expanduser(environment["SLIPSTREAM_CACHE"])) / "wheels"
    if environment.get("SLIPSTREAM_HOME"):
        return Path(os.path.expanduser(environment["SLIPSTREAM_HOME"])) / "cache" / "wheels"
    # A user whom the system does not know, as in a container, may have no home: ``Path.home`` raises then.
    home = Path(os.path.abspath(os.sep), os.path.expanduser("~").removeprefix("~"))
    if platform == "darwin":
        return home / "Library" / "Caches" / "slipstream" / "wheels"
    given = Path(environment.get("XDG_CACHE_HOME", ""))
    return (given if given.is_absolute() else home / ".cache") / "slipstream" / "wheels"


class WheelCache:
    """Builds by their key, one folder each. The oldest go when there are more than a few."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find(self, key: str) -> Path | None:
        """Return the wheel of a build, or None."""
        wheels = sorted((self.folder / key).glob("*.whl"))
        if not wheels:
            return None
        os.utime(wheels[0].parent)
        return wheels[0]

    def work_folder(self, key: str) -> Path:
        """Return the folder to build in. It is beside the finished builds, so that ``keep`` only has to rename it."""
        return self.folder / f"{_BUILDING}{key}-{os.getpid()}"

    def keep(self, key: str, wheel: Path) -> Path:
        """Move a finished wheel's folder to its place, whole or not at all."""
        place = self.folder / key
        self._failure(key).unlink(missing_ok=True)
        shutil.rmtree(place, ignore_errors=True)
        wheel.parent.rename(place)
        self._drop_oldest()
        return place / wheel.name

    def note_failure(self, key: str) -> None:
        """Remember that a build failed here, so that it is not tried again at every change."""
        self._failure(key).touch()

    def has_failed(self, key: str) -> bool:
        """Whether a build was tried before and failed."""
        return self._failure(key).exists()

    def _failure(self, key: str) -> Path:
        return self.folder / f"{key}.failed"

    def forget(self, key: str) -> None:
        """Remove a build, for example because its self-test failed."""
        if not key:
            return
        shutil.rmtree(self.folder / key, ignore_errors=True)

    def _drop_oldest(self) -> None:
        for left_over in self.folder.glob(f"{_BUILDING}*"):
            if time.time() - left_over.stat().st_mtime > _ABANDONED_S:
                shutil.rmtree(left_over, ignore_errors=True)
        builds = [entry for entry in self.folder.iterdir() if entry.is_dir() and not entry.name.startswith(".")]
        builds.sort(key=lambda entry: entry.stat().st_mtime, reverse=True)
        for build in builds[_KEEP:]:
            shutil.rmtree(build, ignore_errors=True)
