"""The result of a check-up, as frozen values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from core.values.errors import BadOption
from models.estimate.speed.machine import Lent


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
class DeviceFacts:
    """A device of llama.cpp; memory in bytes; ``lent`` says more of one that a worker lends."""

    name: str
    description: str
    kind: str
    free: int
    total: int
    lent: Lent | None = None


@dataclass(frozen=True, slots=True)
class LlamaFacts:
    """llama.cpp as it is installed; ``problem`` says why nothing is known.

    ``heads`` says of each kind of drafting head why this build cannot run it, or None.
    """

    package: str | None = None
    version: str | None = None
    features: tuple[str, ...] = ()
    can_offload: bool = False
    devices: tuple[DeviceFacts, ...] = ()
    heads: Mapping[str, str | None] = field(default_factory=dict)
    problem: str | None = None

    def must_have(self, names: Iterable[str]) -> None:
        """Raise BadOption for the name of a device that is not there."""
        known = [one.name for one in self.devices]
        for name in names:
            if name not in known:
                raise BadOption(f"There is no device called {name!r} (--device). This machine has {', '.join(known)}.")


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
    llama: LlamaFacts
    selftest: str | None
    bandwidth: BandwidthFacts
    folders: tuple[FolderFacts, ...]
    servers: tuple[ServerFacts, ...]
    lost_workers: tuple[str, ...] = ()
