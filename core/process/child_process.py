"""Child processes that run modules of ours, the pipe to each, and how such a process sets itself up from inside."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any

from models.formatting.program import with_our_modules

_LENGTH = struct.Struct("<Q")
# Bytes of one system call at most, and bytes that a read asks for at least.
_CHUNK = 1 << 20
_SMALL = 1 << 16
# Bytes of what a child has printed in which its last line is.
_TAIL_BYTES = 4096


class PipeClosed(Exception):
    """The other end of the pipe is closed."""


class Pipe:
    """One end of a two-way pipe over two file descriptors. Sending is safe from several threads.

    Values are pickled: both ends are our own processes, and nothing from outside is ever written to these descriptors.
    """

    def __init__(self, read_fd: int, write_fd: int) -> None:
        """Take over both descriptors."""
        self._read_fd, self._write_fd = read_fd, write_fd
        self._lock = threading.Lock()
        self._unread = b""

    def send(self, value: object) -> None:
        """Write a value; raises PipeClosed."""
        body = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        with self._lock:
            self._write(_LENGTH.pack(len(body)) + body)

    def receive(self) -> Any:
        """Wait for the next value; raises PipeClosed. For one thread."""
        (size,) = _LENGTH.unpack(self._read(_LENGTH.size))
        return pickle.loads(self._read(size))

    def close(self) -> None:
        """Close both descriptors."""
        for fd in (self._read_fd, self._write_fd):
            try:
                os.close(fd)
            except OSError:
                continue

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._write_fd, view[:_CHUNK]) :]
        except OSError as error:
            raise PipeClosed from error

    def _read(self, size: int) -> bytes:
        """Return ``size`` bytes. Most messages arrive with one system call."""
        if len(self._unread) < size:
            parts, n_bytes = [self._unread], len(self._unread)
            while n_bytes < size:
                parts.append(self._read_some(max(size - n_bytes, _SMALL)))
                n_bytes += len(parts[-1])
            self._unread = b"".join(parts)
        found, self._unread = self._unread[:size], self._unread[size:]
        return found

    def _read_some(self, most: int) -> bytes:
        try:
            part = os.read(self._read_fd, min(most, _CHUNK))
        except OSError as error:
            raise PipeClosed from error
        if not part:
            raise PipeClosed
        return part


WAITING = {
    # Waiting threads must sleep in the end: by default they spin and take cores from other programs.
    "OMP_WAIT_POLICY": "passive",
    # But a step has hundreds of short waits, and sleeping and waking at each of them costs more than the step itself.
    # With a short spin first, steps on two cores were 1.4 (one row) to 1.9 times (16 rows) as fast as on one; with
    # immediate sleep they were 6 times slower. A thread that spins for less than the system leaves a core to another
    # program (3 ms) loses its core at each wait as soon as one program computes beside it: two engines on two cores
    # then took 10 to 30 times as long as one. This count is 8 ms on an AMD EPYC, where a pause takes 27 ns.
    "GOMP_SPINCOUNT": "300000",
}
"""Environment of a process that computes."""


# Until a child ignores signals, a Ctrl-C in the terminal must not reach it.
_OWN_GROUP = None if sys.platform == "win32" else 0
# Windows would open a console for it.
_NO_WINDOW: int = getattr(subprocess, "CREATE_NO_WINDOW", 0)
_LOOK_SECONDS = 0.5  # between two looks whether a child is still wanted

# On Linux, PR_SET_PDEATHSIG watches the *thread* that started a child: the child would be killed when a loader or timer
# thread ends. So one thread, which lives as long as this process, starts all children.
_starter = ThreadPoolExecutor(1, "child-starter")


def run_module(
    module: str,
    *arguments: str,
    seconds: float,
    text: str | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> subprocess.CompletedProcess[str]:
    """Run ``python -m module`` to its end and return its exit code and output; ``text`` is its stdin.

    It is killed when ``should_stop``, asked twice a second, returns True. Raises subprocess.TimeoutExpired after
    ``seconds``, and OSError.
    """
    command, until = module_command(module, *arguments), time.monotonic() + seconds
    with subprocess.Popen(
        command,
        stdin=None if text is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_environment(),
        text=True,
        creationflags=_NO_WINDOW,
    ) as child:
        try:
            while True:
                try:
                    said = child.communicate(text, timeout=min(_LOOK_SECONDS, max(until - time.monotonic(), 0.0)))
                    return subprocess.CompletedProcess(command, child.returncode, *said)
                except subprocess.TimeoutExpired:
                    text = None  # communicate keeps what it was given first, and refuses a second input
                    if time.monotonic() >= until:
                        raise subprocess.TimeoutExpired(command, seconds) from None
                    if should_stop():
                        child.kill()
        except BaseException:
            child.kill()
            raise


def start_module(module: str, stderr: IO[bytes] | None = None, pass_fds: tuple[int, ...] = ()) -> ChildProcess:
    """Start ``python -m module`` with a pipe to it; ``stderr`` None drops what it prints. Raises OSError.

    It inherits ``pass_fds``, and takes its end of the pipe with ``own_streams``.
    """

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            module_command(module),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr or subprocess.DEVNULL,
            env=_environment(),
            creationflags=_NO_WINDOW,
            process_group=_OWN_GROUP,
            pass_fds=pass_fds,
        )

    return ChildProcess(_starter.submit(start).result())


class ChildProcess:
    """A module of ours in a process of its own. ``pipe`` leads to it. Where the ``with`` block ends, it is killed."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        """Take over a process whose stdin and stdout are pipes."""
        assert process.stdin is not None
        assert process.stdout is not None
        self.pid = process.pid
        # The descriptors stay owned by the Popen object, which closes them in ``close``.
        self.pipe = Pipe(process.stdout.fileno(), process.stdin.fileno())
        self._process, self._streams = process, (process.stdin, process.stdout)

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    def kill(self) -> None:
        """Kill the process; ``wait`` returns when its memory is free."""
        self._process.kill()

    def wait(self, seconds: float | None = None) -> int:
        """Wait for the end and return the exit code (negative: the signal); raises subprocess.TimeoutExpired."""
        return self._process.wait(seconds)

    def close(self) -> None:
        """Close the pipe to a process that has ended."""
        for stream in self._streams:
            with contextlib.suppress(OSError):
                stream.close()

    def __enter__(self) -> ChildProcess:
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()
        self.wait()
        self.close()


def last_line(stderr: IO[bytes]) -> str:
    """Return the last words of a child that has ended: llama.cpp says why before it aborts."""
    stderr.seek(max(0, stderr.seek(0, os.SEEK_END) - _TAIL_BYTES))
    lines = stderr.read().decode("utf-8", "replace").strip().splitlines()
    return lines[-1].strip() if lines else ""


def module_command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module of ours."""
    # -P: do not import from the user's current folder.
    return [sys.executable, "-P", "-m", module, *arguments]


def _environment() -> dict[str, str]:
    """Return the environment of a child; what the user has set overrides WAITING."""
    return {**WAITING, **with_our_modules(os.environ), "GGML_NO_BACKTRACE": "1"}


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

    Use it in processes started by ``start_module``: for Linux the parent is the thread that started the process.
    """
    if sys.platform == "linux":
        import ctypes

        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
