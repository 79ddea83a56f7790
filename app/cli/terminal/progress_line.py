"""Progress on stderr: one line that changes in a terminal, else a line now and then."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TextIO

from app.cli.terminal.text import width
from app.environment.standard_streams import PROGRESS_AS_JSON

_CLEAR = "\r\x1b[K"


def _can_change(stream: TextIO) -> bool:
    """Whether a line can be written over: a dumb terminal has no way to."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def _fitted(text: str, stream: TextIO) -> str:
    """Return as much as one row holds: of a line that wraps, only the last row could be removed."""
    try:
        n_columns = os.get_terminal_size(stream.fileno()).columns
    except OSError:
        n_columns = 0
    if n_columns and width(text) >= n_columns:
        while text and width(text) > n_columns - 2:
            text = text[:-1]
        text += "…"
    return text


class ProgressLine:
    """One line of progress."""

    def __init__(self) -> None:
        self._is_terminal = _can_change(sys.stderr)
        self._shown_at = 0.0
        self._is_open = False
        self._phase: str | None = None

    def show(self, text: str, phase: str, *, is_last: bool = False) -> None:
        """Show the progress, not too often; a new ``phase`` at once. Without a terminal, the last is not shown."""
        is_new, self._phase = phase != self._phase, phase
        now = time.monotonic()
        if not is_new and now - self._shown_at < (0.2 if self._is_terminal else 10.0):
            return
        self._shown_at = now
        if self._is_terminal:
            print(f"{_CLEAR}{_fitted(text, sys.stderr)}", end="", file=sys.stderr, flush=True)
            self._is_open = True
        elif not is_last:
            print(text, file=sys.stderr, flush=True)

    def end(self) -> None:
        """Leave the line."""
        if self._is_open:
            print(_CLEAR, end="", file=sys.stderr, flush=True)
            self._is_open = False


_QUIET_SECONDS = 0.4  # a load that is over sooner needs no line


class LoadingLine:
    """Shows progress on ``stream`` where that is a terminal, once loading takes long enough to be noticed."""

    def __init__(self, stream: TextIO, quiet_seconds: float = _QUIET_SECONDS) -> None:
        self._stream, self._quiet_seconds = stream, quiet_seconds
        self._since = time.monotonic()
        self._is_terminal = _can_change(stream)
        self._shown = ""

    def show(self, what: str, progress: float | None = None) -> None:
        """Show what is happening; ``progress`` is 0 to 1."""
        if PROGRESS_AS_JSON in os.environ:
            print(json.dumps({"stage": what.rstrip(":"), "share": progress or 0.0}), file=self._stream, flush=True)
            return
        if not self._is_terminal or time.monotonic() - self._since < self._quiet_seconds:
            return
        text = what if progress is None else f"{what} {progress:4.0%}"
        if text != self._shown:
            self._stream.write(_CLEAR + _fitted(text, self._stream))
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
