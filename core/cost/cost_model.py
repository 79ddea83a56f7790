"""What a step costs: the bytes that it reads, and its time by rows and KV tokens, measured on this machine."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from statistics import fmean, median

from core.values.engine_options import DEFAULT_UBATCH, MANY_ROWS
from models.estimate.speed.work import reads_of_file
from models.facts.model_facts import ModelFacts, WeightBytes


@dataclass(frozen=True, slots=True)
class ReadCost:
    """Bytes that a model reads in a step: ``weights`` by the number of rows, ``cell`` for each cached token.

    ``state`` is the recurrent state of one sequence. Layers with a sliding window read ``cell_in_window`` for each of
    the last ``window`` tokens. More than ``n_ubatch`` rows are evaluated in several passes of ``n_ubatch`` rows, each
    of which reads all weights.
    """

    weights: WeightBytes
    cell: int
    state: int = 0
    window: int = 0
    cell_in_window: int = 0
    n_ubatch: int = DEFAULT_UBATCH

    @classmethod
    def of(cls, facts: ModelFacts, kv_type: str, n_ubatch: int = DEFAULT_UBATCH) -> ReadCost:
        """Return the cost of a model with a KV cache of ``kv_type``."""
        cell = facts.kv_bytes_per_further_token(kv_type)
        in_window = facts.kv_bytes_per_token(kv_type) - cell
        state = facts.state_bytes
        return cls(facts.active_weights, cell, state, facts.window, in_window, n_ubatch)

    @classmethod
    def of_mtp_head(cls, facts: ModelFacts, kv_type: str) -> ReadCost:
        """Return the cost of the first prediction head of a model."""
        cell = facts.mtp_kv_bytes_per_token(kv_type) // max(facts.n_mtp_layers, 1)
        return cls(facts.mtp_weights, cell)

    @classmethod
    def of_head_file(cls, head: ModelFacts, target: ModelFacts, kv_type: str) -> ReadCost:
        """Return the cost of a head in its own file, which may also read the output weights of its target."""
        return cls(head.used_of(reads_of_file(head, target)), head.kv_bytes_per_token(kv_type))

    def step(self, n_rows: int, n_cells: int, n_sequences: int = 1) -> int:
        """Return the bytes of a step; ``n_cells`` counts the cells of each sequence once, however many rows it has."""
        weights = self.weights.read_by(min(n_rows, self.n_ubatch))
        if n_rows > self.n_ubatch:
            n_full, rest = divmod(n_rows, self.n_ubatch)
            weights = n_full * weights + (self.weights.read_by(rest) if rest else 0)
            # The rows of each pass attend to the past tokens and to the rows of all passes up to it.
            n_past = n_cells - n_rows
            n_cells = n_full * n_past + self.n_ubatch * n_full * (n_full + 1) // 2 + (n_past + n_rows if rest else 0)
        n_bytes = weights + self.cell * n_cells + self.state * n_sequences
        return n_bytes + self.cell_in_window * min(n_cells, self.window * n_sequences) if self.window else n_bytes


class StepKind(IntEnum):
    """Kinds of steps by their rows; each has its own number of threads."""

    DECODE = 0  # one row
    FEW = 1
    MANY = 2  # ``MANY_ROWS`` or more


def kind_of(rows: int) -> StepKind:
    """Return the kind of a step of ``rows`` rows."""
    if rows == 1:
        return StepKind.DECODE
    return StepKind.FEW if rows < MANY_ROWS else StepKind.MANY


# Steps of one width that are needed for an estimate: with fewer, one slow step would decide it.
_FEWEST = 3
# One in _CONTROL_STEPS steps of a width that could have drafts is run without, as a control. The interval is shorter
# while a width has some plain steps, but fewer than _FEWEST.
_CONTROL_STEPS, _FIRST_STEPS = 40, 8
# Latest plain steps that count, for each width. At one in 40 steps they go back some seconds.
_KEPT = 12
# Share of them that is left out at each end: a step that was interrupted takes many times as long.
_LEFT_OUT = 0.17
# After the machine's speed has changed, steps that differ from the new estimate by more than this factor are outdated.
_FAR = 1.4


class PlainSteps:
    """Seconds of the latest plain steps by width (sequences): observations only, None where they are too few."""

    def __init__(self, time: Callable[[int, int], float]) -> None:
        """``time`` predicts seconds from rows and KV tokens; used only to convert between context lengths."""
        self._time = time
        self._seen: dict[int, deque[tuple[int, float, float]]] = {}
        # Steps since the last plain one, by width.
        self._waited: dict[int, int] = {}
        # Cached estimates for an empty KV cache, by width.
        self._levels: dict[int, float | None] = {}

    def saw(self, rows: int, kv: int, seconds: float, decode: float) -> None:
        """Record a plain step of ``rows`` sequences and ``kv`` tokens; ``decode`` of its seconds are the model's."""
        if rows <= 0 or not 0.0 < seconds < math.inf:
            return
        seen = self._seen.get(rows)
        if seen is None:
            seen = self._seen[rows] = deque(maxlen=_KEPT)
        seen.append((kv, seconds, decode))
        self._levels.pop(rows, None)
        self._waited[rows] = 0

    def is_due(self, rows: int) -> bool:
        """Return whether the next step of ``rows`` sequences should be plain; call it once before each such step."""
        waited = self._waited.get(rows, 0) + 1
        seen = self._seen.get(rows)
        n_late = waited - (_CONTROL_STEPS if seen is None or len(seen) >= _FEWEST else _FIRST_STEPS)
        # The first step may still have to recompute what a rejected draft has dropped. Then the second one is plain.
        self._waited[rows] = waited if n_late < 2 else 0
        return n_late > 0

    def seconds(self, rows: int, kv: int) -> float | None:
        """Return the seconds of a plain step, from observed ones; None where there are too few."""
        if rows not in self._levels:
            self._levels[rows] = self._level(rows)
        level = self._levels[rows]
        return None if level is None else level * self._time(rows, kv) / self._time(rows, 0)

    def own_seconds(self, rows: int) -> float:
        """Return the seconds of a plain step beside the model's own decode; 0 where none was seen."""
        return max(median([one[1] - one[2] for one in self._seen.get(rows) or ((0, 0.0, 0.0),)]), 0.0)

    def drop_outdated(self) -> None:
        """Drop the steps that are far from the present estimate, after the machine's speed has changed."""
        self._levels.clear()
        for rows, seen in self._seen.items():
            near = [one for one in seen if 1 / _FAR < one[2] / self._time(rows, one[0]) < _FAR]
            self._seen[rows] = deque(near, maxlen=_KEPT)

    def _level(self, rows: int) -> float | None:
        seen = self._seen.get(rows, ())
        if len(seen) < _FEWEST:
            return None
        empty, n_out = self._time(rows, 0), round(_LEFT_OUT * len(seen))
        levels = sorted([seconds * empty / self._time(rows, kv) for kv, seconds, _ in seen])
        return fmean(levels[n_out : len(levels) - n_out])


