"""Processes of our own: a server that is started for one caller and ends with it, and the library behind a server."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import IO

from app.client.discovery import UNLISTED_VARIABLE
from app.environment.exit_codes import ExitCode
from core.values.errors import SlipstreamError
from models.formatting.program import PROGRAM_FOLDER, with_our_modules

API_KEY_VARIABLE = "SLIPSTREAM_API_KEY"
READY_PREFIX = "SLIPSTREAM READY "
# Variables that `serve` reads where a user starts it; a server for one caller is as that caller wants it.
_OF_LLAMA_SERVER = ("LLAMA_ARG_", "LLAMA_API_KEY")
_GRACE_SECONDS = 5.0  # to end politely, before it is killed
_KEPT_LINES = 40  # of its stderr, more than any error takes
_SHARED_CODES = (ExitCode.USAGE, ExitCode.SETUP_MISSING, ExitCode.MODEL)


class ServerStartFailed(SlipstreamError):
    """The server ended, or stayed silent, when it should have taken connections.

    ``exit_code`` is what that means for whoever started it.
    """

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.exit_code = ExitCode(code) if code in _SHARED_CODES else ExitCode.ERROR


def serve_command(options: Sequence[str] = ()) -> list[str]:
    """Return the command line of a server for one caller; run it in ``PROGRAM_FOLDER`` with ``serve_environment()``."""
    own = ["--host", "127.0.0.1", "--port", "0", "--announce", "--exit-with-stdin"]
    return [sys.executable, "-m", "app", "serve", *own, *options]


def serve_environment(api_key: str, *, listed: bool = False) -> dict[str, str]:
    """Return the environment of such a server: the key goes here because command lines are visible to everyone."""
    kept = {name: value for name, value in _environment().items() if not name.startswith(_OF_LLAMA_SERVER)}
    environment = {**kept, API_KEY_VARIABLE: api_key}
    environment.pop(UNLISTED_VARIABLE, None)
    return environment if listed else {**environment, UNLISTED_VARIABLE: "1"}


def library_command() -> list[str]:
    """Return the command line of the library's process, which runs behind a server in ``PROGRAM_FOLDER``."""
    return [sys.executable, "-m", "app.library_service"]


def library_environment() -> dict[str, str]:
    """Return its environment: the user's own, since the Hub's settings may be in it, without the server's key."""
    environment = {**_environment(), "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    environment.pop(API_KEY_VARIABLE, None)
    return environment


def new_api_key() -> str:
    """Return a key that nobody can guess."""
    return os.urandom(24).hex()


class ServerProcess:
    """``python -m app serve`` as a child with a random port and key.

    It leaves when its stdin closes, which the system does for us even when this process is killed.
    ``options`` are further options of ``serve``; ``listed`` lets other commands of this user find it.
    """

    def __init__(self, options: Sequence[str] = (), *, listed: bool = False) -> None:
        self.api_key = new_api_key()
        self._url: str | None = None
        self._announced = threading.Event()
        self._last_words: deque[str] = deque(maxlen=_KEPT_LINES)
        self._process = subprocess.Popen(
            serve_command(options),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            env=serve_environment(self.api_key, listed=listed),
            cwd=PROGRAM_FOLDER,
            # Ctrl-C in a terminal reaches every process of the group: the caller decides what it means.
            start_new_session=sys.platform != "win32",
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        self._readers = [self._start_reader(self._read_stdout), self._start_reader(self._read_stderr)]

    @property
    def pid(self) -> int:
        """Process id of the server."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """How it ended; None while it runs."""
        return self._process.poll()

    @property
    def last_words(self) -> str:
        """The last lines it wrote on stderr."""
        return "\n".join(self._last_words).strip().removeprefix("Error: ")

    def wait_listening(self, timeout: float = 60.0) -> str:
        """Return its address once it accepts connections (the model may still be loading).

        Raises ServerStartFailed when it ends before that, or says nothing for ``timeout`` seconds.
        """
        self._announced.wait(timeout)
        if self._url is not None:
            return self._url
        if not self._announced.is_set():
            raise ServerStartFailed(f"The server did not start within {timeout:.0f} seconds.\n{self.last_words}")
        self._join_readers()
        raise self.failure()

    def failure(self) -> ServerStartFailed:
        """Return why it ended, in its own words where it had some."""
        code = self._process.wait(_GRACE_SECONDS)
        return ServerStartFailed(self.last_words or f"The server ended with exit code {code} and no message.", code)

    def stop(self) -> None:
        """End the server and what it started; returns when it is gone."""
        try:
            self._ask_to_leave()
        except KeyboardInterrupt:
            self._process.kill()
            raise
        finally:
            self._process.wait()
            self._join_readers()

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _ask_to_leave(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        for more_force in (self._process.terminate, self._process.kill):
            try:
                self._process.wait(_GRACE_SECONDS)
                return
            except subprocess.TimeoutExpired:
                more_force()

    def _start_reader(self, read: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        return thread

    def _join_readers(self) -> None:
        deadline = time.monotonic() + 1.0
        for reader in self._readers:
            reader.join(max(0.0, deadline - time.monotonic()))
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None and not any(reader.is_alive() for reader in self._readers):
                pipe.close()

    def _read_stdout(self) -> None:
        for line in _lines(self._process.stdout):
            if self._url is None and line.startswith(READY_PREFIX):
                self._url = line.removeprefix(READY_PREFIX).strip().rstrip("/")
                self._announced.set()
        self._announced.set()

    def _read_stderr(self) -> None:
        # Must be read always: a full pipe would stop the server.
        for line in _lines(self._process.stderr):
            self._last_words.append(line.rstrip())


def _environment() -> dict[str, str]:
    """Return the environment in which our modules are found."""
    return {**with_our_modules(os.environ), "PYTHONUNBUFFERED": "1"}


def _lines(pipe: IO[str] | None) -> list[str] | IO[str]:
    return pipe if pipe is not None else []
