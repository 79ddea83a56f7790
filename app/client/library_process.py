"""How the library's process is started."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from app.client.server_process import API_KEY_VARIABLE

_ROOT = Path(__file__).resolve().parents[2]


def library_command() -> list[str]:
    """Return the command line; run it in ``library_folder()`` with ``library_environment()``."""
    return [sys.executable, "-m", "app.library_service"]


def library_environment() -> dict[str, str]:
    """Return the environment: the user's own, since the Hub's settings may be in it, without the server's key."""
    own = {name: value for name, value in os.environ.items() if name != API_KEY_VARIABLE}
    path = os.pathsep.join(part for part in (str(_ROOT), os.environ.get("PYTHONPATH")) if part)
    return {**own, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}


def library_folder() -> Path:
    """Return the folder to run it in: not the user's, whose modules are not ours."""
    return _ROOT