# What a further row of a text costs for each cached token, as a share of the first row: they share what they read.
# Measured on two cores with Slipstream's own attention, 900 tokens: 0.34 for two rows, 0.23 from 16 rows on.
SHARED_READ = 0.25


def attended(n_rows: int, n_past: int) -> int:
    """Return how many cached tokens of a single row ``n_rows`` rows of a text cost, after ``n_past`` other tokens."""
    return round((n_past + (n_rows + 1) / 2) * (1.0 + SHARED_READ * (n_rows - 1))) if n_rows else 0


# Each row count up to this has its own entry, so that a switch between kernels shows as a jump.
_FINE_ROWS = 64
_ANCHORS = (32, _FINE_ROWS)
# A single step may be slow by chance: its ratio to the estimate is limited to this factor.
_OUTLIER = 3.0
# While the same width repeats, a change comes from the machine and not from this width, so nearly all of it goes to the
# factor for all widths. Otherwise the other widths would keep old values: they would look free when the machine got
# slower, or too costly to try when it got faster (or when everything was measured under load).
_DRIFT_RATE = 0.08
_ENTRY_RATE = 0.01
# The learning rate of a width grows with the steps since it was last seen: twice the rate after _STALE_STEPS steps,
# three times after twice as many, up to _HIGHEST_RATE.
_STALE_STEPS, _HIGHEST_RATE = 2, 0.3
# Limit for the update of a width's own entry: the first step of a width after a long time may be slow by chance.
_ENTRY_OUTLIER = math.log(1.5)
# _RUN steps in a row that are off by more than this factor in the same direction are no outliers: the calibration was
# made under load, or the clock rate has changed. Then the factor for all widths is set to their median at once.
_RUN, _OFF = 5, math.log(1.25)
# Wider steps share few entries, so they say less about all other widths.
_WIDE_RATE, _WIDE_DRIFT_RATE = 0.08, 0.02
_KV_RATE = 0.02
# Upper bound of a step time in seconds.
_ENDLESS = 3600.0


