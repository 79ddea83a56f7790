"""Runs a module in its own process and returns its output, because llama.cpp aborts on bad input."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

_ROOT = Path(__file__).resolve().parents[2]
_NOTHING: Mapping[str, str] = MappingProxyType({})


def run_aside(
    module: str, *arguments: str, seconds: float, text: str | None = None, environment: Mapping[str, str] = _NOTHING
) -> subprocess.CompletedProcess[str]:
    """Run ``python -m module`` and return its exit code and output; ``text`` is its stdin.

    ``environment`` is added to that of this process. Raises subprocess.TimeoutExpired after ``seconds``, and OSError.
    """
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        input=text,
        cwd=_ROOT,
        env={**os.environ, **environment, "PYTHONPATH": str(_ROOT)},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
