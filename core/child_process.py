"""What a process of ours does first when another one started it to talk over its standard streams."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from core.pipe import Pipe

# For the start of such a process: until it ignores signals, a Ctrl-C in the terminal must not reach it.
OWN_GROUP = None if sys.platform == "win32" else 0
# Windows would open a console for it.
NO_WINDOW: int = getattr(subprocess, "CREATE_NO_WINDOW", 0)


def own_streams() -> Pipe:
    """Keep stdin and stdout for the pipe alone: whatever C code prints goes to stderr."""
    pipe = Pipe(os.dup(0), os.dup(1))
    quiet = os.open(os.devnull, os.O_RDONLY)
    os.dup2(quiet, 0)
    os.dup2(2, 1)
    return pipe


def leave_signals_to_the_parent() -> None:
    """Ctrl-C goes to a whole group: the parent handles it, and ends us in order."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def die_with_parent() -> None:
    """Ask Linux to end this process when its parent dies, even in the middle of a computation."""
    if sys.platform == "linux":
        import ctypes

        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
