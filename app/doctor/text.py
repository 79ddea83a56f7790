"""A report as aligned text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from app.doctor.report import DoctorReport, FolderFacts, ServerFacts, advice
from core.values.engine_options import Device
from models.formatting.figures import size

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
    yield "processor", f"{system.cpu}, {system.n_cores} cores, {system.n_threads} threads"
    yield "memory", f"{size(system.ram_free)} free of {size(system.ram_total)}"
    yield "display", system.display or "none (chat and serve work without)"


def _speed(report: DoctorReport) -> Iterator[TextRow]:
    bandwidth = report.bandwidth
    if bandwidth.bytes_per_second is None:
        yield "bandwidth", f"not measured: {bandwidth.problem}"
        return
    rate = bandwidth.bytes_per_second / 1e9
    source = "measured before; --measure repeats it" if bandwidth.is_remembered else "just measured"
    threads = f"{bandwidth.n_threads} thread{'' if bandwidth.n_threads == 1 else 's'}"
    yield "bandwidth", f"{rate:.1f} GB/s of memory reads with {threads} ({source})"
    yield "", f"a model of 4 GB in this memory writes at most about {rate / 4:.1f} tokens/s for one reader"
    shown = [f"{name} {bandwidth.kernels[name] / 1e9:.1f}" for name in _SHOWN_TYPES if name in bandwidth.kernels]
    if shown:
        yield "kernels", f"{', '.join(shown)} GB/s of weights"
    if bandwidth.problem:
        yield "", bandwidth.problem


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
    sentences = advice(report)
    return "\n".join(["To do", *(f"  - {sentence}" for sentence in sentences)]) if sentences else "All is well."
