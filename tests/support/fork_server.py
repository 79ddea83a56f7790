"""Starts the library's process by forking one that has imported everything, on Linux: in milliseconds of CPU time.

Each library has the environment, the folder, the streams and the process id of its own that a started one has; only
the imports are done before. ``python -m tests.support.fork_server NAME`` listens on that abstract socket until its
stdin ends. A client sends the folder and the environment with three descriptors, and is told the process id and, in
the end, the exit code; when the client goes first, the process is killed.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import traceback
from functools import cache
from pathlib import Path
from pkgutil import iter_modules
from typing import NamedTuple, cast

import app.library_service
from app.client.server_process import library_command, library_environment, own_folder

CAN_FORK = hasattr(os, "pidfd_open")
_MODULE = "app.library_service"
# Not huggingface_hub and keyring, which read the environment when they are imported, but what they need.
_IMPORTED = (
    *(f"{_MODULE}.{module.name}" for module in iter_modules(app.library_service.__path__) if module.name != "__main__"),
    "app.doctor.checks",
    "models.recommend.recommend",
    "certifi",
    "httpcore",
    "httpx",
    "httpx2",
    "secretstorage",
    "tqdm",
    "truststore",
    "yaml",
)
_LONGEST_MESSAGE = 1 << 17
_CLIENT = Path(__file__).with_name("fork_client.py")


@cache
def server_name() -> str:
    """Start the server of this process, once; return its name."""
    name = f"slipstream-fork-server-{os.getpid()}"
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.support.fork_server", name],
        cwd=own_folder(),
        env=library_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"

    @atexit.register
    def stop() -> None:
        server.communicate()

    return name


def forked_library_command() -> list[str]:
    """Return a command that does what ``library_command`` does; its process stands for the library's."""
    if not CAN_FORK:
        return library_command()
    # Without site and the like the client starts in a few milliseconds.
    return [sys.executable, "-I", "-S", str(_CLIENT), server_name()]


# -- the server --------------------------------------------------------------------------------------------------------


def _serve(name: str) -> None:
    for module in _IMPORTED:
        importlib.import_module(module)
    gc.freeze()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(f"\0{name}")
    listener.listen(64)
    selector = selectors.DefaultSelector()
    selector.register(0, selectors.EVENT_READ)
    selector.register(listener, selectors.EVENT_READ)
    os.write(1, b"ready\n")
    children: set[_Child] = set()
    while True:
        for key, _ in selector.select():
            if key.fileobj is listener:
                child = _accept(listener)
                children.add(child)
                for end in (child.connection, child.handle):
                    selector.register(end, selectors.EVENT_READ, child)
            elif key.fd == 0:
                for child in children:
                    os.kill(child.pid, signal.SIGKILL)
                return
            elif key.data in children:  # not where both of its events came at once
                children.remove(key.data)
                for end in (key.data.connection, key.data.handle):
                    selector.unregister(end)
                _bury(key.data, is_forsaken=key.fileobj is key.data.connection)


class _Child(NamedTuple):
    """A library: who asked for it, its process id, and a descriptor that can be read when it has ended."""

    connection: socket.socket
    pid: int
    handle: int


def _bury(child: _Child, *, is_forsaken: bool) -> None:
    if is_forsaken:
        os.kill(child.pid, signal.SIGKILL)
    _, status = os.waitpid(child.pid, 0)
    _tell(child.connection, os.waitstatus_to_exitcode(status))
    child.connection.close()
    os.close(child.handle)


def _accept(listener: socket.socket) -> _Child:
    connection, _ = listener.accept()
    message, streams, _, _ = socket.recv_fds(connection, _LONGEST_MESSAGE, 3)
    pid = os.fork()
    if pid == 0:
        _become_a_library(message, streams)
    for stream in streams:
        os.close(stream)
    _tell(connection, pid)
    return _Child(connection, pid, os.pidfd_open(pid))


def _tell(connection: socket.socket, number: int) -> None:
    try:
        connection.send(str(number).encode())
    except BrokenPipeError:  # the client has gone
        return


def _become_a_library(message: bytes, streams: list[int]) -> None:
    code = 1
    try:
        folder, *pairs = message.split(b"\0")
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        os.environ.clear()
        for name, _, value in (pair.partition(b"=") for pair in pairs):
            os.environb[name] = value
        os.chdir(folder)
        runpy.run_module(_MODULE, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as error:
        code = cast(int, error.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


if __name__ == "__main__":
    _serve(sys.argv[1])
