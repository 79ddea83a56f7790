"""Runs a command of this program with ``--json``, as a process of its own that is followed and can be ended."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import IO, Any

import psutil

from app.environment.exit_codes import ExitCode
from app.environment.standard_streams import PROGRESS_AS_JSON
from app.jobs.pair_test.pair_test import Cancelled
from core.values.errors import SlipstreamError
from models.formatting.program import PROGRAM_FOLDER
from models.formatting.sentence import Sentence

# Codes of runs that came to their end: what they found is in the report.
_REPORTS = (ExitCode.OK, ExitCode.TEXT_CHANGED, ExitCode.SLOWER)
_LAST_LINES = 20  # of what it says, for its error
_STOPPED = Sentence("It was stopped.")
Said = Callable[[str, float], None]
"""Called with what is being done, and 0 to 1."""


class ProgramRun:
    """One run of ``./slipstream ARGUMENTS --json``; it may be cancelled from any thread."""

    def __init__(self, *arguments: str) -> None:
        """Prepare it; nothing is started yet."""
        self._command = [sys.executable, "-P", "-m", "app", *arguments, "--json"]
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._is_cancelled = False

    def run(self, say: Said) -> dict[str, Any]:
        """Run it to its end and return its report. Raises Cancelled, and SlipstreamError with what it said."""
        with self._started() as process:
            # While its report fills the other pipe, its words are read here.
            words: deque[str] = deque(maxlen=_LAST_LINES)
            reader = threading.Thread(target=_follow, args=(process.stderr, say, words), daemon=True)
            reader.start()
            assert process.stdout is not None
            printed = process.stdout.read()
            code = process.wait()
            reader.join()
        if self._is_cancelled:
            raise Cancelled(_STOPPED)
        if code not in _REPORTS:
            ended = Sentence("It ended with exit code {code}.", code=code)
            said = words[-1].removeprefix("Error: ") if words else ended
            raise SlipstreamError(said)
        report: dict[str, Any] = json.loads(printed)
        return report

    def cancel(self) -> None:
        """End it at once."""
        with self._lock:
            self._is_cancelled = True
            if self._process is not None and self._process.poll() is None:
                _kill(self._process.pid)

    def _started(self) -> subprocess.Popen[str]:
        with self._lock:
            if self._is_cancelled:
                raise Cancelled(_STOPPED)
            self._process = subprocess.Popen(
                self._command,
                cwd=PROGRAM_FOLDER,
                env={**os.environ, PROGRESS_AS_JSON: "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
            return self._process


def _kill(pid: int) -> None:
    """Kill a process with those that it started: a benchmark is a program that its command starts."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        for one in (*process.children(recursive=True), process):
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()


def _follow(stream: IO[str], say: Said, words: deque[str]) -> None:
    """Pass progress on; what else is said is kept, the last of it."""
    for line in stream:
        text = line.strip()
        if (step := _step(text)) is not None:
            say(*step)
        elif text:
            words.append(text)
            say(text, 0.0)


def _step(text: str) -> tuple[str, float] | None:
    """Return what a line says of progress; None where it says something else, which may look like JSON too."""
    try:
        step = json.loads(text)
        return str(step["stage"]), float(step["share"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
