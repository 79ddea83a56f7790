"""Starts our processes by forking one that has imported everything, on Linux: in milliseconds of CPU time.

Each has the environment, the folder, the streams and the process id of its own that a started one has; only the
imports are done before. ``python -m tests.support.fork_server NAME`` listens on that abstract socket until its stdin
ends. A client sends the folder, the words after ``python -m`` and the environment with three descriptors. It is told
the process id, which becomes its own name, and in the end the exit code; when the client goes first, the process is
killed.
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
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from io import BufferedReader, FileIO, TextIOWrapper
from pathlib import Path
from pkgutil import walk_packages
from typing import NamedTuple, cast

import psutil
import pytest

import app.library_service
import app.server
from app.client import server_process
from app.client.server_process import ServerProcess, library_command, library_environment, serve_command
from app.server.library.worker import LibraryWorker
from core.process import child_process
from core.process.child_process import WAITING
from models.formatting.program import PROGRAM_FOLDER

CAN_FORK = hasattr(os, "pidfd_open")
# What is forked of what forked processes start.
_FORKED = ("core.loading.worker", "core.loading.memory_fit", "app.jobs.quantise.worker", "app.jobs.pair_test.trial")
# With all that is in them.
_PARTS = (app.library_service, app.server)
# Not keyring and send2trash, which read the environment when they are imported, but what they need; huggingface_hub
# reads it anew.
_IMPORTED = (
    *_FORKED,
    "_strptime",
    "anyio._backends._asyncio",
    "app.cli.main",
    "app.cli.commands.serve",
    "app.doctor.checks",
    "app.library.moving",
    "core.loading.load_engine",
    "encodings.idna",
    "models.recommend.outline",
    "models.recommend.recommend",
    "certifi",
    "httpcore",
    "httpcore2",
    "httpx",
    "httpx2",
    "huggingface_hub.hf_api",
    *(("importlib_metadata._adapters",) if sys.version_info < (3, 12) else ()),
    "jaraco.classes.properties",
    "jaraco.context",
    "jaraco.functools",
    "secretstorage",
    "tqdm",
    "truststore",
    "uvicorn.lifespan.on",
    "uvloop",
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
        cwd=PROGRAM_FOLDER,
        env={**WAITING, **library_environment()},
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


def forked(command: list[str]) -> list[str]:
    """Return a command that does what ``command``, ``python -m MODULE …``, does; its process stands for that one's."""
    if not CAN_FORK:
        return command
    return _client(server_name(), command)


def forked_library_command() -> list[str]:
    """Return the library's command, forked."""
    return forked(library_command())


class ForkedServer(ServerProcess):
    """A server as ``ServerProcess`` starts one, forked; so are its engines."""

    def __init__(self, options: Sequence[str] = (), *, listed: bool = False) -> None:
        command = forked(serve_command(options))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(server_process, "serve_command", lambda _options: command)
            super().__init__(options, listed=listed)


def fork_children(name: Callable[[], str] = server_name) -> Callable[[], None]:
    """Let this process fork its engines, and others of ``_FORKED``, from now on; return what ends that."""
    if not CAN_FORK:
        return lambda: None
    started = child_process.module_command

    def command(module: str, *words: str) -> list[str]:
        whole = started(module, *words)
        return _client(name(), whole) if module in _FORKED else whole

    def end() -> None:
        child_process.module_command = started

    child_process.module_command = command
    return end


def _client(name: str, command: list[str]) -> list[str]:
    # Without site and the like it starts in a few milliseconds.
    return [sys.executable, "-I", "-S", str(_CLIENT), name, *command[command.index("-m") + 1 :]]


def stood_for(process: psutil.Process) -> psutil.Process:
    """Return the process that a client stands for; any other process is itself."""
    return psutil.Process(int(name)) if (name := process.name()).isdigit() else process


def descendants(process: psutil.Process) -> list[psutil.Process]:
    """Return all processes below one: in place of each client, at any level, the process that it stands for."""
    found = []
    for child in stood_for(process).children():
        with suppress(psutil.NoSuchProcess):  # one that has just ended
            itself = stood_for(child)
            found += [itself, *descendants(itself)]
    return found


# -- the server --------------------------------------------------------------------------------------------------------


def _serve(name: str) -> None:
    gc.disable()
    parts = (one.name for part in _PARTS for one in walk_packages(part.__path__, f"{part.__name__}."))
    for module in (*_IMPORTED, *parts):
        if not module.endswith("__main__"):
            importlib.import_module(module)
    assert not {"keyring", "send2trash"} & set(sys.modules)
    from app.server.application import all_routes

    all_routes()
    fork_children(lambda: name)
    _fork_servers(name)
    gc.freeze()
    gc.enable()
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
                    child.connection.close()
                listener.close()
                return
            elif key.data in children:  # not where both of its events came at once
                children.remove(key.data)
                for end in (key.data.connection, key.data.handle):
                    selector.unregister(end)
                _bury(key.data, is_forsaken=key.fileobj is key.data.connection)


def _fork_servers(name: str) -> None:
    """Let forked commands and benches fork the servers that they start, and those their libraries."""
    started, pid = server_process.serve_command, ServerProcess.pid.fget
    server_process.serve_command = lambda options=(): _client(name, started(options))
    ServerProcess.pid = property(lambda self: stood_for(psutil.Process(pid(self))).pid)
    library = partial(LibraryWorker, lambda: _client(name, library_command()))
    pytest.MonkeyPatch().setattr("app.server.application.LibraryWorker", library)


class _Child(NamedTuple):
    """A process: who asked for it, its process id, and a descriptor that can be read when it has ended."""

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
        _become(message, streams)
    for stream in streams:
        os.close(stream)
    _tell(connection, pid)
    return _Child(connection, pid, os.pidfd_open(pid))


def _tell(connection: socket.socket, number: int) -> None:
    try:
        connection.send(str(number).encode())
    except ConnectionError:  # the client has gone
        return


def _become(message: bytes, streams: list[int]) -> None:
    code = 1
    try:
        folder, n_words, *rest = message.split(b"\0")
        words, pairs = [os.fsdecode(word) for word in rest[: int(n_words)]], rest[int(n_words) :]
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        os.environ.clear()
        for name, _, value in (pair.partition(b"=") for pair in pairs):
            os.environb[name] = value
        importlib.reload(sys.modules["huggingface_hub.constants"])
        os.chdir(folder)
        sys.stdin = TextIOWrapper(BufferedReader(FileIO(0, closefd=False)), "utf-8")
        sys.stdout, sys.stderr = (
            TextIOWrapper(FileIO(number, "w", closefd=False), "utf-8", "backslashreplace", write_through=True)
            for number in (1, 2)
        )
        sys.argv = words
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as error:
        code = cast(int, error.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


if __name__ == "__main__":
    _serve(sys.argv[1])
