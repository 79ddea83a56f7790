"""The one JSON object that every bench prints: bench, machine, versions, rows and summary."""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from app.doctor.machine import machine, versions
from app.environment.exit_codes import ExitCode
from models.formatting.program import PROGRAM

ReportRow = dict[str, Any]
RESULTS = Path(__file__).resolve().parent / "results"


@dataclass
class BenchReport:
    """The result of a bench. ``summary`` has the few figures that the documents quote.

    ``was_stopped``: Ctrl-C or SIGTERM came before the end, and ``rows`` has what was measured until then.
    """

    bench: str
    rows: list[ReportRow] = field(default_factory=list)
    summary: dict[str, float | str | None] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    was_stopped: bool = False

    def as_dict(self) -> dict[str, Any]:
        return {
            "bench": self.bench,
            "date": time.strftime("%Y-%m-%d"),
            "machine": machine(),
            "versions": versions(),
            "settings": self.settings,
            "rows": self.rows,
            "summary": self.summary,
            **({"was_stopped": True} if self.was_stopped else {}),
        }


def median(values: list[float]) -> float:
    return statistics.median(values)


def percentile(values: list[float], share: float) -> float:
    """Return the smallest value that at least ``share`` of the values do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


# Options that are a count or a duration, and so must be more than 0.
_COUNTS = ("rounds", "layers", "steps", "tokens", "threads", "replies", "vocabulary", "seconds", "rate", "patience")


def say(text: str) -> None:
    """Print a bench's progress to stderr."""
    print(text, file=sys.stderr, flush=True)


def run_bench(name: str, measure: Callable[[argparse.Namespace], BenchReport], parser: argparse.ArgumentParser) -> int:
    """Parse the command line, measure, print: a table, or with ``--json`` the whole object.

    SIGTERM acts like Ctrl-C: servers are ended, and what was measured until then is printed but not written to a file.
    """
    parser.prog = f"{PROGRAM} bench {name}"
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--output", type=Path, help="write the JSON object to this file too")
    options = parser.parse_args()
    _check(options, parser)
    signal.signal(signal.SIGTERM, _stop)
    try:
        found = measure(options)
    except KeyboardInterrupt:
        found = BenchReport(name, was_stopped=True)
    if found.was_stopped and not found.rows:
        say("Stopped: nothing was measured yet.")
        return ExitCode.INTERRUPTED
    report = found.as_dict()
    text, problem = json.dumps(report, indent=1), None
    if found.was_stopped:
        say("Stopped. Until then, this was measured:")
    elif options.output:
        try:
            options.output.write_text(text + "\n")
        except OSError as error:
            problem = f"{options.output} cannot be written: {error.strerror}. The JSON object is printed instead."
    print(text if options.json or problem else _table(report))
    if problem:
        say(f"Error: {problem}")
    return ExitCode.INTERRUPTED if found.was_stopped else ExitCode.ERROR if problem else ExitCode.OK


def _stop(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)  # a second signal ends the process at once
    raise KeyboardInterrupt


def _check(options: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Refuse now the options that would only fail during or after the measurement."""
    for name in _COUNTS:
        values = getattr(options, name, None)
        if any(value <= 0 for value in (values if isinstance(values, list | tuple) else [values]) if value is not None):
            parser.error(f"--{name} must be more than 0")
    if options.output:
        folder = options.output.absolute().parent
        if not folder.is_dir():
            parser.error(f"--output: there is no folder {folder}")
        if options.output.is_dir() or not os.access(options.output if options.output.exists() else folder, os.W_OK):
            parser.error(f"--output: {options.output} cannot be written")


def _table(report: dict[str, Any]) -> str:
    lines = []
    rows: list[ReportRow] = report["rows"]
    if rows:
        names = list(dict.fromkeys(name for row in rows for name in row))
        cells = [names] + [[_cell(row.get(name)) for name in names] for row in rows]
        widths = [max(len(line[column]) for line in cells) for column in range(len(names))]
        lines += ["  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)) for line in cells]
        lines.append("")
    lines += [f"{name}: {_cell(value)}" for name, value in report["summary"].items()]
    return "\n".join(lines)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"
    return "-" if value is None else str(value)
