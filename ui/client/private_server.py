"""The window's own server: a child process that tells its address when it is ready."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from PySide6.QtCore import QObject, Signal

from ui.platform.child_process import BACK_OFF_MS, ChildProcess

READY = b"SLIPSTREAM READY "


class PrivateServer(ChildProcess):
    """Runs ``command`` and tells its address, for as long as it is wanted."""

    ready = Signal(str)  # its address

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: str,
        parent: QObject | None = None,
        back_off_ms: Sequence[int] = BACK_OFF_MS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(command, environment, folder, parent, back_off_ms, clock)
        self.line.connect(self._on_line)

    def _on_line(self, line: bytes) -> None:
        words = line.strip()
        if words.startswith(READY):
            self.ready.emit(words.removeprefix(READY).decode("ascii", "replace"))
