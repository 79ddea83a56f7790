"""What to do about what was found: a pure function of the report."""

from __future__ import annotations

from app.doctor.report import DoctorReport
from models.formatting.figures import size
from models.formatting.program import PROGRAM

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
