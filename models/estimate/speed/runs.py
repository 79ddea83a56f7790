"""Measured runs of models on this machine, in one small file; the speed model learns from them."""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median_high
from typing import Any

from models.estimate.speed.efficiency import Observation
from models.estimate.speed.speeds import MeasuredSpeed
from models.estimate.speed.work import Amounts
from models.files.disk import read_json, write_whole
from models.formatting.json_values import value_of

FILE_NAME = "runs.json"
# Older files count as empty: those before 3 are of slower kernels, those before 2 had guessed seconds beside drafts.
_FORMAT = 3
# Runs that are kept of one model with the same options and about the same context, and of all models.
_KEPT_EACH, _KEPT = 7, 600
# A run that takes this many times as long as the others of its kind was disturbed, unless as many as _BELIEVED in a row
# do. One that is as much faster was not: nothing makes a reply faster than the machine is.
_FAR_OFF, _BELIEVED = 1.5, 3
_MOST_AMOUNTS = 64
_LONGEST = 3600.0
_adding = threading.Lock()


@dataclass(frozen=True, slots=True)
class ModelRun:
    """One reply of a model that had the machine for itself.

    ``model`` and ``n_bytes`` identify the file, ``options`` says how it was loaded. ``draft`` is the file that drafted,
    "mtp" for prediction heads, or "" for none. The model judged ``n_drafted`` drafted tokens and accepted
    ``n_accepted``. ``seconds`` is the time of a token in observed plain steps, ``rate`` the tokens per second of the
    reply. ``n_tokens`` is the length of the reply, ``n_past`` the number of tokens before its middle. ``at`` is the
    time in seconds since 1970.
    """

    model: str
    n_bytes: int
    options: str
    draft: str
    amounts: Amounts
    seconds: float
    rate: float
    n_past: int
    n_tokens: int
    n_drafted: int
    n_accepted: int
    at: float

    @property
    def key(self) -> tuple[str, int, str, str, int]:
        """Runs with the same key measure the same thing; contexts are grouped by powers of two."""
        return self.model, self.n_bytes, self.options, self.draft, (self.n_past + 255).bit_length()


def read_runs(folder: Path, machine: str) -> tuple[ModelRun, ...]:
    """Runs of this machine, oldest first; a file that is damaged, old, or of another machine, counts as empty."""
    return _read(folder, machine)[0]


def add_runs(folder: Path, machine: str, runs: Sequence[ModelRun]) -> None:
    """Add runs to the file, but no outliers, and drop the oldest; raises OSError if the folder cannot be written."""
    with _adding:  # each engine of a server adds its own
        kept, doubted = map(list, _read(folder, machine))
        for run in runs:
            kept, doubted = _with(kept, doubted, run)
        lists = {"runs": _kept(kept), "doubted": _kept(doubted)}
        content = {"format": _FORMAT, "machine": machine, **{name: list(map(asdict, of)) for name, of in lists.items()}}
        write_whole(folder / FILE_NAME, json.dumps(content))


def observations(runs: Iterable[ModelRun]) -> list[Observation]:
    """One observation per key: the middle one of its runs."""
    by_key: dict[object, list[ModelRun]] = defaultdict(list)
    for run in runs:
        by_key[run.key].append(run)
    return [Observation(middle.amounts, middle.seconds) for middle in map(_middle, by_key.values())]


def measured(runs: Iterable[ModelRun], model: str, n_bytes: int) -> MeasuredSpeed | None:
    """The speed of this file with the options and context of its latest run."""
    mine = [run for run in runs if (run.model, run.n_bytes) == (model, n_bytes)]
    if not mine:
        return None
    latest = max(mine, key=lambda run: run.at)
    same = [run for run in mine if run.key == latest.key]
    middle, rate = _middle(same), median_high(run.rate for run in same)
    return MeasuredSpeed(rate, 1.0 / middle.seconds, middle.n_past, len(same), latest.at)


def judged(runs: Iterable[ModelRun], model: str, n_bytes: int, draft: str) -> tuple[int, int]:
    """How many tokens of ``draft`` were compared with this file's own, and how many were equal."""
    mine = [run for run in runs if (run.model, run.n_bytes, run.draft) == (model, n_bytes, draft)]
    return sum(run.n_drafted for run in mine), sum(run.n_accepted for run in mine)


def _middle(runs: Sequence[ModelRun]) -> ModelRun:
    """The median by time; of two the faster, since a disturbance only makes a run longer."""
    return sorted(runs, key=lambda run: run.seconds)[(len(runs) - 1) // 2]


def _with(kept: list[ModelRun], doubted: list[ModelRun], run: ModelRun) -> tuple[list[ModelRun], list[ModelRun]]:
    """Runs that are kept, and outliers that may be believed later, after another run."""
    same = [one for one in kept if one.key == run.key]
    alike = [one for one in doubted if one.key == run.key and _is_near(one, run)]
    doubted = [one for one in doubted if one.key != run.key]
    if not same or _is_near(_middle(same), run):
        return [*kept, run], doubted
    if run.seconds > _middle(same).seconds and len(alike) + 1 < _BELIEVED:
        return kept, [*doubted, *alike, run]
    # The machine is not what it was, or the kept runs were disturbed.
    return [*(one for one in kept if one.key != run.key or _is_near(one, run)), *alike, run], doubted


def _is_near(one: ModelRun, other: ModelRun) -> bool:
    return max(one.seconds, other.seconds) <= _FAR_OFF * min(one.seconds, other.seconds)


def _read(folder: Path, machine: str) -> tuple[tuple[ModelRun, ...], tuple[ModelRun, ...]]:
    """The runs that are kept in the file, and the outliers that may be believed later."""
    content = read_json(folder / FILE_NAME)
    try:
        if (content["format"], content["machine"]) != (_FORMAT, machine):
            return (), ()
        runs, doubted = ([_run(entry) for entry in content.get(name, ())] for name in ("runs", "doubted"))
    except (AttributeError, KeyError, TypeError):
        return (), ()
    return tuple(run for run in runs if run is not None), tuple(run for run in doubted if run is not None)


def _kept(runs: Iterable[ModelRun]) -> list[ModelRun]:
    """The newest of each key, the newest of all."""
    seen: dict[object, int] = defaultdict(int)
    newest = []
    oldest_first = sorted(runs, key=lambda run: run.at)
    for run in reversed(oldest_first):
        seen[run.key] += 1
        if seen[run.key] <= _KEPT_EACH:
            newest.append(run)
    return newest[:_KEPT][::-1]


def _run(entry: Any) -> ModelRun | None:
    """The run in a JSON object; None if it is none, or its values are impossible."""
    try:
        run = value_of(ModelRun, entry)
    except (ValueError, KeyError, TypeError, OverflowError):
        return None
    is_possible = 0 < run.seconds < _LONGEST and run.rate > 0 and 0 <= run.at <= time.time() + _LONGEST
    return run if is_possible and 0 < len(run.amounts) <= _MOST_AMOUNTS and min(run.amounts.values()) >= 0 else None
