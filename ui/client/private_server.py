"""The window's own server: a child process that is watched, started again when it dies, and ended with its stdin."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence

from PySide6.QtCore import QByteArray, QObject, QProcess, QProcessEnvironment, QTimer, Signal

from ui.language import tr

READY = b"SLIPSTREAM READY "
BACK_OFF_MS = (500, 1_000, 2_000, 4_000)
STEADY_SECONDS = 60.0  # a server that lived this long may fail again as often as a new one
STOP_MS = 3_000
KEPT_LINES = 30


class PrivateServer(QObject):
    """Runs ``command`` for as long as it is wanted, and tells its address."""

    ready = Signal(str)  # its address
    lost = Signal(str)  # it ended; another one is on its way
    gave_up = Signal(str)  # it ended too often; the last lines it said

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: str,
        back_off_ms: Sequence[int] = BACK_OFF_MS,
    ) -> None:
        super().__init__()
        self._command, self._back_off_ms = list(command), back_off_ms
        self._failures = 0
        self._began = 0.0
        self._is_wanted = self._is_restarting = False
        self._last_words: deque[str] = deque(maxlen=KEPT_LINES)
        self._process = QProcess(self)
        self._process.setWorkingDirectory(folder)
        variables = QProcessEnvironment()
        for name, value in environment.items():
            variables.insert(name, value)
        self._process.setProcessEnvironment(variables)
        self._process.readyReadStandardOutput.connect(self._on_output)
        self._process.readyReadStandardError.connect(self._on_words)
        self._process.finished.connect(lambda code, status: self._on_end(tr("exit code {code}", code=code)))
        self._process.errorOccurred.connect(self._on_error)
        self._again = QTimer(self, singleShot=True)
        self._again.timeout.connect(self._begin)
        self._patience = QTimer(self, singleShot=True)
        self._patience.timeout.connect(self._process.kill)

    def start(self) -> None:
        """Start, also after ``gave_up``."""
        self._is_wanted = True
        self._failures = 0
        self._begin()

    def restart(self, command: Sequence[str]) -> None:
        """End the server politely and start it with another command line, without waiting for either."""
        self._command, self._is_wanted, self._failures = list(command), True, 0
        self._again.stop()
        if self._process.state() == QProcess.ProcessState.NotRunning:
            self._begin()
            return
        self._is_restarting = True
        self._process.closeWriteChannel()
        self._patience.start(STOP_MS)

    def stop(self) -> None:
        """End the server: politely by closing its stdin, then for good. Waits a few seconds at most."""
        self._is_wanted = False
        self._again.stop()
        self._patience.stop()
        if self._process.state() == QProcess.ProcessState.NotRunning:
            return
        self._process.closeWriteChannel()
        if not self._process.waitForFinished(STOP_MS):
            self._process.kill()
            self._process.waitForFinished(STOP_MS)

    def _begin(self) -> None:
        if self._process.state() == QProcess.ProcessState.NotRunning:
            self._began = time.monotonic()
            self._process.start(self._command[0], self._command[1:])

    def _on_output(self) -> None:
        self._process.setReadChannel(QProcess.ProcessChannel.StandardOutput)
        while self._process.canReadLine():
            words = bytes(self._process.readLine().data()).strip()
            if words.startswith(READY):
                self.ready.emit(words.removeprefix(READY).decode("ascii", "replace"))

    def _on_words(self) -> None:
        # Whatever it writes is taken at once: a child whose pipe is full would stand still.
        words: QByteArray = self._process.readAllStandardError()
        self._last_words.extend(bytes(words.data()).decode("utf-8", "replace").splitlines())

    def _on_error(self, error: QProcess.ProcessError) -> None:
        if error == QProcess.ProcessError.FailedToStart:
            self._on_end(self._process.errorString())

    def _on_end(self, how: str) -> None:
        if not self._is_wanted:
            return
        if self._is_restarting:
            self._is_restarting = False
            self._patience.stop()
            self._begin()
            return
        if time.monotonic() - self._began > STEADY_SECONDS:
            self._failures = 0
        if self._failures >= len(self._back_off_ms):
            self._is_wanted = False
            self.gave_up.emit("\n".join(self._last_words) or how)
            return
        self._again.start(self._back_off_ms[self._failures])
        self._failures += 1
        self.lost.emit(how)


def last_line(words: str) -> str:
    """Return the last line that says something."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    return lines[-1] if lines else tr("it ended without a word")
