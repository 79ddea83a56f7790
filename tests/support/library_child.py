"""The library's process as a window's child, for tests and pictures."""

from __future__ import annotations

from app.library_process import library_command, library_environment, library_folder
from ui.child_process import ChildProcess


def library_child(**environment: str) -> ChildProcess:
    """Return the real one; it starts when something is asked of it."""
    return ChildProcess(library_command(), {**library_environment(), **environment}, str(library_folder()))
