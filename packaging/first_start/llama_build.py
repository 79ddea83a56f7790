"""The build of llama.cpp: chooses backend and options for this machine, and builds."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from first_start import amx as amx_probe
from first_start import cuda_toolkit
from first_start.amx import Amx
from first_start.command import Log, pip_environment, run_logged
from first_start.errors import SetupError
from first_start.machine import BuildMachine, Compiler

PROJECT = "llama-cpp-python"
# The CMake file that patches llama.cpp's sources before they are compiled.
SOURCES = Path(__file__).with_name("llama_sources.cmake")
# Devices of other machines (`./slipstream worker`). RDMA is off: its data would bypass the connection on which the
# token was proved.
_EVERYWHERE = ("-DGGML_RPC=on", "-DGGML_RPC_RDMA=off")
# What a build for the processor holds for a time is 0.5 GB.
_NEEDED_BYTES = 1_000_000_000
_STEP = re.compile(r"^\s*\[(\d+)/(\d+)\]")


class Backend(Enum):
    """The kind of device that computes matrix products."""

    CPU = "CPU"
    CUDA = "CUDA"
    METAL = "Metal"


@dataclass(frozen=True)
class BuildPlan:
    """How to build: the arguments of CMake, the flags of C and C++, and what the user should know about it.

    ``fetches_cuda``: with CUDA's compiler and libraries from pip, since the system has none.
    """

    backend: Backend
    compiler: Compiler | None
    cmake_args: tuple[str, ...] = ()
    compiler_flags: tuple[str, ...] = ()
    note: str = ""
    fetches_cuda: bool = False

    def __str__(self) -> str:
        with_compiler = f" with {self.compiler}" if self.compiler else ""
        return f"{self.backend.value}{with_compiler}{', without AMX' if self.compiler_flags else ''}"


def plan_build(machine: BuildMachine, amx: Amx) -> BuildPlan:
    """Decide how llama.cpp is built for ``machine``."""
    flags = amx_probe.flags_for(amx, machine.compiler) if machine.compiler else ()
    plan = BuildPlan(Backend.CPU, machine.compiler, compiler_flags=flags)
    if machine.system == "Darwin":
        has_metal = machine.architecture == "arm64"
        arguments = (f"-DGGML_METAL={'on' if has_metal else 'off'}",)
        return replace(plan, backend=Backend.METAL if has_metal else Backend.CPU, cmake_args=arguments)
    return _for_cuda(plan, machine) if machine.nvidia_gpus else plan


def _for_cuda(plan: BuildPlan, machine: BuildMachine) -> BuildPlan:
    """Return ``plan`` for CUDA, with the system's compiler or pip's; for the CPU where neither can be used."""
    needed = cuda_toolkit.needed_by(machine)
    on_cuda = replace(plan, backend=Backend.CUDA, cmake_args=("-DGGML_CUDA=on", "-DCMAKE_CUDA_ARCHITECTURES=native"))
    if machine.nvcc and not needed:
        return replace(on_cuda, cmake_args=(*on_cuda.cmake_args, f"-DCMAKE_CUDA_COMPILER={machine.nvcc}"))
    gpu, missing = machine.nvidia_gpus[0], cuda_toolkit.why_not(machine)
    is_old = f"{machine.nvcc} is too old for {gpu}, which needs CUDA {needed}"
    if not missing:
        note = f"{is_old}: CUDA {cuda_toolkit.VERSION} comes from pip." if needed else ""
        return replace(on_cuda, fetches_cuda=True, note=note)
    why = is_old if needed else f"{gpu} is here, but CUDA's compiler nvcc is not"
    return replace(plan, note=f"{why}: llama.cpp runs on the CPU. {missing}, then type ./slipstream setup.")


def without_gpu(plan: BuildPlan) -> BuildPlan:
    """Return the plan to fall back on if the build for the GPU fails."""
    note = (
        f"The build for {plan.backend.value} failed, so llama.cpp runs on the CPU. "
        "The log says why; ./slipstream setup tries again."
    )
    return BuildPlan(Backend.CPU, plan.compiler, compiler_flags=plan.compiler_flags, note=note)


def build_environment(plan: BuildPlan, environment: Mapping[str, str]) -> dict[str, str]:
    """Return ``environment`` for the build. What the user set comes last, so it wins."""
    arguments = [*_EVERYWHERE, *plan.cmake_args]
    if plan.compiler_flags:
        for language, variable in (("C", "CFLAGS"), ("CXX", "CXXFLAGS")):
            flags = " ".join(filter(None, (environment.get(variable, "").strip(), *plan.compiler_flags)))
            arguments.append(f"-DCMAKE_{language}_FLAGS={flags}")
    arguments += shlex.split(environment.get("CMAKE_ARGS", ""))
    chosen = {"CC": plan.compiler.c, "CXX": plan.compiler.cxx} if plan.compiler else {}
    return {**environment, **chosen, "CMAKE_ARGS": shlex.join(arguments)}


def source_files() -> list[Path]:
    """Return the files that decide how llama.cpp's sources are patched."""
    return [SOURCES, SOURCES.with_name("llama_patches.py"), *sorted(SOURCES.with_name("patches").iterdir())]


