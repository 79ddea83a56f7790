"""A Python module of ours that runs as a process of its own and says things in lines."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from PySide6.QtCore import QObject, QProcess, Signal

from models.formatting.program import PROGRAM_FOLDER


class HelperProcess(QObject):
    """Runs ``python -m module arguments``. After any number of ``said`` comes one ``ended``, unless it is stopped."""

    said = Signal(bytes)  # a line
    ended = Signal()

    def __init__(self, module: str, arguments: Sequence[str], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._module, self._arguments = module, list(arguments)
        self.has_started = self._has_ended = False
        self._process = QProcess(self)
        self._process.setWorkingDirectory(str(PROGRAM_FOLDER))
        self._process.setStandardErrorFile(QProcess.nullDevice())
        self._process.readyReadStandardOutput.connect(self._on_output)
        self._process.finished.connect(lambda *how: self._on_end())
        self._process.errorOccurred.connect(self._on_error)

    def start(self) -> None:
        """Begin."""
        self.has_started = True
        self._process.start(sys.executable, ["-m", self._module, *self._arguments])

    def write(self, line: bytes) -> None:
        """Send it a line; what is written before it runs waits."""
        self._process.write(line)

    def stop(self) -> None:
        """End it without a word."""
        self._has_ended = True
        if self._process.state() is not QProcess.ProcessState.NotRunning:
            self._process.kill()
            # Qt warns of a process that is deleted while it runs; this one is gone at once.
            self._process.waitForFinished(1_000)

    def _on_output(self) -> None:
        # Lines may be cut anywhere.
        while not self._has_ended and self._process.canReadLine():
            self.said.emit(bytes(self._process.readLine().data()))

    def _on_error(self, error: QProcess.ProcessError) -> None:
        if error is QProcess.ProcessError.FailedToStart:
            self._on_end()

    def _on_end(self) -> None:
        self._on_output()
        if not self._has_ended:
            self._has_ended = True
            self.ended.emit()
