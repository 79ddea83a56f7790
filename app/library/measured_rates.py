"""How fast models were here, by the file of their runs."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from core.machine.known_machine import known_runs
from models.catalog.catalog import ModelEntry
from models.estimate.speed.runs import ModelRun, measured


class MeasuredRates:
    """Tokens per second of models, from runs that are read once."""

    def __init__(self, folder: Path) -> None:
        """``folder`` keeps the runs."""
        self._runs: dict[tuple[str, int], list[ModelRun]] = defaultdict(list)
        for run in known_runs(folder):
            self._runs[run.model, run.n_bytes].append(run)

    def of(self, entry: ModelEntry) -> float | None:
        """Return what a model reached lately, None where that is not known."""
        if entry.facts is None:
            return None
        name, n_bytes = entry.path.stem, entry.facts.weight_bytes
        runs = self._runs.get((name, n_bytes))
        found = measured(runs, name, n_bytes) if runs else None
        return found.rate if found is not None else None