def with_patches(environment: Mapping[str, str], python: Path) -> dict[str, str]:
    """Return an ``environment`` for the build in which ``python`` patches llama.cpp's sources first (``SOURCES``)."""
    included = f"-DCMAKE_PROJECT_llama_cpp_INCLUDE={SOURCES.as_posix()}"
    own = shlex.join([included, f"-DSLIPSTREAM_PYTHON={python.as_posix()}"])
    return {**environment, "CMAKE_ARGS": f"{own} {environment.get('CMAKE_ARGS', '')}".strip()}


def may_run_programs(folder: Path) -> bool:
    """Whether programs may be started from the disk of ``folder``: some systems forbid it in /tmp."""
    return not os.statvfs(folder).f_flag & getattr(os, "ST_NOEXEC", 0)


def lacks_space(folder: Path, other: Path) -> bool:
    """Whether ``folder`` has too little space for a build and ``other`` more: /tmp may be a part of a small RAM."""
    free = shutil.disk_usage(folder).free
    return free < _NEEDED_BYTES and free < shutil.disk_usage(other).free


def describe_step(line: str) -> tuple[int, int] | None:
    """Return (done, total) from a line of the build's output; None if the line does not say."""
    match = _STEP.match(line)
    return (int(match.group(1)), int(match.group(2))) if match else None


@dataclass(frozen=True)
class WheelBuild:
    """One build of the pinned release by pip in ``python``'s environment."""

    python: Path
    version: str
    constraints: Path
    plan: BuildPlan

    def run(self, folder: Path, environment: Mapping[str, str], log: Log, on_step: Callable[[int, int], None]) -> Path:
        """Build into ``folder`` and return the wheel."""

        def watch(line: str) -> None:
            step = describe_step(line)
            if step:
                on_step(*step)

        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        temporary = folder / "tmp"
        usual = Path(tempfile.gettempdir())
        if not may_run_programs(usual) or lacks_space(usual, folder):
            # pip builds among its temporary files, and starts the CMake that it puts there.
            temporary.mkdir()
            environment = {**environment, "TMPDIR": str(temporary)}
        # pip's own cache knows wheels by version alone, so it could return one that was built with other flags.
        command = [
            *(str(self.python), "-m", "pip", "wheel", "--verbose", "--no-input", "--no-cache-dir", "--no-deps"),
            *("--no-binary", PROJECT, "--build-constraint", str(self.constraints)),
            *("--wheel-dir", str(folder), f"{PROJECT}=={self.version}"),
        ]
        chosen = with_patches(build_environment(self.plan, pip_environment(environment)), self.python)
        run_logged("The build of llama.cpp", command, log, chosen, watch)
        shutil.rmtree(temporary, ignore_errors=True)
        wheels = sorted(folder.glob("*.whl"))
        if len(wheels) != 1:
            raise SetupError(f"The build of llama.cpp left {len(wheels)} wheels instead of one in {folder}.")
        return wheels[0]
