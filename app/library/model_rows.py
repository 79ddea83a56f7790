"""What the window and ``models list`` show: a row for each model here, and downloads that others moved or deleted."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable

from app.environment.paths import cache_folder, models_folder
from app.library.removal import why_not_ours
from app.library.repair import repair_plan
from app.settings.model_settings_store import model_usage
from core.machine.known_machine import known_runs
from models.catalog.catalog import ModelEntry
from models.estimate.speed.runs import ModelRun, measured
from models.facts.split_files import parts
from models.files.integrity import GoneFile, IntegrityState, MovedFile, accept_changes, integrity_of, look_for_changes
from models.files.provenance import FileOrigin, read_record
from models.formatting.sentence import Sentence
from models.library.values import ModelRow, Notice, RowReport


class RowReader:
    """Makes rows. What is kept of all models is read once, when it is made."""

    def __init__(self, judged: Callable[[ModelEntry], RowReport | None] = lambda entry: None) -> None:
        """``judged`` gives what is known of a model's drafts, speed and fit."""
        self._judged, self._folder = judged, models_folder()
        self._used = model_usage().all()
        self._runs: dict[tuple[str, int], list[ModelRun]] = defaultdict(list)
        for run in known_runs(cache_folder()):
            self._runs[run.model, run.n_bytes].append(run)

    def row(self, entry: ModelEntry) -> ModelRow:
        """Return a model as a row."""
        record = read_record(self._folder, entry.path)
        stands = integrity_of(self._folder, parts(entry.path))
        judged = self._judged(entry)
        how = repair_plan(entry) if stands is IntegrityState.CHANGED else None
        request = how.request if how is not None else None
        return ModelRow(
            name=entry.name,
            path=str(entry.path),
            title=entry.title,
            n_bytes=entry.n_bytes,
            header=entry.header,
            files=tuple(map(str, parts(entry.path))),
            source=_source(record) if record is not None else None,
            origin=entry.origin,
            is_toy=entry.is_toy,
            is_verified=stands is IntegrityState.VERIFIED,
            can_remove=why_not_ours(entry) is None,
            problem=entry.problem,
            partners=judged.partners if judged is not None else (),
            last_used=self._used.of(entry.path),
            predicted_rate=judged.predicted_rate if judged is not None else None,
            measured_rate=self._measured_rate(entry),
            verdict=judged.verdict if judged is not None else None,
            has_changed=stands is IntegrityState.CHANGED,
            mending=how.for_window if how is not None else "",
            repo_id=request.repo_id if request is not None else "",
            wanted=request.wanted if request is not None else "",
        )

    def _measured_rate(self, entry: ModelEntry) -> float | None:
        """Return the tokens per second that a model reached lately; None if that is not known."""
        if entry.facts is None:
            return None
        name, n_bytes = entry.path.stem, entry.facts.weight_bytes
        found = measured(self._runs.get((name, n_bytes), ()), name, n_bytes)
        return found.rate if found is not None else None


def _source(record: FileOrigin) -> str:
    if record.made_from:
        return Sentence("quantised here from {name}", name=record.made_from)
    return f"{record.repo_id}@{record.commit[:12]}"


_log = logging.getLogger("slipstream.library")


class FileChanges:
    """Notices by the path that a file had."""

    def __init__(self) -> None:
        self._moved: dict[str, Notice] = {}
        self._lock = threading.Lock()

    def look(self) -> tuple[Notice, ...]:
        """Look for changes. What is known of a moved file goes with it; what is gone stays known until dismissed."""
        with self._lock:
            changes = look_for_changes(models_folder())
            moved = [change for change in changes if isinstance(change, MovedFile)]
            self._moved |= {str(change.before): Notice(str(change.before), change.sentence) for change in moved}
            _settle(moved)
            return (*self._moved.values(), *(_gone(change) for change in changes if isinstance(change, GoneFile)))

    def dismiss(self, path: str) -> None:
        """Say no more of a file."""
        with self._lock:
            self._moved.pop(path, None)
            _settle([change for change in look_for_changes(models_folder()) if _path(change) == path])


def _path(change: MovedFile | GoneFile) -> str:
    return str(change.before if isinstance(change, MovedFile) else change.path)


def _settle(changes: list[MovedFile | GoneFile] | list[MovedFile]) -> None:
    try:
        accept_changes(models_folder(), changes)
    except OSError as error:
        _log.warning("%s cannot be written: %s", models_folder(), error)


def _gone(change: GoneFile) -> Notice:
    if not change.record.repo_id:
        return Notice(str(change.path), change.sentence)
    return Notice(
        str(change.path),
        Sentence("{sentence} It can be downloaded again.", sentence=change.sentence),
        change.record.repo_id,
        change.record.path,
    )
