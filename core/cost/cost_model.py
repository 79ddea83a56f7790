"""How long a step takes: a function of its rows and of the KV it reads, measured on this machine."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from core.cost.plain_steps import PlainSteps
from core.values.step_kind import StepKind, kind_of

# Rows up to this have an entry of their own, so that a kernel that switches between two widths shows as a step.
_FINE_ROWS = 64
_ANCHORS = (32, _FINE_ROWS)
# A single step may be slow for reasons of its own: it moves the estimate by at most this factor's share.
_OUTLIER = 3.0
# While one width is seen again and again, what changes is the machine and not this width: nearly all of it goes to the
# factor for all. Else the other widths would be left behind, and rows beside it look free (it got slower) or too dear
# ever to be tried (it got faster, or everything was measured while others used the cores).
_DRIFT_RATE = 0.08
_ENTRY_RATE = 0.01
# But a width that has not been seen for so many steps learns twice as fast from the next one, and so on up to the
# highest rate.
_STALE_STEPS, _HIGHEST_RATE = 2, 0.3
# Of what a step says about its own width, this factor counts at most: the first one after long may be slow by chance.
_ENTRY_OUTLIER = math.log(1.5)
# So many steps in a row that are off by more than this factor, all in the same direction, are no hiccups: the
# calibration was made beside other work, or the machine's clock has changed. The factor for all follows them at once.
_RUN, _OFF = 5, math.log(1.25)
# Widths beyond the fine ones share few entries, which say less about all others.
_WIDE_RATE, _WIDE_DRIFT_RATE = 0.08, 0.02
_KV_RATE = 0.02
# No step takes longer, in seconds.
_ENDLESS = 3600.0


@dataclass(frozen=True, slots=True)
class Calibration:
    """Measured step times.

    ``seconds`` maps rows in the batch to seconds with an empty cache; ``kv_seconds`` is what each cached token that a
    row attends to adds. One of other texts, which it does not attend to, adds ``idle_share`` of that: nothing where the
    kernel skips what is masked.
    """

    seconds: Mapping[int, float]
    kv_seconds: float = 0.0
    idle_share: float = 1.0

    def __post_init__(self) -> None:
        # Written so that what is not a number fails too.
        if not self.seconds or min(self.seconds) < 1 or not all(0 < s < _ENDLESS for s in self.seconds.values()):
            raise ValueError("a calibration needs positive times for one row or more")
        if not 0 <= self.kv_seconds < _ENDLESS:
            raise ValueError("a calibration needs a time for each cached token, or zero")
        if not 0 <= self.idle_share <= 1:
            raise ValueError("a cached token of another text costs no more than one of the own")


class CostModel:
    """Step time in seconds for (rows, KV tokens read), from a calibration and from every step since.

    ``time(rows, kv)`` is the base of ``rows`` plus a slope times ``kv``, where ``kv`` is the sum over all rows of the
    tokens that the row attends to. Bases up to 64 rows are kept one by one, wider ones between measured widths on a
    line. One factor for all follows heat and load, so that a width that has not been seen for long is not stale. While
    a kind of step runs with fewer threads than it was measured with, its times are slowed down by a factor of its own.
    ``plain`` keeps what plain steps really took, apart from all that is guessed.
    """

    def __init__(self, calibration: Calibration) -> None:
        """Begin with measured times; those between measured widths are interpolated."""
        self._kv_seconds, self._idle_share = calibration.kv_seconds, calibration.idle_share
        self._drift = 1.0
        self.plain = PlainSteps(self.time)
        # What the factor should have been in each step of a run that is off.
        self._run: list[float] = []
        self._slowdowns: tuple[float, ...] | None = None
        self._n_observed = 0
        self._seen_at = [0] * (_FINE_ROWS + 1)
        known = calibration.seconds
        self._base = [0.0] + [_interpolate(known, rows) for rows in range(1, _FINE_ROWS + 1)]
        # Wider steps lie on lines that begin at the last fine entries.
        self._wide = {rows: self._base[rows] for rows in _ANCHORS}
        self._wide |= {rows: seconds for rows, seconds in known.items() if rows > _FINE_ROWS}

    def time(self, rows: int, kv: int = 0) -> float:
        """Return the expected seconds of a step of ``rows`` rows that read ``kv`` cached tokens altogether."""
        if rows <= 0:
            return 0.0
        base = self._base[rows] if rows <= _FINE_ROWS else _interpolate(self._wide, rows)
        seconds = (base + self._kv_seconds * kv) * self._drift
        return seconds if self._slowdowns is None else seconds * self._slowdowns[kind_of(rows)]

    def idle_time(self, rows: int, n_idle: int) -> float:
        """Return the seconds that a step of ``rows`` rows takes longer because of ``n_idle`` tokens of other texts."""
        return self.time(rows, round(self._idle_share * rows * n_idle)) - self.time(rows)

    def own_time(self, rows: int, kv: int = 0) -> float:
        """Return ``time`` as it would be if nothing was slowed down."""
        seconds = self.time(rows, kv)
        return seconds if self._slowdowns is None else seconds / self._slowdowns[kind_of(rows)]

    def slow_down(self, kind: StepKind, factor: float) -> None:
        """Let the times of a kind of step be ``factor`` times what was learnt of it; 1.0 ends that."""
        factors = list(self._slowdowns or [1.0] * len(StepKind))
        has_changed = (factor == 1.0) != (factors[kind] == 1.0)
        factors[kind] = factor
        self._slowdowns = tuple(factors) if any(one != 1.0 for one in factors) else None
        if has_changed:
            self.plain.drop_outdated()

    @property
    def is_slowed(self) -> bool:
        """True while a kind of step runs with fewer threads, because other programs want the cores."""
        return self._slowdowns is not None

    def widest(self, factor: float, kv_per_row: int, limit: int) -> int:
        """Return the most rows, up to ``limit``, that take at most ``factor`` times the time of one.

        Each row attends to ``kv_per_row`` cached tokens. A wider step is not considered behind one that takes longer.
        """
        longest = factor * self.time(1, kv_per_row)
        rows = 1
        while rows < limit and self.time(rows + 1, (rows + 1) * kv_per_row) <= longest:
            rows += 1
        return rows

    def extra(self, rows: int, more: int, kv: int = 0) -> float:
        """Return the seconds that ``more`` rows add to a step of ``rows`` rows, 0 where the curve falls."""
        return max(self.time(rows + more, kv) - self.time(rows, kv), 0.0)

    def observe(self, rows: int, kv: int, seconds: float, own_time: float = 0.0) -> None:
        """Learn from a step that took ``seconds`` and was not slowed down. ``own_time`` need not be computed again.

        What is no time (0, less, or not a number) teaches nothing.
        """
        if rows <= 0 or not 0.0 < seconds < math.inf:
            return
        expected = own_time or self.own_time(rows, kv)
        # On a logarithmic scale, twice as slow and twice as fast weigh the same, and one hiccup does little.
        ratio = seconds / expected
        error = math.log(min(max(ratio, 1 / _OUTLIER), _OUTLIER))
        share = self._kv_seconds * kv * self._drift / expected
        # The steps are so small that 1 + x is as good as its exponential.
        if share > 0:
            self._kv_seconds *= 1.0 + _KV_RATE * share * error
        self._n_observed += 1
        if rows > _FINE_ROWS:
            self._drift *= 1.0 + _WIDE_DRIFT_RATE * error
            self._learn_wide(rows, kv, seconds, error)
            return
        if -_OFF < error < _OFF:
            self._run.clear()
        elif self._is_new(ratio * self._drift):
            self._start_over(median(self._run))
            error = 0.0
        self._drift *= 1.0 + _DRIFT_RATE * error
        rate = _ENTRY_RATE * (1.0 + (self._n_observed - self._seen_at[rows]) / _STALE_STEPS)
        own_error = min(max(error, -_ENTRY_OUTLIER), _ENTRY_OUTLIER)
        self._base[rows] *= 1.0 + min(rate, _HIGHEST_RATE) * own_error
        self._seen_at[rows] = self._n_observed
        if rows in _ANCHORS:
            self._wide[rows] = self._base[rows]

    def _is_new(self, factor: float) -> bool:
        """Return whether the factor for all is another one now: so many steps in a row have said so."""
        if self._run and (self._run[-1] > self._drift) != (factor > self._drift):
            self._run.clear()
        self._run.append(factor)
        return len(self._run) >= _RUN

    def _start_over(self, factor: float) -> None:
        """All times are ``factor`` times what was measured."""
        self._drift = factor
        self._run.clear()
        self.plain.drop_outdated()

    def _learn_wide(self, rows: int, kv: int, seconds: float, error: float) -> None:
        wide = [width for width in self._wide if width > _FINE_ROWS]
        if wide:
            self._wide[min(wide, key=lambda width: abs(width - rows))] *= 1.0 + _WIDE_RATE * error
            return
        # Nothing was measured there. But the rows could be computed in several narrower steps.
        narrow = self._base[_FINE_ROWS]
        most = _OUTLIER * narrow * rows / _FINE_ROWS
        self._wide[rows] = min(max(seconds / self._drift - self._kv_seconds * kv, narrow), most)

    def snapshot(self) -> Calibration:
        """Return the present estimate in the form of a calibration, to be kept for the next start."""
        fine = {rows: self._base[rows] * self._drift for rows in range(1, _FINE_ROWS + 1)}
        wide = {rows: seconds * self._drift for rows, seconds in self._wide.items() if rows > _FINE_ROWS}
        return Calibration(fine | wide, self._kv_seconds * self._drift, self._idle_share)


def _interpolate(known: Mapping[int, float], rows: int) -> float:
    """Return the time of ``rows`` on a line between the nearest known widths; beyond them, from the outer two."""
    if rows in known:
        return known[rows]
    widths = sorted(known)
    if len(widths) == 1:
        # One point tells nothing about the slope: assume memory-bound, which the next steps will correct.
        return known[widths[0]]
    above = next((index for index, width in enumerate(widths) if width > rows), len(widths) - 1)
    right = widths[max(above, 1)]
    left = widths[max(above, 1) - 1]
    slope = (known[right] - known[left]) / (right - left)
    if rows > right:
        # Beyond all that is known, no curve falls.
        return known[right] + max(slope, 0.0) * (rows - right)
    value = known[left] + slope * (rows - left)
    return max(value, min(known.values()) * 0.5)
