"""The result of a check-up, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from core.values.engine_options import LlamaSystem


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
