"""The result of a check-up, as frozen values and as aligned text, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from core.values.engine_options import Device
from core.values.errors import BadOption
from models.formatting.figures import how_many, size
from models.formatting.program import PROGRAM


@dataclass(frozen=True, slots=True)
class LlamaSystem:
    """Version of the bindings, version of llama.cpp, features it was compiled with, and devices.

    ``heads`` has for each kind of draft head the reason why it cannot be used, or None. ``problem`` says why nothing is
    known.
    """

    package: str | None = None
    version: str | None = None
    features: tuple[str, ...] = ()
    can_offload: bool = False
    devices: tuple[Device, ...] = ()
    heads: Mapping[str, str | None] = field(default_factory=dict)
    problem: str | None = None

    def must_have(self, names: Iterable[str]) -> None:
        """Raise BadOption for the name of a device that is not there."""
        known = [one.name for one in self.devices]
        for name in names:
            if name not in known:
                raise BadOption(f"There is no device called {name!r} (--device). This machine has {', '.join(known)}.")


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
    """Read bandwidth of main memory; ``problem`` says why it is not known.

    ``is_estimate``: other programs were busy while it was measured, so memory may be faster. ``kernels`` maps tensor
    types to the bytes per second at which the processor multiplies them, where it was probed, ``gpus`` has the same of
    each GPU by its name. They have such a doubt, too: ``are_kernels_estimates``.
    """

    bytes_per_second: float | None = None
    n_threads: int | None = None
    is_remembered: bool = False
    is_estimate: bool = False
    problem: str | None = None
    kernels: Mapping[str, float] = field(default_factory=dict)
    gpus: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    are_kernels_estimates: bool = False


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


def remedies(report: DoctorReport) -> tuple[str, ...]:
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
            f"{system.nvidia_gpu} is not used: llama.cpp was built without CUDA. Run {PROGRAM} setup: it builds it "
            "with CUDA, or says what that needs."
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


_LABEL_WIDTH = 12
# One of each kind of tensor type.
_SHOWN_TYPES = ("F16", "Q8_0", "Q6_K", "Q4_K", "Q4_0")
TextRow = tuple[str, str]


def render(report: DoctorReport) -> str:
    """Return the whole report for a terminal, advice last."""
    sections = {
        "System": _system(report),
        "Speed": _speed(report),
        "llama.cpp": _llama(report),
        "Folders": (_folder(folder) for folder in report.folders),
        "Servers": map(_server, report.servers) if report.servers else [("", "none is running")],
    }
    body = "\n\n".join(_section(title, lines) for title, lines in sections.items())
    return f"{body}\n\n{_advice(report)}"


def _section(title: str, lines: Iterable[TextRow]) -> str:
    return "\n".join([title, *(f"  {label:{_LABEL_WIDTH}}{text}".rstrip() for label, text in lines)])


def _system(report: DoctorReport) -> Iterator[TextRow]:
    system = report.system
    yield "Slipstream", f"{system.slipstream} on Python {system.python}, Qt {system.qt or 'not installed'}"
    yield "system", system.os
    yield "processor", f"{system.cpu}, {how_many(system.n_cores, 'core')}, {how_many(system.n_threads, 'thread')}"
    yield "memory", f"{size(system.ram_free)} free of {size(system.ram_total)}"
    yield "display", system.display or "none (chat and serve work without)"


def _speed(report: DoctorReport) -> Iterator[TextRow]:
    bandwidth = report.bandwidth
    doubt = " (while other programs were busy: they may be faster)" if bandwidth.are_kernels_estimates else ""
    # A model is on GPUs where it fits, so they come first.
    for name, rates in bandwidth.gpus.items():
        yield name, f"{_kernels(rates)} GB/s of weights{doubt}"
        yield "", f"a model of 4 GB on it writes at most about {max(rates.values()) / 4e9:,.1f} tokens/s for one reader"
    if bandwidth.bytes_per_second is None:
        yield "bandwidth", f"not measured: {bandwidth.problem}"
        return
    rate = bandwidth.bytes_per_second / 1e9
    source = "measured before; --measure repeats it" if bandwidth.is_remembered else "just measured"
    threads = how_many(bandwidth.n_threads or 0, "thread")
    if bandwidth.is_estimate:
        source += ", while other programs were busy: memory may be faster"
    yield "bandwidth", f"{rate:.1f} GB/s of memory reads with {threads} ({source})"
    yield "", f"a model of 4 GB in main memory writes at most about {rate / 4:.1f} tokens/s for one reader"
    if bandwidth.kernels:
        where = " on the processor" if bandwidth.gpus else ""
        yield "kernels", f"{_kernels(bandwidth.kernels)} GB/s of weights{where}{doubt}"
    else:
        yield "kernels", "not measured: that failed, or other programs left it too little time"
    if bandwidth.problem:
        yield "", bandwidth.problem


def _kernels(rates: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {rates[name] / 1e9:,.1f}" for name in _SHOWN_TYPES if name in rates)


def _llama(report: DoctorReport) -> Iterator[TextRow]:
    llama = report.llama
    if llama.problem:
        yield "problem", llama.problem
    else:
        yield "version", f"{llama.version} (llama-cpp-python {llama.package})"
        yield "features", " ".join(llama.features)
        yield "GPU", "layers can be offloaded" if llama.can_offload else "this build computes on the CPU only"
    for device in llama.devices:
        yield _device(device)
    for kind, problem in llama.heads.items():
        yield "drafting", f"{kind} heads: {problem or 'can be used'}"
    yield "self-test", "failed, see below" if report.selftest else "passed"


def _device(device: Device) -> TextRow:
    memory = f"{size(device.free)} free of {size(device.total)}"
    link = device.lent.link if device.lent is not None else None
    over = f", over {link.bandwidth / 1e6:,.0f} MB/s with {link.latency * 1000:.2f} ms" if link is not None else ""
    return "device", f"{device.name}: {device.description} ({device.kind}), {memory}{over}"


def _folder(folder: FolderFacts) -> TextRow:
    held = "" if folder.n_bytes is None else f", {size(folder.n_bytes)}"
    return folder.purpose, f"{folder.path}  ({folder.problem or 'writable'}{held})"


def _server(server: ServerFacts) -> TextRow:
    stands = ", ".join(part for part in (server.phase or "no answer", server.setting) if part)
    return "", f"{server.url}  {server.model or 'no model'}, {stands} (process {server.pid})"


def _advice(report: DoctorReport) -> str:
    sentences = remedies(report)
    return "\n".join(["To do", *(f"  - {sentence}" for sentence in sentences)]) if sentences else "All is well."
