"""Commands of the set-up. Their output goes to the log line by line, and an interruption ends their child processes."""

from __future__ import annotations

import contextlib
import ctypes
import os
import queue
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from first_start.errors import CommandFailed

_TAIL = 15
_TICK_S = 0.25
_GRACE_S = 20.0


class Log:
    """The set-up's log file. ``tick`` is called a few times per second while a command runs."""

    def __init__(self, path: Path, tick: Callable[[], None] = lambda: None) -> None:
        self.path = path
        self.tick = tick
        self._file = path.open("w", encoding="utf-8", errors="replace")

    def write(self, line: str) -> None:
        """Add a line."""
        self._file.write(line.rstrip("\n") + "\n")
        self._file.flush()

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *raised: object) -> None:
        self._file.close()


def pip_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return ``environment`` without the variables that make pip install outside the venv, or build otherwise."""
    elsewhere = ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_REQUIRE_VIRTUALENV")
    otherwise = ("PIP_NO_BUILD_ISOLATION", "PIP_NO_BINARY", "PIP_ONLY_BINARY")
    kept = {name: value for name, value in environment.items() if name not in (*elsewhere, *otherwise)}
    return {**kept, "PIP_USER": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore"}


def run_logged(
    what: str,
    command: Sequence[str],
    log: Log,
    environment: Mapping[str, str] | None = None,
    on_line: Callable[[str], None] = lambda line: None,
    folder: Path | None = None,
) -> None:
    """Run ``command`` to its end; raise CommandFailed with the last lines of its output if it fails.

    It gets a session of its own, so that on Ctrl-C this process can stop all of it: pip, CMake and the compilers. Where
    this process is killed, the command is interrupted: else it would go on beside the next set-up.
    """
    log.write(f"\n$ {' '.join(command)}")
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            env=None if environment is None else dict(environment),
            cwd=folder,
            start_new_session=True,
            preexec_fn=_begin,  # noqa: PLW1509 - the threads of earlier commands have ended
        )
    except OSError as error:
        raise CommandFailed(what, 127, (str(error),)) from error
    tail: deque[str] = deque(maxlen=_TAIL)
    try:
        for line in _lines_of(child, log.tick):
            log.write(line)
            if line.strip():
                tail.append(line.rstrip())
            on_line(line)
        code = child.wait()
    except BaseException:
        _stop(child)
        raise
    if code:
        raise CommandFailed(what, code, tuple(tail))


def _lines_of(child: subprocess.Popen[str], tick: Callable[[], None]) -> Iterator[str]:
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    assert child.stdout is not None
    threading.Thread(target=_forward, args=(child.stdout, lines), daemon=True).start()
    while True:
        tick()
        with contextlib.suppress(queue.Empty):
            line = lines.get(timeout=_TICK_S)
            if line is None:
                return
            yield line


def _forward(stream: IO[str], lines: queue.SimpleQueue[str | None]) -> None:
    with stream:
        for line in stream:
            lines.put(line)
    lines.put(None)


def end_with_parent(number: signal.Signals) -> None:
    """Ask Linux to send this process a signal when its parent dies."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, number)


def _begin() -> None:
    """Begin as a child: Ctrl-C ends it, also where a script has started the set-up in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    end_with_parent(signal.SIGINT)


def _stop(child: subprocess.Popen[str]) -> None:
    # pip removes its temporary files, 400 MB in a build, after SIGINT only.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_GRACE_S)
            return