@dataclass(frozen=True, slots=True)
class Calibration:
    """Measured step times.

    ``seconds`` maps rows in the batch to seconds with an empty cache. ``kv_seconds`` is added for each cached token
    that the first row of a text attends to; further rows share what it reads (``attended``). A masked token of another
    sequence adds ``idle_share`` of that: 0 where the kernel skips masked cells. So many steps of a width in a row as
    ``n_recording`` may be slow and teach nothing: a GPU records the kernels of a graph.
    """

    seconds: Mapping[int, float]
    kv_seconds: float = 0.0
    idle_share: float = 1.0
    n_recording: int = 0

    def __post_init__(self) -> None:
        # Written so that NaN fails too.
        if not self.seconds or min(self.seconds) < 1 or not all(0 < s < _ENDLESS for s in self.seconds.values()):
            raise ValueError("a calibration needs positive times for one row or more")
        if not 0 <= self.kv_seconds < _ENDLESS:
            raise ValueError("a calibration needs a time for each cached token, or zero")
        if not 0 <= self.idle_share <= 1:
            raise ValueError("a cached token of another text costs no more than one of the own")


class CostModel:
    """Predicts step time in seconds from (rows, KV tokens read); learns from a calibration and from every step.

    ``time(rows, kv)`` is the base of ``rows`` plus a slope times ``kv``, where ``kv`` is the sum of what ``attended``
    returns for each text. Bases up to 64 rows are separate entries; wider ones are interpolated between
    measured widths. One factor for all widths follows clock rate and load, so that widths not seen for long stay
    current. While a kind of step runs with fewer threads than it was measured with, its times are multiplied by a
    slowdown factor. ``plain`` keeps the observed times of plain steps, without any prediction.
    """

    def __init__(self, calibration: Calibration) -> None:
        """Start from measured times; widths between them are interpolated."""
        self._kv_seconds, self._idle_share = calibration.kv_seconds, calibration.idle_share
        self._n_recording = calibration.n_recording
        # Slow steps since the last one that was not, by width.
        self._n_slow = [0] * (_FINE_ROWS + 1)
        self._drift = 1.0
        self.plain = PlainSteps(self.time)
        # The factor that each step of the present run of deviating steps would need.
        self._run: list[float] = []
        self._slowdowns: tuple[float, ...] | None = None
        self._n_observed = 0
        self._seen_at = [0] * (_FINE_ROWS + 1)
        known = calibration.seconds
        self._base = [0.0] + [interpolate(known, rows) for rows in range(1, _FINE_ROWS + 1)]
        # Wider steps are interpolated from the last fine entries on.
        self._wide = {rows: self._base[rows] for rows in _ANCHORS}
        self._wide |= {rows: seconds for rows, seconds in known.items() if rows > _FINE_ROWS}

    def time(self, rows: int, kv: int = 0) -> float:
        """Return the expected seconds of a step of ``rows`` rows that read ``kv`` cached tokens altogether."""
        if rows <= 0:
            return 0.0
        base = self._base[rows] if rows <= _FINE_ROWS else interpolate(self._wide, rows)
        seconds = (base + self._kv_seconds * kv) * self._drift
        return seconds if self._slowdowns is None else seconds * self._slowdowns[kind_of(rows)]

    def idle_time(self, rows: int, n_idle: int) -> float:
        """Return the seconds that ``n_idle`` cached tokens of other sequences add to a step of ``rows`` rows."""
        return self.time(rows, round(self._idle_share * rows * n_idle)) - self.time(rows)

    def own_time(self, rows: int, kv: int = 0) -> float:
        """Return ``time`` without the slowdown factors."""
        seconds = self.time(rows, kv)
        return seconds if self._slowdowns is None else seconds / self._slowdowns[kind_of(rows)]

    def slow_down(self, factors: tuple[float, ...]) -> None:
        """Multiply the predicted times of each kind of step by its factor; 1.0 ends that."""
        before = self._slowdowns or (1.0,) * len(StepKind)
        self._slowdowns = factors if any(one != 1.0 for one in factors) else None
        if any((new == 1.0) != (old == 1.0) for new, old in zip(factors, before, strict=True)):
            self.plain.drop_outdated()

    @property
    def is_slowed(self) -> bool:
        """True while a kind of step runs with fewer threads because other programs use the cores."""
        return self._slowdowns is not None

    def widest(self, factor: float, kv_per_row: int, limit: int) -> int:
        """Return the most rows, each of ``kv_per_row`` tokens, within ``factor`` times the time of one."""
        longest = factor * self.time(1, kv_per_row)
        rows = 1
        while rows < limit and self.time(rows + 1, (rows + 1) * kv_per_row) <= longest:
            rows += 1
        return rows

    def extra(self, rows: int, more: int) -> float:
        """Return the seconds that ``more`` rows add to a step of ``rows`` rows, at least 0."""
        return max(self.time(rows + more) - self.time(rows), 0.0)

    def observe(self, rows: int, kv: int, seconds: float, own_time: float = 0.0) -> None:
        """Learn from a step that was not slowed down; ``own_time`` is its prediction if that is known. In seconds."""
        if rows <= 0 or not 0.0 < seconds < math.inf:
            return
        expected = own_time or self.own_time(rows, kv)
        # On a logarithmic scale, twice as slow and twice as fast weigh the same, and one outlier does little.
        ratio = seconds / expected
        error = math.log(min(max(ratio, 1 / _OUTLIER), _OUTLIER))
        if rows <= _FINE_ROWS and self._n_recording and self._is_recording(rows, error):
            return
        share = self._kv_seconds * kv * self._drift / expected
        # The updates are so small that 1 + x is close enough to exp(x).
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
            self._drift, error = median(self._run), 0.0
            self._run.clear()
            self.plain.drop_outdated()
        self._drift *= 1.0 + _DRIFT_RATE * error
        rate = _ENTRY_RATE * (1.0 + (self._n_observed - self._seen_at[rows]) / _STALE_STEPS)
        own_error = min(max(error, -_ENTRY_OUTLIER), _ENTRY_OUTLIER)
        self._base[rows] *= 1.0 + min(rate, _HIGHEST_RATE) * own_error
        self._seen_at[rows] = self._n_observed
        if rows in _ANCHORS:
            self._wide[rows] = self._base[rows]

    def _is_recording(self, rows: int, error: float) -> bool:
        """Count a slow step of a width; return whether it may be one in which a GPU records its graph."""
        self._n_slow[rows] = self._n_slow[rows] + 1 if error > _OFF else 0
        return 0 < self._n_slow[rows] <= self._n_recording

    def _is_new(self, factor: float) -> bool:
        """Return whether _RUN steps in a row show that the factor for all widths has changed."""
        if self._run and (self._run[-1] > self._drift) != (factor > self._drift):
            self._run.clear()
        self._run.append(factor)
        return len(self._run) >= _RUN

    def _learn_wide(self, rows: int, kv: int, seconds: float, error: float) -> None:
        wide = [width for width in self._wide if width > _FINE_ROWS]
        if wide:
            self._wide[min(wide, key=lambda width: abs(width - rows))] *= 1.0 + _WIDE_RATE * error
            return
        # No wide step was measured. Its time is bounded by that of several narrower steps.
        narrow = self._base[_FINE_ROWS]
        most = _OUTLIER * narrow * rows / _FINE_ROWS
        self._wide[rows] = min(max(seconds / self._drift - self._kv_seconds * kv, narrow), most)

    def snapshot(self) -> Calibration:
        """Return the present estimate as a calibration, to be kept for the next start."""
        fine = {rows: self._base[rows] * self._drift for rows in range(1, _FINE_ROWS + 1)}
        wide = {rows: seconds * self._drift for rows, seconds in self._wide.items() if rows > _FINE_ROWS}
        return Calibration(fine | wide, self._kv_seconds * self._drift, self._idle_share, self._n_recording)


def interpolate(known: Mapping[int, float], rows: int) -> float:
    """Return the time of ``rows``, interpolated between the nearest known widths; extrapolated from the outer two."""
    if rows in known:
        return known[rows]
    widths = sorted(known)
    if len(widths) == 1:
        # One point gives no slope: assume memory-bound; the next steps correct it.
        return known[widths[0]]
    above = next((index for index, width in enumerate(widths) if width > rows), len(widths) - 1)
    right = widths[max(above, 1)]
    left = widths[max(above, 1) - 1]
    slope = (known[right] - known[left]) / (right - left)
    if rows > right:
        # Beyond the known widths the time does not fall.
        return known[right] + max(slope, 0.0) * (rows - right)
    value = known[left] + slope * (rows - left)
    return max(value, min(known.values()) * 0.5)
