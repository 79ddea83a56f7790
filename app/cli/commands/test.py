"""``slipstream test``: the test suite."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import typer

from app.environment.exit_codes import ExitCode
from models.formatting.program import PROGRAM, PROGRAM_FOLDER

# On all cores, each engine with one thread: the processes share the cores, and threads that wait for each other would
# crawl. One for numpy too, which is imported some hundred times: starting more takes a third of that time.
_ALL_CORES = ("--numprocesses", "auto", "--dist", "loadfile")
_ONE_THREAD_EACH = {"OMP_THREAD_LIMIT": "1", "OPENBLAS_NUM_THREADS": "1"}
_SLOW = "--slow"
_WITHOUT_SLOW = ("-m", "not slow")
# pytest's exit code if some tests failed.
_SOME_FAILED = 1
# More failures than these have a cause that a second run would only repeat.
_MOST_RUN_AGAIN = 5


def test(context: typer.Context) -> None:
    """Run the tests on all cores.

    Tests marked as slow are left out: --slow, which the project's CI uses, runs these too.

    Whatever else follows goes to pytest, as in: ./slipstream test tests/core -k sampler

    Of all tests, up to five that failed run once more, alone: those that pass then are listed as unsteady.
    """
    if importlib.util.find_spec("pytest") is None:
        print(f"Error: pytest is not installed here. {PROGRAM} test installs it and runs the tests.", file=sys.stderr)
        raise typer.Exit(ExitCode.SETUP_MISSING)
    arguments = [one for one in context.args if one != _SLOW]
    if arguments:
        raise typer.Exit(_pytest(PROGRAM_FOLDER, *arguments))
    raise typer.Exit(run_all(PROGRAM_FOLDER, with_slow=_SLOW in context.args))


def run_all(root: Path, *, with_slow: bool) -> int:
    """Run the tests of the project in ``root``, and a few that failed once more; return pytest's exit code."""
    code = _pytest(root, "--cache-clear", *_ALL_CORES, *(() if with_slow else _WITHOUT_SLOW))
    failed = _last_failed(root)
    if code != _SOME_FAILED or not 0 < len(failed) <= _MOST_RUN_AGAIN:
        return code
    print(f"\n== {len(failed)} failed beside others: once more, alone", flush=True)
    code = _pytest(root, *sorted(failed))
    unsteady = sorted(failed - _last_failed(root)) if code <= _SOME_FAILED else []
    for name in unsteady:
        print(f"UNSTEADY {name}: it failed beside others and passed alone.", flush=True)
    return code


def _pytest(root: Path, *arguments: str) -> int:
    environment = {**_ONE_THREAD_EACH, **os.environ}
    return subprocess.run(
        [sys.executable, "-m", "pytest", *arguments], cwd=root, env=environment, check=False
    ).returncode


def _last_failed(root: Path) -> set[str]:
    try:
        return set(json.loads((root / ".pytest_cache" / "v" / "cache" / "lastfailed").read_bytes()))
    except (FileNotFoundError, ValueError):
        return set()
