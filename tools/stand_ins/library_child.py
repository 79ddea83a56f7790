"""The library's process as a window's child, for tests and pictures."""

from __future__ import annotations

from app.client.library_process import library_command, library_environment, library_folder
from ui.platform.child_process import ChildProcess


def library_child(**environment: str) -> ChildProcess:
    """Return the real one, started as the app does; it starts when something is asked of it."""
    return ChildProcess(library_command(), {**library_environment(), **environment}, str(library_folder()))
