"""The library's process as a window's child, for tests and pictures."""

from __future__ import annotations

from app.client.library_process import library_environment, library_folder
from tests.support.fork_server import forked_library_command
from ui.platform.child_process import ChildProcess


def forked_library_child() -> ChildProcess:
    """Return one that starts in no time, by a fork of one that has its imports behind it."""
    return ChildProcess(forked_library_command(), library_environment(), str(library_folder()))
