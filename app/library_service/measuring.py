"""Verifications and benchmarks, one at a time: each is a command of this program that is followed to its end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from app.environment.exit_codes import ExitCode
from app.jobs.benches import benches
from app.jobs.program_run import ProgramRun
from app.library.errors import LibraryError
from app.library_service.machine import check_is_at_rest
from app.library_service.models import ModelService
from app.library_service.outbox import Stop, steps_of
from models.formatting.sentence import Sentence
from models.library.requests import Verify
from models.library.values import Bench, MeasuringStep


class MeasuringService:
    """Runs what measures; may be asked from any thread."""

    def __init__(self, shelf: ModelService) -> None:
        """``shelf`` has the models."""
        self._shelf = shelf
        self._lock = threading.Lock()
        self._is_busy = False

    @property
    def benches(self) -> tuple[Bench, ...]:
        """The benchmarks that are installed."""
        return tuple(Bench(name, title) for name, title in benches().items())

    def verify(self, request: Verify, stop: Stop) -> Iterator[MeasuringStep]:
        """Verify a model until ``stop``, saying how far it is.

        Raises UnknownModel, Cancelled, LibraryError and what verify says.
        """
        model = self._shelf.entry(request.name)
        draft = ("--draft", str(self._shelf.entry(request.partner).path)) if request.partner else ()
        counts = ("--max-tokens", str(request.max_tokens), "--seeds", str(request.seeds))
        return self._followed(stop, "verify", "--model", str(model.path), *draft, *counts)

    def bench(self, name: str, stop: Stop) -> Iterator[MeasuringStep]:
        """Run a benchmark until ``stop``, saying how far it is.

        Raises Cancelled, LibraryError and what the benchmark says.
        """
        names = [bench.name for bench in self.benches]
        if name not in names:
            known = ", ".join(names) or "none is installed"
            raise LibraryError(
                "There is no benchmark called {name}. Benchmarks: {known}.",
                ExitCode.USAGE,
                name=repr(name),
                known=known,
            )
        return self._followed(stop, "bench", name)

    def _followed(self, stop: Stop, *command: str) -> Iterator[MeasuringStep]:
        self._begin()
        run = ProgramRun(*command)
        stop.calls(run.cancel)

        def follow(say: Callable[[MeasuringStep], None]) -> dict[str, Any]:
            return run.run(lambda stage, share: say(MeasuringStep(stage, share)))

        try:
            found = yield from steps_of(follow)
            yield MeasuringStep("done", 1.0, found)
        finally:
            run.cancel()
            with self._lock:
                self._is_busy = False

    def _begin(self) -> None:
        check_is_at_rest()
        with self._lock:
            if self._is_busy:
                raise LibraryError(
                    Sentence("Something is being measured already. Wait for it, or stop it."), ExitCode.ERROR
                )
            self._is_busy = True
