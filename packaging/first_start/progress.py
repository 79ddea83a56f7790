"""The set-up's progress: one line per step, updated in place on a terminal and written once elsewhere."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from typing import TextIO

_WIDTH = 22
_HEARTBEAT_S = 30.0


def spell_seconds(seconds: float) -> str:
    """Return a duration as people say it."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s"


def spell_rest(elapsed: float, done: int, total: int) -> str:
    """Return in words how long the rest will take at the pace so far; "" while it is too early to say."""
    if total <= 0 or done * 20 < total or done >= total:
        return ""
    rest = elapsed * (total - done) / done
    return f", about {max(1, round(rest / 60))} min left" if rest >= 45 else ", less than a minute left"


class SetupProgress:
    """Steps with their time. ``tick`` keeps the clock moving between two lines of output."""

    def __init__(self, stream: TextIO, n_steps: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._n_steps, self._clock = stream, n_steps, clock
        self._on_terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._step = 0
        self._title = self._detail = ""
        self._began = self._step_began = self._spoke = clock()
        self._shares_since, self._shares_total = 0.0, 0

    @property
    def elapsed(self) -> float:
        """Seconds since the step began."""
        return self._clock() - self._step_began

    def spell_total(self) -> str:
        """Return the time since the first step began."""
        return spell_seconds(self._clock() - self._began)

    def say(self, text: str) -> None:
        """Print ``text`` on a line of its own."""
        self._clear()
        print(text, file=self._stream, flush=True)

    def begin(self, title: str) -> None:
        """Begin the next step."""
        self._step += 1
        self._title, self._detail = title, ""
        self._step_began = self._spoke = self._clock()
        if not self._on_terminal:
            self.say(f"{self._label()}...")

    def go_back(self, n_steps: int) -> None:
        """Let the last steps be done again."""
        self._step -= n_steps

    def update(self, detail: str) -> None:
        """Say what the step is doing now."""
        if detail != self._detail:
            self._detail = detail
            self.tick()

    def show_share(self, done: int, total: int) -> None:
        """Show how far a long step has come, and how long the rest will take."""
        if not self._shares_since or total != self._shares_total:
            self._shares_since, self._shares_total = self._clock(), total
        rest = spell_rest(self._clock() - self._shares_since, done, total)
        self.update(f"{done} of {total}{rest}")

    def tick(self) -> None:
        """Redraw the step's line; without a terminal print a line now and then as a sign of life."""
        if not self._title:
            return
        if self._on_terminal:
            width = shutil.get_terminal_size().columns
            line = f"{self._label()}{self._detail or '...'}  {spell_seconds(self.elapsed)}"
            self._stream.write("\r\x1b[K" + line[: width - 1])
            self._stream.flush()
        elif self._clock() - self._spoke >= _HEARTBEAT_S:
            self._spoke = self._clock()
            self.say(f"{self._label()}{self._detail or 'still running'}  {spell_seconds(self.elapsed)}")

    def end(self, result: str) -> None:
        """End the step, and print its ``result`` and time."""
        self.say(f"{self._label()}{result}  {spell_seconds(self.elapsed)}")
        self._title = ""

    def abandon(self) -> None:
        """Stop updating the current step's line, so that what follows begins on a new line."""
        if self._title and self._on_terminal:
            print(file=self._stream, flush=True)
        self._title = ""

    def _label(self) -> str:
        return f"  {self._step}/{self._n_steps} {self._title:<{_WIDTH}}"

    def _clear(self) -> None:
        if self._on_terminal:
            self._stream.write("\r\x1b[K")
