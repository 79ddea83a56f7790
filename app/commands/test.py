"""``slipstream test``: the test suite."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import typer

from app.exit_codes import ExitCode


def test(context: typer.Context) -> None:
    """Run the tests.

    What follows goes to pytest, as in: slipstream test tests/core -k sampler
    """
    if importlib.util.find_spec("pytest") is None:
        print("Error: pytest is not installed here. ./slipstream test installs it and runs the tests.", file=sys.stderr)
        raise typer.Exit(ExitCode.SETUP_MISSING)
    root = Path(__file__).resolve().parents[2]
    raise typer.Exit(subprocess.run([sys.executable, "-m", "pytest", *context.args], cwd=root, check=False).returncode)
