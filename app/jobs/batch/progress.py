"""How far a batch is: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TextIO

from app.jobs.batch.result_file import Tally
from models.formatting.figures import how_many, speed

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_LINE_SECONDS = 10.0  # between two lines of a log
_BAR_SECONDS = 0.1  # between two drawings on a terminal


class BatchRate:
    """How fast this run goes; what earlier runs have finished does not count."""

    def __init__(self, tally: Tally, n_lines: int, now: float) -> None:
        self._n_lines, self._began = n_lines, now
        self._n_before, self._n_tokens_before = tally.n_lines, tally.n_completion_tokens

    def seconds(self, now: float) -> float:
        """Return the seconds since the run began."""
        return max(now - self._began, 1e-9)

    def tokens_per_second(self, tally: Tally, now: float) -> float:
        """Return the generated tokens per second."""
        return (tally.n_completion_tokens - self._n_tokens_before) / self.seconds(now)

    def seconds_left(self, tally: Tally, now: float) -> float | None:
        """Return how long the rest will take at this pace, None before anything is finished."""
        n_finished = tally.n_lines - self._n_before
        return self.seconds(now) / n_finished * (self._n_lines - tally.n_lines) if n_finished else None

    def figures(self, tally: Tally, now: float) -> str:
        """Return what is shown beside the bar."""
        left = self.seconds_left(tally, now)
        return " · ".join(
            [
                f"{tally.n_lines:,} of {how_many(self._n_lines, 'line')}",
                *([f"{tally.n_failed:,} failed"] if tally.n_failed else []),
                speed(self.tokens_per_second(tally, now)),
                *([f"{clock(left)} left"] if left is not None else []),
            ]
        )


class BatchProgress:
    """Shows how far a batch is on ``stream``; a context manager, so that the bar leaves no trace."""

    def __init__(self, stream: TextIO, tally: Tally, n_lines: int, *, quiet: bool) -> None:
        self.pace = BatchRate(tally, n_lines, time.monotonic())
        self._stream, self._n_lines, self._quiet = stream, n_lines, quiet
        self._shown_at = time.monotonic()
        self._bar: tuple[Progress, TaskID] | None = None
        self._tally = tally

    def show(self, tally: Tally) -> None:
        """Show the present figures where it is time to."""
        now = time.monotonic()
        if self._quiet or now - self._shown_at < (_BAR_SECONDS if self._bar else _LINE_SECONDS):
            return
        self._shown_at = now
        figures = self.pace.figures(tally, now)
        if self._bar is None:
            print(figures, file=self._stream, flush=True)
            return
        bar, task = self._bar
        bar.update(task, completed=tally.n_lines, figures=figures)

    def __enter__(self) -> BatchProgress:
        if self._stream.isatty() and not self._quiet:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

            bar = Progress(
                BarColumn(), TextColumn("{task.fields[figures]}"), console=Console(file=self._stream), transient=True
            )
            figures = self.pace.figures(self._tally, time.monotonic())
            task = bar.add_task("", total=self._n_lines, completed=self._tally.n_lines, figures=figures)
            bar.start()
            self._bar = bar, task
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar[0].stop()
            self._bar = None


def clock(seconds: float) -> str:
    """Return a duration as 0:07, 12:30 or 3:05:00."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
