"""The result of a check-up, as frozen values, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from core.values.engine_options import LlamaSystem
from models.formatting.figures import size
from models.formatting.program import PROGRAM


@dataclass(frozen=True, slots=True)
class SystemFacts:
    """The machine and the programs. Memory is in bytes; ``display`` is what windows would open on, or None."""

    slipstream: str
    os: str
    python: str
    qt: str | None
    cpu: str
    n_cores: int
    n_threads: int
    ram_total: int
    ram_free: int
    display: str | None
    nvidia_gpu: str | None


@dataclass(frozen=True, slots=True)
class BandwidthFacts:
    """Memory read bandwidth; ``problem`` says why it is not known.

    ``kernels`` maps tensor types to the bytes per second at which the processor multiplies them, where it was probed.
    """

    bytes_per_second: float | None = None
    n_threads: int | None = None
    is_remembered: bool = False
    problem: str | None = None
    kernels: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FolderFacts:
    """A folder of the app; ``problem`` says why it cannot be written. ``n_bytes`` is given where it may grow."""

    purpose: str
    path: str
    problem: str | None = None
    n_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """A running server; ``phase`` is None where it does not answer. ``setting`` is how its model was loaded."""

    pid: int
    url: str
    model: str | None
    phase: str | None
    setting: str = ""


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """Everything that was looked at. ``selftest`` is None where llama.cpp works, else a sentence.

    ``lost_workers`` are sentences about workers that were named and cannot be used.
    """

    system: SystemFacts
    llama: LlamaSystem
    selftest: str | None
    bandwidth: BandwidthFacts
    folders: tuple[FolderFacts, ...]
    servers: tuple[ServerFacts, ...]
    lost_workers: tuple[str, ...] = ()


_LITTLE_MEMORY = 2e9  # bytes; a model worth using takes more


def faults(report: DoctorReport) -> tuple[str, ...]:
    """Return what keeps models from running, most important first."""
    found = [report.selftest, None if report.selftest else report.llama.problem]
    return tuple(sentence for sentence in found if sentence)


def advice(report: DoctorReport) -> tuple[str, ...]:
    """Return a sentence for each problem that can be helped."""
    return (*faults(report), *_folder_advice(report), *_speed_advice(report), *_other_advice(report))


def _folder_advice(report: DoctorReport) -> list[str]:
    bad = [folder for folder in report.folders if folder.problem]
    sentences = [f"The {folder.purpose} folder {folder.path} cannot be used: {folder.problem}." for folder in bad]
    if sentences:
        sentences.append("Make these folders writable, or set SLIPSTREAM_HOME to a folder that is.")
    return sentences


def _speed_advice(report: DoctorReport) -> list[str]:
    system, llama = report.system, report.llama
    if system.nvidia_gpu and not llama.problem and not llama.can_offload:
        return [
            f"{system.nvidia_gpu} is not used: llama.cpp was built without CUDA. Install the CUDA toolkit (nvcc), "
            f"then run {PROGRAM} setup."
        ]
    return []


def _other_advice(report: DoctorReport) -> list[str]:
    system, sentences = report.system, [*report.lost_workers]
    if system.ram_free < _LITTLE_MEMORY:
        sentences.append(f"Only {size(system.ram_free)} of memory is free: close other programs for larger models.")
    if system.qt is None:
        sentences.append(f"PySide6 is missing, so the desktop app cannot open. Run {PROGRAM}, which installs it.")
    sentences += [
        f"The server at {server.url} (process {server.pid}) does not answer. If it hangs, end that process."
        for server in report.servers
        if server.phase is None
    ]
    return sentences
