"""One line on a terminal that shows how far a model is loaded, and leaves no trace."""

from __future__ import annotations

import time
from typing import TextIO

_QUIET_SECONDS = 0.4
_CLEAR = "\r\x1b[K"


class LoadingLine:
    """Shows progress on ``stream`` where that is a terminal, once loading takes long enough to be noticed."""

    def __init__(self, stream: TextIO, quiet_seconds: float = _QUIET_SECONDS) -> None:
        self._stream, self._quiet_seconds = stream, quiet_seconds
        self._since = time.monotonic()
        self._is_terminal = stream.isatty()
        self._shown = ""

    def show(self, what: str, progress: float | None = None) -> None:
        """Show what is happening; ``progress`` is 0 to 1."""
        if not self._is_terminal or time.monotonic() - self._since < self._quiet_seconds:
            return
        text = what if progress is None else f"{what} {progress:4.0%}"
        if text != self._shown:
            self._stream.write(_CLEAR + text)
            self._stream.flush()
            self._shown = text

    def note(self, text: str) -> None:
        """Show ``text``, or nothing any more where it is empty."""
        if text:
            self.show(text)
        else:
            self.clear()

    def clear(self) -> None:
        """Remove the line; the next ``show`` begins a new wait."""
        if self._shown:
            self._stream.write(_CLEAR)
            self._stream.flush()
        self._shown, self._since = "", time.monotonic()
