"""``slipstream doctor``: the check-up."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from app.cli.terminal.text import say_json
from app.environment.exit_codes import ExitCode


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    measure: Annotated[bool, typer.Option("--measure", help="Measure memory bandwidth again.")] = False,
    device: Annotated[
        list[str] | None,
        typer.Option(metavar="WORKER", help="Look at the worker rpc://HOST:PORT too; may be repeated."),
    ] = None,
    worker_token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File with the token of the workers.")
    ] = None,
) -> None:
    """Check this machine: devices, memory and its speed, llama.cpp, folders, running servers.

    Ends with exit code 1 when models cannot run here; other problems are listed with what to do about them.
    """
    from dataclasses import asdict

    from app.cli.terminal.progress_line import LoadingLine
    from app.doctor.checks import examine
    from app.doctor.report import faults, remedies, render
    from app.settings.worker_tokens import named_workers

    workers = named_workers(device or (), worker_token_file)
    line = LoadingLine(sys.stderr, quiet_seconds=0)
    line.show("Looking around and measuring ...")
    try:
        report = examine(measure_again=measure, workers=workers)
    finally:
        line.clear()
    say_json({**asdict(report), "advice": remedies(report)}) if as_json else print(render(report))
    if faults(report):
        raise typer.Exit(ExitCode.ERROR)
