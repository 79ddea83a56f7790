"""Commands as a user types them, in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.fork_server import forked

ROOT = Path(__file__).resolve().parents[2]


def command(*words: str) -> list[str]:
    """Return the command line of this program with these words; run it in ``ROOT``."""
    return [sys.executable, "-m", "app", *words]


def started(*words: str, is_forked: bool = True, **options: Any) -> subprocess.Popen[str]:
    """Begin a command whose output and errors are read as text; of signals a forked one gets SIGINT and SIGTERM."""
    whole = forked(command(*words)) if is_forked else command(*words)
    pipe = subprocess.PIPE
    return subprocess.Popen(whole, cwd=ROOT, stdout=pipe, stderr=pipe, text=True, **options)


def ran(*words: str, is_forked: bool = True, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; what it imports is imported already where it is forked."""
    whole = forked(command(*words)) if is_forked else command(*words)
    return subprocess.run(whole, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False, **options)
