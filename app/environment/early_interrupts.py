"""Ctrl-C before the server runs: noted, to be obeyed where that is safe."""

from __future__ import annotations

import signal
from types import FrameType


class EarlyInterrupts:
    """Notes Ctrl-C instead of raising KeyboardInterrupt, until the event loop takes over.

    Raised in the middle of an import it can get lost and leave the lock of all imports taken, so that a thread which
    imports waits for ever: CPython 3.11 takes that lock in a callback of ``importlib._bootstrap._get_module_lock``,
    and what is raised in a callback is only printed.
    """

    def __init__(self) -> None:
        """Take over Ctrl-C. For the main thread."""
        self.came = False
        signal.signal(signal.SIGINT, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.came = True
