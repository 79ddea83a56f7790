"""Verifications and benchmarks, one at a time: each is a command of this program that is followed to its end."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from app.environment.exit_codes import ExitCode
from app.jobs.benches import benches
from app.jobs.pair_test.pair_test import other_work
from app.jobs.program_run import ProgramRun
from app.library.hub_access import LibraryError
from app.library_service.models import ModelService
from models.formatting.sentence import Sentence
from models.library.requests import Verify
from models.library.values import Bench, MeasuringStep


class MeasuringService:
    """Runs what measures; may be asked from any thread."""

    def __init__(self, shelf: ModelService) -> None:
        """``shelf`` has the models."""
        self._shelf = shelf
        self._lock = threading.Lock()
        self._run: ProgramRun | None = None

    @property
    def benches(self) -> tuple[Bench, ...]:
        """The benchmarks that are installed."""
        return tuple(Bench(name, title) for name, title in benches().items())

    def verify(self, request: Verify) -> Iterator[MeasuringStep]:
        """Verify a model, saying how far it is; raises UnknownModel, Cancelled, LibraryError and what verify says."""
        model = self._shelf.entry(request.name)
        draft = ("--draft", str(self._shelf.entry(request.partner).path)) if request.partner else ()
        counts = ("--max-tokens", str(request.max_tokens), "--seeds", str(request.seeds))
        return self._followed("verify", "--model", str(model.path), *draft, *counts)

    def bench(self, name: str) -> Iterator[MeasuringStep]:
        """Run a benchmark, saying how far it is; raises Cancelled, LibraryError and what the benchmark says."""
        names = [bench.name for bench in self.benches]
        if name not in names:
            known = ", ".join(names) or "none is installed"
            raise LibraryError(
                Sentence("There is no benchmark called {name}. Benchmarks: {known}.", name=repr(name), known=known),
                ExitCode.USAGE,
            )
        return self._followed("bench", name)

    def stop(self) -> None:
        """End what runs."""
        with self._lock:
            run = self._run
        if run is not None:
            run.cancel()

    def _followed(self, *command: str) -> Iterator[MeasuringStep]:
        run = ProgramRun(*command)
        self._begin(run)
        threads = ThreadPoolExecutor(1, "measuring")
        try:
            # None is put behind the last step.
            steps: queue.SimpleQueue[MeasuringStep | None] = queue.SimpleQueue()
            report = threads.submit(run.run, lambda stage, share: steps.put(MeasuringStep(stage, share)))
            report.add_done_callback(lambda _: steps.put(None))
            yield from iter(steps.get, None)
            found: dict[str, Any] = report.result()
            yield MeasuringStep("done", 1.0, found)
        finally:
            run.cancel()
            threads.shutdown(wait=False)
            with self._lock:
                self._run = None

    def _begin(self, run: ProgramRun) -> None:
        work = other_work()
        if work is not None:
            raise LibraryError(work.why_not_now, ExitCode.ERROR)
        with self._lock:
            if self._run is not None:
                raise LibraryError(
                    Sentence("Something is being measured already. Wait for it, or stop it."), ExitCode.ERROR
                )
            self._run = run
