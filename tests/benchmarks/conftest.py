from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.fork_server import forked

ROOT = Path(__file__).resolve().parents[2]


def run_module(name: str, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a bench as ``slipstream bench`` does, forked."""
    command = forked([sys.executable, "-m", f"benchmarks.{name}", *options])
    path = os.pathsep.join(part for part in (str(ROOT), os.environ.get("PYTHONPATH")) if part)
    variables = {**os.environ, "PYTHONPATH": path, **environment}
    return subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=280, check=False)


@pytest.fixture
def run_bench() -> Callable[..., dict[str, Any]]:
    """Runs a bench in its own process and returns its one JSON object."""

    def run(name: str, *options: str, **environment: str) -> dict[str, Any]:
        done = run_module(name, "--json", *options, **environment)
        assert done.returncode == 0, done.stderr
        report: dict[str, Any] = json.loads(done.stdout)
        assert report["bench"] == name
        assert {"date", "machine", "versions", "settings", "rows", "summary"} <= report.keys()
        return report

    return run


@pytest.fixture
def refuse(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a bench with bad options and returns what it says. It ends before anything is measured: here will do."""

    def run(name: str, *options: str, **environment: str) -> str:
        monkeypatch.setattr(sys, "argv", [name, *options])
        before = dict(os.environ)
        os.environ.update(environment)
        monkeypatch.delitem(sys.modules, f"benchmarks.{name}", raising=False)
        try:
            with pytest.raises(SystemExit) as end:
                runpy.run_module(f"benchmarks.{name}", run_name="__main__")
        finally:
            os.environ.clear()
            os.environ.update(before)
        assert end.value.code != 0
        return f"{capfd.readouterr().err}{end.value.code}"

    return run
