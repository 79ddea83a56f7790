"""What decides how llama.cpp is built on this machine: processor, GPU and compilers."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

# Flags that name instructions a compiler may use. The others come and go with kernels and hypervisors.
_X86_INSTRUCTIONS = re.compile(
    r"(sse|ssse|pni$|avx|amx|fma|f16c|bmi|popcnt|abm$|lzcnt|adx$|aes$|vaes|v?pclmul|gfni|sha|sm[34]$|movbe|movdir|xop$|"
    r"tbm$|3dnow|cx16|clflushopt|clwb|rdrand|rdseed|rdpid|fsgsbase|xsave|prefetch|serialize|tsxldtrk|enqcmd|hreset)"
)
_NO_CUDA = re.compile(r"-DGGML_CUDA(:\w+)?=(off|0|no|false)\b", re.IGNORECASE)
_CUDA_FOLDER = Path("/usr/local/cuda")


class Family(Enum):
    """Compiler families that differ in their options."""

    GCC = "gcc"
    CLANG = "clang"


@dataclass(frozen=True)
class Compiler:
    """A C and C++ compiler pair. ``version`` is its whole first line: a distribution's patches count too."""

    c: str
    cxx: str
    family: Family
    major: int
    version: str

    def __str__(self) -> str:
        return f"{self.family.value} {self.major}"


@dataclass(frozen=True)
class BuildMachine:
    """The processor and GPUs that llama.cpp will run on, and the compilers to build it with."""

    system: str
    architecture: str
    libc: str = ""
    cpu_flags: frozenset[str] = frozenset()
    nvidia_gpus: tuple[str, ...] = ()
    nvidia_driver: int = 0  # the first part of its version; 0: not known
    nvcc: str | None = None
    nvcc_version: str = ""
    compiler: Compiler | None = None

    @property
    def has_amx(self) -> bool:
        """Whether the processor has tile registers."""
        return "amx_tile" in self.cpu_flags

    @property
    def instructions(self) -> tuple[str, ...]:
        """The processor's flags that a native build depends on, in a fixed order."""
        if self.architecture not in ("x86_64", "amd64", "i686"):
            return tuple(sorted(self.cpu_flags))
        return tuple(sorted(flag for flag in self.cpu_flags if _X86_INSTRUCTIONS.match(flag)))


def parse_cpu_flags(cpuinfo: str) -> frozenset[str]:
    """Return the flags of the first processor in ``/proc/cpuinfo``'s text."""
    match = re.search(r"^(?:flags|Features)\s*:(.*)$", cpuinfo, re.MULTILINE)
    return frozenset(match.group(1).split()) if match else frozenset()


def parse_compiler(c: str, cxx: str, version: str, dumped: str) -> Compiler | None:
    """Return the compiler described by the output of ``--version`` and ``-dumpversion``; None if unclear."""
    major = re.match(r"\d+", dumped)
    if not major or not version.strip():
        return None
    family = Family.CLANG if "clang" in version.lower() else Family.GCC
    return Compiler(c, cxx, family, int(major.group()), version.strip().splitlines()[0])


def output_of(*command: str, seconds: float = 20) -> str:
    """Return what a short command prints; "" if it is missing, fails, or takes longer than ``seconds``."""
    try:
        done = subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def find_compiler(environment: Mapping[str, str]) -> Compiler | None:
    """Return the compiler that builds llama.cpp: the one that CC and CXX name, else gcc, else clang."""
    c = environment.get("CC")
    named = (c, environment.get("CXX") or _cxx_beside(c)) if c else None
    for c, cxx in (named,) if named else (("gcc", "g++"), ("clang", "clang++")):
        if shutil.which(c) and shutil.which(cxx):
            found = parse_compiler(c, cxx, output_of(c, "--version"), output_of(c, "-dumpversion"))
            if found:
                return found
    return None


def _cxx_beside(c: str) -> str:
    """Return the C++ compiler that comes with a C compiler, as clang++-19 with clang-19; that one links no C++."""
    names = {"clang": "clang++", "gcc": "g++", "cc": "c++"}
    cxx = re.sub(r"(clang|gcc|cc)(?=(-[^/]*)?$)", lambda found: names[found[1]], c)
    return cxx if shutil.which(cxx) else c


def find_nvcc(environment: Mapping[str, str]) -> str | None:
    """Return the path of CUDA's compiler, or None. A distribution's on PATH comes last, because it is often old."""
    if named := shutil.which(environment.get("CUDACXX", "")):
        return named
    folders = [environment.get(name) for name in ("CUDA_HOME", "CUDA_PATH")]
    places = [Path(folder) for folder in folders if folder] + [_CUDA_FOLDER]
    paths = [*(str(place / "bin") for place in places), environment.get("PATH", os.defpath)]
    return shutil.which("nvcc", path=os.pathsep.join(paths))


def find_nvidia_gpus() -> tuple[str, ...]:
    """Return a description of each NVIDIA GPU, with its compute capability if the driver reports it."""
    answer = output_of("nvidia-smi", "--query-gpu=name,compute_cap", "--format=csv,noheader")
    if answer.strip():
        return tuple(sorted(line.strip() for line in answer.splitlines() if line.strip()))
    if Path("/proc/driver/nvidia/version").exists() or Path("/dev/nvidia0").exists():
        return ("NVIDIA GPU",)
    return ()


def find_nvidia_driver() -> int:
    """Return the first part of the version of NVIDIA's driver, for example 580; 0 if it is not known."""
    answer = output_of("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
    version = re.match(r"\d+", answer.strip())
    return int(version.group()) if version else 0


def look(environment: Mapping[str, str]) -> BuildMachine:
    """Look at this machine. A GPU that the user's options of CMake leave out is not looked for."""
    cpuinfo = Path("/proc/cpuinfo")
    nvidia_gpus = () if _NO_CUDA.search(environment.get("CMAKE_ARGS", "")) else find_nvidia_gpus()
    nvcc = find_nvcc(environment) if nvidia_gpus else None
    return BuildMachine(
        system=platform.system(),
        architecture=platform.machine(),
        libc=" ".join(platform.libc_ver()).strip() or platform.mac_ver()[0],
        cpu_flags=parse_cpu_flags(cpuinfo.read_text(errors="replace")) if cpuinfo.exists() else frozenset(),
        nvidia_gpus=nvidia_gpus,
        nvidia_driver=find_nvidia_driver() if nvidia_gpus else 0,
        nvcc=nvcc,
        nvcc_version=output_of(nvcc, "--version").strip() if nvcc else "",
        compiler=find_compiler(environment),
    )
