"""A thread for slow work, one piece after the other. It does not keep the program from ending."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

_log = logging.getLogger("slipstream.server")


class BackgroundThread:
    """Runs pieces of work in order. It is a daemon: a disk that hangs must not keep the program from ending."""

    def __init__(self, name: str) -> None:
        self._pieces: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self._has_ended = False
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def submit(self, piece: Callable[[], object]) -> None:
        """Run ``piece`` when those before it are done; what it raises is logged. After ``end`` it is dropped."""
        self._pieces.put(piece)

    def end(self, patience: float) -> None:
        """Drop what has not begun, and wait at most ``patience`` seconds for what has."""
        self._has_ended = True
        self._pieces.put(lambda: None)
        self._thread.join(patience)

    def _work(self) -> None:
        while not self._has_ended:
            piece = self._pieces.get()
            if not self._has_ended:
                self._run(piece)

    def _run(self, piece: Callable[[], object]) -> None:
        try:
            piece()
        except Exception:  # one piece must not cost those behind it
            _log.exception("%s failed", self._thread.name)
