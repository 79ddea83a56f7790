"""The server's handle of one engine process."""

from __future__ import annotations

import logging
import os
import queue
import re
import subprocess
import threading
import time
from contextlib import nullcontext
from pathlib import Path

from core.process.child_process import PipeClosed, start_module
from core.values.messages import Command

_log = logging.getLogger(__name__)
_LOAD_ERROR = re.compile(rb"error loading model: (.+)")
# Seconds to wait for a killed process, whose memory may take long to free.
_LEAVE_SECONDS = 3.0
# Lines of the log that are shown, and bytes of it that are searched.
_LOG_TAIL = 6
_MOST_READ = 4 << 20


class EngineProcess:
    """One run of the engine process, from its start to its end. ``child`` is the process."""

    def __init__(self, log_path: Path | None) -> None:
        """Start the process, which imports its modules and waits for ``LoadModel``. Raises OSError."""
        self.log_path = log_path
        self.ready_at: float | None = None
        with open(log_path, "ab") if log_path else nullcontext() as stderr:
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

    @property
    def seconds_in_use(self) -> float:
        """How long the model was loaded; 0 where it never was."""
        return 0.0 if self.ready_at is None else time.monotonic() - self.ready_at

    def close(self) -> None:
        """Close the pipes of a process that has ended."""
        # Wait for the sender first: a closed descriptor is reused by the next file or socket that is opened.
        self._commands.put(None)
        self._sender.join()
        self.child.close()

    def wrote(self, words: str) -> bool:
        """Return whether the process wrote ``words`` into the log; a dump of all stacks may follow them."""
        return words.encode() in self._written()

    def load_error(self) -> str:
        """Return why llama.cpp could not load the last model, in its own words; "" if it has said nothing."""
        found = _LOAD_ERROR.findall(self._written())
        return found[-1].decode("utf-8", "replace").strip() if found else ""

    def _written(self) -> bytes:
        """What the process wrote into the log."""
        if self.log_path is None:
            return b""
        try:
            with open(self.log_path, "rb") as log:
                log.seek(self._log_start)
                return log.read(_MOST_READ)
        except OSError:
            return b""

    def last_words(self) -> str:
        """Return the last lines of the log."""
        if self.log_path is None:
            return ""
        try:
            with open(self.log_path, "rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - (16 << 10)))
                # Before Python's dump of all stacks, which says nothing to a user.
                lines = log.read().decode("utf-8", "replace").partition("\nFatal Python error")[0].splitlines()
        except OSError:
            return ""
        return "\n".join(line for line in lines[-_LOG_TAIL:] if line.strip())
