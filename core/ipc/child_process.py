"""Starts child processes that communicate over stdin and stdout, and sets up such a process from inside."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from types import MappingProxyType
from typing import IO

from core.ipc.pipe import Pipe

WAITING = {
    # Waiting threads must sleep in the end: by default they spin and take cores from other programs.
    "OMP_WAIT_POLICY": "passive",
    # But a step has hundreds of short waits, and sleeping and waking at each of them costs more than the step itself.
    # With a short spin first, steps on two cores were 1.4 (one row) to 1.9 times (16 rows) as fast as on one; with
    # immediate sleep they were 6 times slower. This count is a fraction of a millisecond, as long as the engine's own
    # work between two steps, so that the threads still spin when the next step begins.
    "GOMP_SPINCOUNT": "100000",
}
"""Environment of a process that computes."""


# Until a child ignores signals, a Ctrl-C in the terminal must not reach it.
_OWN_GROUP = None if sys.platform == "win32" else 0
# Windows would open a console for it.
NO_WINDOW: int = getattr(subprocess, "CREATE_NO_WINDOW", 0)

_Started = Future[subprocess.Popen[bytes]]
_orders: queue.SimpleQueue[tuple[_Started, Callable[[], subprocess.Popen[bytes]]]] = queue.SimpleQueue()
_beginning = threading.Lock()
_starter: threading.Thread | None = None


def start_child(module: str, *, stderr: IO[bytes] | int, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start ``python -m module`` with pipes to its stdin and stdout. Raises OSError.

    On Linux, PR_SET_PDEATHSIG watches the *thread* that started the child: the child would be killed when a loader or
    timer thread ends. So one thread, which lives as long as this process, starts all children.
    """
    global _starter
    with _beginning:
        if _starter is None or not _starter.is_alive():
            _starter = threading.Thread(target=_start_all, name="child-starter", daemon=True)
            _starter.start()

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            # -P: do not import from the user's current folder.
            [sys.executable, "-P", "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=environment,
            creationflags=NO_WINDOW,
            process_group=_OWN_GROUP,
        )

    started: _Started = Future()
    _orders.put((started, start))
    return started.result()


def _start_all() -> None:
    while True:
        started, start = _orders.get()
        try:
            started.set_result(start())
        except Exception as error:  # the caller gets the error; this thread must go on
            started.set_exception(error)


def own_streams() -> Pipe:
    """Reserve stdin and stdout for the pipe: what C code prints goes to stderr."""
    pipe = Pipe(os.dup(0), os.dup(1))
    quiet = os.open(os.devnull, os.O_RDONLY)
    os.dup2(quiet, 0)
    os.dup2(2, 1)
    return pipe


def leave_signals_to_the_parent() -> None:
    """Ignore SIGINT and SIGTERM: Ctrl-C reaches the whole group, and the parent ends this process in order."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def die_with_parent() -> None:
    """Ask Linux to end this process when its parent dies, even in the middle of a computation.

    Use it in processes started by ``start_child``: for Linux the parent is the thread that started the process.
    """
    if sys.platform == "linux":
        import ctypes

        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


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
