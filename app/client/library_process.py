"""How the library's process is started."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]


def library_command() -> list[str]:
    """Return the command line; run it in ``library_folder()`` with ``library_environment()``."""
    return [sys.executable, "-m", "app.library_service"]


def library_environment() -> dict[str, str]:
    """Return the environment: the user's own, since the Hub's settings may be in it."""
    path = os.pathsep.join(part for part in (str(_ROOT), os.environ.get("PYTHONPATH")) if part)
    return {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}


def library_folder() -> Path:
    """Return the folder to run it in: not the user's, whose modules are not ours."""
    return _ROOT
