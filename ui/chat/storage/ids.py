"""Numbers for new chats and messages, given without asking the disk."""

from __future__ import annotations

import threading
import time


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class Ids:
    """Strictly growing 64-bit numbers, near the clock's microseconds and above all that were seen."""

    def __init__(self) -> None:
        self._last = 0
        self._lock = threading.Lock()

    def next(self) -> int:
        """Return a number that was not given before."""
        with self._lock:
            self._last = max(self._last + 1, time.time_ns() // 1_000)
            return self._last

    def saw(self, number: int) -> None:
        """Keep later numbers above ``number``, also when the clock was set back."""
        with self._lock:
            self._last = max(self._last, number)
