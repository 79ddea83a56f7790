"""llama.cpp in the venv: installed as it is, taken from the cache of builds, or built; on the CPU if need be."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from first_start import amx, cuda_toolkit
from first_start.command import Log
from first_start.errors import CommandFailed, SetupError
from first_start.llama_build import Backend, BuildPlan, WheelBuild, plan_build, without_gpu
from first_start.machine import BuildMachine, look
from first_start.progress import SetupProgress
from first_start.venv_folder import VenvFolder
from first_start.wheel_cache import WheelCache, build_key

_RECORD = ".slipstream-llama"
# The folders of the libraries in site-packages.
_LIBRARIES = ("llama_cpp/lib", "lib")


def share_copies(*folders: Path) -> None:
    """Let equal libraries be one file with several names: a wheel holds six copies, because it can have no links.

    Hard links, so that it does not matter by which name one is loaded. Where a disk has none, the copies stay.
    """
    first: dict[str, Path] = {}
    for path in sorted(path for folder in folders for path in folder.glob("lib*") if not path.is_symlink()):
        if not path.is_file():
            continue
        with path.open("rb") as file:
            same = first.setdefault(hashlib.file_digest(file, "sha256").hexdigest(), path)
        if same.samefile(path):
            continue
        with contextlib.suppress(OSError):
            link = path.with_name(f".{path.name}")
            link.unlink(missing_ok=True)
            os.link(same, link)
            link.replace(path)


@dataclass(frozen=True)
class Build:
    """A plan and the key that its wheel is kept under."""

    plan: BuildPlan
    key: str


@dataclass
class LlamaInstall:
    """Puts the pinned release of llama-cpp-python into ``venv``. ``pip`` runs pip there.

    ``cuda`` are the requirements of a build for CUDA on a machine that has no toolkit.
    """

    venv: VenvFolder
    version: str
    cuda: tuple[str, ...]
    cache: WheelCache
    environment: Mapping[str, str]
    pip: Callable[..., None]

    @cached_property
    def machine(self) -> BuildMachine:
        """This machine. It is examined late, because an earlier step may have installed the compiler."""
        return look(self.environment)

    def wanted(self) -> Build:
        """The build that fits this machine best."""
        compiler = self.machine.compiler
        found = amx.probe(compiler) if compiler and self.machine.has_amx else amx.Amx.ABSENT
        return self.build_of(plan_build(self.machine, found))

    def build_of(self, plan: BuildPlan) -> Build:
        """Return the build that ``plan`` makes."""
        return Build(plan, build_key(self.version, plan, self.machine, self.environment))

    def settled(self, build: Build) -> Build:
        """Return the build to make: ``build``, or the one for the CPU if ``build`` is for a GPU and failed before."""
        return self.build_of(without_gpu(build.plan)) if self.cache.has_failed(build.key) else build

    def with_toolkit(self, build: Build, progress: SetupProgress) -> Build:
        """Put into the venv what a build needs of CUDA; return the one for the CPU if that cannot be had."""
        if not build.plan.fetches_cuda:
            return build
        progress.update("fetching CUDA's compiler and libraries (0.5 GB)")
        try:
            cuda_toolkit.check_free_space(self.venv.path)
            constraints = str(self.venv.root / "constraints.txt")
            arguments = ("--only-binary", ":all:", "--constraint", constraints, *self.cuda)
            self.pip("The installation of CUDA", "install", *arguments)
            cuda_toolkit.link_names(self.venv.site_packages)
        except SetupError as error:
            progress.say(f"      CUDA's compiler and libraries could not be installed. {error}")
            return self.build_of(without_gpu(build.plan))
        return build

    def installed_key(self) -> str:
        """The key of the build in the venv; "" if there is none."""
        record = self.venv.path / _RECORD
        has_files = any(self.venv.site_packages.glob("llama_cpp_python-*.dist-info"))
        return record.read_text(encoding="utf-8") if has_files and record.exists() else ""

    def install(self, wheel: Path, build: Build) -> None:
        """Put a build into the venv in place of any other."""
        record = self.venv.path / _RECORD
        record.unlink(missing_ok=True)
        self.pip("The installation of llama.cpp", "install", "--no-index", "--no-deps", "--force-reinstall", str(wheel))
        share_copies(*(self.venv.site_packages / folder for folder in _LIBRARIES))
        if build.plan.fetches_cuda:
            cuda_toolkit.link_libraries(self.venv.site_packages)
        record.write_text(build.key, encoding="utf-8")

    def make(self, build: Build, log: Log, progress: SetupProgress) -> tuple[Path, Build]:
        """Build the wheel, for the CPU if the build for a GPU fails; return it and the build that it is."""
        try:
            return self._run(build, log, progress), build
        except CommandFailed:
            if build.plan.backend is Backend.CPU:
                raise
        progress.say(f"      The build for {build.plan.backend.value} failed; llama.cpp is built for the CPU instead.")
        on_cpu = self.build_of(without_gpu(build.plan))
        wheel = self.cache.find(on_cpu.key) or self._run(on_cpu, log, progress)
        # Only now is it known that the GPU was the reason, and not the network, for example.
        self.cache.note_failure(build.key)
        return wheel, on_cpu

    def _run(self, build: Build, log: Log, progress: SetupProgress) -> Path:
        progress.update(f"building for the {build.plan}; this takes some minutes, once")
        constraints = self.venv.root / "constraints.txt"
        toolkit = cuda_toolkit.environment_of(self.venv.site_packages) if build.plan.fetches_cuda else {}
        work = self.cache.work_folder(build.key)
        try:
            builder = WheelBuild(self.venv.python, self.version, constraints, build.plan)
            wheel = builder.run(work, {**self.environment, **toolkit}, log, progress.show_share)
        except BaseException:
            shutil.rmtree(work, ignore_errors=True)
            raise
        return self.cache.keep(build.key, wheel)
