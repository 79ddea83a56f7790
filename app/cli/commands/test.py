"""``slipstream test``: the test suite."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import typer

from app.environment.exit_codes import ExitCode
from models.formatting.program import PROGRAM

# As the launcher does: on all cores, each engine with one thread, since threads that wait for each other would crawl.
_ALL_CORES = ("--numprocesses", "auto", "--dist", "loadfile")
_ONE_THREAD_EACH = {"OMP_THREAD_LIMIT": "1", "OPENBLAS_NUM_THREADS": "1"}


def test(context: typer.Context) -> None:
    """Run the tests, all of them on all cores.

    What follows goes to pytest, as in: ./slipstream test tests/core -k sampler
    """
    if importlib.util.find_spec("pytest") is None:
        print(f"Error: pytest is not installed here. {PROGRAM} test installs it and runs the tests.", file=sys.stderr)
        raise typer.Exit(ExitCode.SETUP_MISSING)
    root = Path(__file__).resolve().parents[3]
    arguments = context.args or _ALL_CORES
    code = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments], cwd=root, env={**_ONE_THREAD_EACH, **os.environ}, check=False
    ).returncode
    raise typer.Exit(code)
