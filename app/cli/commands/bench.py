"""``slipstream bench``: the benchmarks of this project, each a program in benchmarks/."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Annotated

import typer

from app.cli.terminal.text import say_json
from app.jobs.benches import benches
from core.values.errors import BadOption
from models.formatting.program import PROGRAM_FOLDER


def bench(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Benchmark to run; without it they are listed.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure this machine.

    Other options go to the benchmark, as in: ./slipstream bench engine --rounds 3

    It shows its own options with: ./slipstream bench NAME -- --help
    """
    known = benches()
    if name is None:
        say_json(known) if as_json else print(_table(known))
        return
    if name not in known:
        names = ", ".join(known) or "none is installed"
        raise BadOption(f"There is no benchmark called {name!r}. Benchmarks: {names}.")
    _become(name, [*context.args, *(["--json"] if as_json else [])])


def _become(name: str, options: list[str]) -> None:
    # A new interpreter, because libraries read the variables that a benchmark sets when they are loaded. It replaces
    # this process, for which the caller waits and which the caller can signal.
    command = [sys.executable, "-m", f"benchmarks.{name}", *options]
    environment = {**os.environ, "PYTHONPATH": str(PROGRAM_FOLDER), "PYTHONSAFEPATH": "1"}
    if os.name == "posix":
        # Ctrl-C waits until benchmarks/__init__.py can take it: until then Python itself would print a traceback.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        os.execve(sys.executable, command, environment)
    raise typer.Exit(subprocess.run(command, env=environment, check=False).returncode)


def _table(known: dict[str, str]) -> str:
    width = max((len(name) for name in known), default=0)
    return "\n".join(f"{name:{width}}  {line}" for name, line in known.items())
