"""The server's handle of one engine process."""

from __future__ import annotations

import logging
import os
import queue
import re
import subprocess
import sys
import threading
from contextlib import nullcontext
from io import BufferedWriter
from pathlib import Path

from core.process.child_process import PipeClosed, start_module
from core.values.messages import Command, ShareCores
from models.files.disk import numbered
from models.formatting.system_error import system_reason

_log = logging.getLogger(__name__)
_LOAD_ERROR = re.compile(r"(?:error loading model|failed to initialize the context): (.+)")
# Seconds to wait for a killed process, whose memory may take long to free.
_LEAVE_SECONDS = 3.0
# Lines of the log that are shown, and bytes of it that are searched.
_LOG_TAIL = 6
_MOST_READ = 4 << 20
# A log that is larger when an engine starts makes way for a new one.
_LARGE_LOG = 4 << 20


class EngineProcess:
    """One run of the engine process, from its start to its end. ``child`` is the process."""

    def __init__(self, log_folder: Path) -> None:
        """Start the process, which imports its modules and waits for ``LoadModel``. Raises OSError."""
        self.ready_at: float | None = None  # of ``time.monotonic``, once the model was loaded
        self.n_deaths_before = 0  # in a row, whose features it goes without
        with _open_log(log_folder) or nullcontext() as stderr:
            self.log_path = Path(stderr.name) if stderr is not None else None
            self._log_start = stderr.tell() if stderr is not None else 0
            self.child = start_module("core.loading.worker", stderr)
        self._commands: queue.SimpleQueue[Command | None] = queue.SimpleQueue()
        self._sender = threading.Thread(target=self._send_all, name="engine-sender", daemon=True)
        self._sender.start()

    def send(self, command: Command) -> None:
        """Queue a command, however slow the engine reads; a dead one gets none, and its requests end anyway."""
        self._commands.put(command)

    def _send_all(self) -> None:
        while (command := self._commands.get()) is not None:
            try:
                self.child.pipe.send(command)
            except PipeClosed:
                _log.info("The engine process %d is gone", self.child.pid)
                return
            except Exception:  # an engine that hears nothing more would leave its requests without an end
                _log.exception("The engine process %d is ended: a command could not be sent", self.child.pid)
                self.child.kill()
                return

    def kill(self) -> None:
        """Kill the process and wait until its memory is free; it holds no state that could be lost."""
        self.child.kill()
        try:
            self.child.wait(_LEAVE_SECONDS)
        except subprocess.TimeoutExpired:
            _log.warning("The engine process %d does not end", self.child.pid)

    def close(self) -> None:
        """Close the pipes of a process that has ended."""
        # Wait for the sender first: a closed descriptor is reused by the next file or socket that is opened.
        self._commands.put(None)
        self._sender.join()
        self.child.close()

    def written(self) -> str:
        """Return what the process has written into the log, or the end of that."""
        if self.log_path is None:
            return ""
        try:
            with open(self.log_path, "rb") as log:
                log.seek(max(self._log_start, log.seek(0, os.SEEK_END) - _MOST_READ))
                return log.read().decode("utf-8", "replace")
        except OSError:
            return ""


class EnginesAtWork:
    """The engine processes of a server that compute on the processor now, or load. Each is told how many they are."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told: dict[EngineProcess, int] = {}
        self._at_work: set[EngineProcess] = set()

    def __len__(self) -> int:
        return len(self._at_work)

    def put(self, process: EngineProcess, *, is_at_work: bool) -> None:
        """Note whether a process computes; may be called from any thread, as often as one likes."""
        with self._lock:
            if is_at_work == (process in self._at_work):
                return
            (self._at_work.add if is_at_work else self._at_work.discard)(process)
            n_engines = len(self._at_work)
            for one in self._at_work:
                if self._told.get(one, 1) != n_engines:
                    self._told[one] = n_engines
                    one.send(ShareCores(n_engines))

    def forget(self, process: EngineProcess) -> None:
        """Note that a process has ended."""
        self.put(process, is_at_work=False)
        with self._lock:
            self._told.pop(process, None)


def load_error_in(log: str) -> str:
    """Return why llama.cpp could not load the last model, in its own words; "" if it has said nothing."""
    found = _LOAD_ERROR.findall(log)
    return str(found[-1]).strip() if found else ""


def last_words(log: str) -> str:
    """Return the last lines before Python's dump of all stacks, which says nothing to a user."""
    lines = log.partition("\nFatal Python error")[0].splitlines()
    return "\n".join(line for line in lines[-_LOG_TAIL:] if line.strip())


def _open_log(folder: Path) -> BufferedWriter | None:
    """Open a log that no running engine writes, of this server or another; None where the folder cannot be written.

    The first is ``engine.log``. Its lock is the process's, which inherits the file, and goes with it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in numbered(folder / "engine.log"):
            for _ in range(2):
                log = path.open("ab")
                if not _lock(log):
                    log.close()
                    break
                if log.tell() <= _LARGE_LOG:
                    return log
                with log:
                    path.replace(path.with_suffix(".old.log"))
    except OSError as error:
        _log.warning("%s cannot be written: %s.", folder, system_reason(error))
    return None


def _lock(log: BufferedWriter) -> bool:
    """Lock a log; False where another engine has it."""
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # the disk knows no locks
        return True
    return True
