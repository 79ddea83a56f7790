"""Judges the rows of the list behind it, slice by slice, and leaves the processor to others most of the time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from app.fit_reports.fit_reports import report_file
from app.library_service.machine import MachineService
from app.pairing.service import MOST_PAIRED, ListedModels, pairing
from models.catalog.catalog import ModelEntry
from models.facts.model_facts import ModelFacts
from models.library.values import ModelFitReport, RowReport

_log = logging.getLogger("slipstream.library")
SLICE_SECONDS = 0.25
MOST_TOLD = 200  # rows of a slice: the window formats each of them
REST = 2.0  # the pause after each slice, in times of its length
FRESH_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class _Judged:
    """A row's report, made when the file had these facts."""

    facts: ModelFacts
    row: RowReport
    at: float


class RowReporter:
    """Judges what is listed, in a thread of its own; ``tell`` gets each slice."""

    def __init__(self, machine: MachineService, tell: Callable[[tuple[RowReport, ...]], None]) -> None:
        self._machine, self._tell = machine, tell
        self._known: dict[Path, _Judged] = {}
        self._listed = ListedModels(())
        self._wanted = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def of(self, entry: ModelEntry) -> RowReport | None:
        """Return what is known of a model by now."""
        known = self._known.get(entry.path)
        return known.row if known is not None and known.facts is entry.facts and known.row.name == entry.name else None

    def look(self, entries: Sequence[ModelEntry]) -> None:
        """Judge these from now on; what is known is not judged again."""
        with self._lock:
            self._listed = ListedModels(tuple(entries))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="row-judge", daemon=True)
                self._thread.start()
        self._wanted.set()

    def forget(self, entry: ModelEntry | None = None) -> None:
        """Judge a model anew: who drafts for it has changed; all where none is named."""
        with self._lock:
            known = {} if entry is None else dict(self._known)
            if entry is not None:
                known.pop(entry.path, None)
            self._known = known  # another one: what is just being judged goes into the old one, and is judged again
        self._wanted.set()

    def take(self, found: ModelFitReport) -> None:
        """Let a row say what was found out of its model since: who sees both is not told two speeds."""
        if found.fit.speed is None:
            return
        rate = found.fit.speed.empty
        for path, known in list(self._known.items()):
            if known.row.name == found.name and known.row.predicted_rate != rate:
                row = replace(known.row, predicted_rate=rate)
                self._known[path] = replace(known, row=row)
                self._tell((row,))

    def _work(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            try:
                while self._judge_some():
                    pass
            except Exception:
                # The list is there without it, and the next look tries again.
                _log.exception("rows could not be judged")

    def _judge_some(self) -> bool:
        """Judge for a moment and tell; say whether there may be more."""
        listed, known, begin = self._listed, self._known, time.monotonic()
        found: list[RowReport] = []
        for entry in listed.models:
            if entry.problem is None and entry.facts is not None and not self._is_fresh(entry):
                row = self._judged(entry, entry.facts, listed)
                known[entry.path] = _Judged(entry.facts, row, time.monotonic())
                found.append(row)
                if len(found) == MOST_TOLD or time.monotonic() - begin > SLICE_SECONDS:
                    break
        if found:
            self._tell(tuple(found))
            time.sleep(REST * (time.monotonic() - begin))
        return bool(found)

    def _is_fresh(self, entry: ModelEntry) -> bool:
        known = self._known.get(entry.path)
        return self.of(entry) is not None and known is not None and time.monotonic() - known.at < FRESH_SECONDS

    def _judged(self, entry: ModelEntry, facts: ModelFacts, listed: ListedModels) -> RowReport:
        judgement = report_file(facts, entry.path, self._machine.now(), is_quick=True)
        partners: tuple[str, ...] = ()
        if len(listed.models) <= MOST_PAIRED:
            found = pairing(entry, listed).partners
            partners = tuple(partner.name for partner in found if partner.is_worth_it)
        rate = judgement.speed.empty if judgement.speed is not None else None
        return RowReport(entry.name, str(entry.path), partners, rate, judgement.verdict)
