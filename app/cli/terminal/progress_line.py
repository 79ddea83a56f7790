"""Progress on stderr: one line that changes in a terminal, else a line now and then."""

from __future__ import annotations

import sys
import time


class ProgressLine:
    """One line of progress."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._shown_at = 0.0
        self._is_open = False
        self._phase: str | None = None

    def show(self, text: str, phase: str, *, is_last: bool = False) -> None:
        """Show how it goes, not too often; a new ``phase`` at once. Without a terminal, the last is not shown."""
        is_new, self._phase = phase != self._phase, phase
        now = time.monotonic()
        if not is_new and now - self._shown_at < (0.2 if self._is_terminal else 10.0):
            return
        self._shown_at = now
        if self._is_terminal:
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
            self._is_open = True
        elif not is_last:
            print(text, file=sys.stderr, flush=True)

    def end(self) -> None:
        """Leave the line."""
        if self._is_open:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._is_open = False
