"""The reading of one file, away from the window: it tells how far it is, ends once, and can be cancelled."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from ui.client.attachments import from_object
from ui.language import tr
from ui.platform.helper_process import HelperProcess

MODULE = "ui.chat.attachments.read_file"
LONGEST_MS = 180_000  # a file that takes longer is given up


class FileReading(QObject):
    """Reads a file. After any number of ``progressed`` comes one of ``done`` and ``failed``; none after ``cancel``."""

    progressed = Signal(float)
    done = Signal(object)  # Attachment
    failed = Signal(str)  # a sentence

    def __init__(self, path: Path, parent: QObject | None = None, is_copy: bool = False) -> None:
        """``is_copy`` says that the file and its folder are ours: both go when they were read."""
        super().__init__(parent)
        self.path, self.is_copy = path, is_copy
        self._has_ended = False
        self._process = HelperProcess(MODULE, [str(path)], self)
        self._process.said.connect(self._take)
        self._process.ended.connect(
            lambda: self._fail(
                tr("{name} could not be read: it may be damaged. Save it anew, or as text.", name=path.name)
            )
        )
        self._timer = QTimer(self, singleShot=True, interval=LONGEST_MS)
        self._timer.timeout.connect(
            lambda: self._fail(tr("{name} takes too long to read: attach a part of it.", name=path.name))
        )

    @property
    def has_started(self) -> bool:
        """True from ``start`` on."""
        return self._process.has_started

    def start(self) -> None:
        """Begin."""
        self._timer.start()
        self._process.start()

    def cancel(self, *, keeps_copy: bool = False) -> None:
        """End without a word; a copy can be kept to be read another time."""
        self._end(keeps_copy=keeps_copy)

    def _take(self, line: bytes) -> None:
        said = json.loads(line)
        if "progress" in said:
            self.progressed.emit(float(said["progress"]))
        elif "problem" in said:
            self._fail(str(said["problem"]))
        elif (found := from_object(said.get("file"))) is not None and self._end():
            self.done.emit(found)

    def _fail(self, problem: str) -> None:
        if self._end():
            self.failed.emit(problem)

    def _end(self, *, keeps_copy: bool = False) -> bool:
        was_open, self._has_ended = not self._has_ended, True
        self._timer.stop()
        self._process.stop()
        if self.is_copy and not keeps_copy:
            shutil.rmtree(self.path.parent, ignore_errors=True)
        return was_open
