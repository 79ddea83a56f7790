"""Smaller copies of models: what can be made, and what is being made, one after the other."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from app.environment.paths import models_folder
from app.jobs.quantise.job import QuantiseJob, remove_leftovers
from app.library.find_model import UnusableModel
from app.library.trouble import library_error, trouble_of
from app.library_service.models import ModelService
from app.library_service.outbox import ChangeNotifier
from models.catalog.catalog import ModelEntry
from models.facts.model_facts import ModelFacts
from models.formatting.sentence import Sentence
from models.library.requests import Quantise
from models.library.values import QuantiseOffer, QuantiseTarget, Quantising, Trouble, TroubleKind
from models.quantise.plan import (
    FOLDER,
    ORIGINALS,
    TARGETS,
    QuantiseCancelled,
    QuantisePlan,
    QuantiseRefused,
    is_gain,
    make_plan,
    result_name,
)
from models.quantise.progress import QuantisePhase, QuantiseProgress

USUAL = "Q4_K_M"
_LEAVE_SECONDS = 1.5  # for the child to end and its file to go


class QuantiseService:
    """Quantises in a child process. ``tell`` gets all copies whenever one has changed, ``arrived`` nothing.

    Both are called from threads. The child ends with this process.
    """

    def __init__(
        self, shelf: ModelService, tell: Callable[[tuple[Quantising, ...]], None], arrived: Callable[[], None]
    ) -> None:
        self._shelf, self._arrived = shelf, arrived
        self._notifier = ChangeNotifier(lambda: tell(self.quantisings))
        self._lock = threading.Condition()
        self._known: dict[int, Quantising] = {}
        self._jobs: dict[int, QuantiseJob] = {}
        self._n_begun, self._is_over = 0, False
        self._worker = threading.Thread(target=self._work, name="quantise", daemon=True)

    def start(self) -> None:
        """Tidy up after what was killed, and work from now on."""
        remove_leftovers(models_folder())
        self._worker.start()
        self._notifier.start()
        # Clients that saw a copy being made by an earlier process learn that it is gone.
        self._notifier.note()

    def stop(self) -> None:
        """End all of them; their files go too."""
        with self._lock:
            self._is_over = True
            for job in self._jobs.values():
                job.cancel()
            self._lock.notify_all()
        self._notifier.stop()
        self._worker.join(_LEAVE_SECONDS)

    @property
    def quantisings(self) -> tuple[Quantising, ...]:
        """All that are made, wait or have ended, in their order."""
        with self._lock:
            return tuple(self._known.values())

    def offer(self, name: str) -> QuantiseOffer:
        """Return what can be made of a model; raises UnknownModel and UnusableModel."""
        entry, facts = self._source(name)
        targets = tuple(
            QuantiseTarget(
                type_.name,
                round(facts.n_params * type_.bits / 8),
                type_.quality,
                result_name(entry.name, type_, None),
                type_.name == USUAL,
            )
            for type_ in TARGETS
            if not facts.is_head and is_gain(facts, type_)
        )
        folder = models_folder()
        there = next(path for path in (folder, *folder.parents) if path.exists())
        problem = (
            None
            if targets
            else Sentence("{name} is as small as it can be made here. Use it as it is.", name=entry.name)
        )
        return QuantiseOffer(
            entry.name,
            facts.quantisation,
            facts.weight_bytes,
            facts.quantisation in ORIGINALS,
            shutil.disk_usage(there).free,
            str(folder / FOLDER),
            targets,
            problem,
        )

    def begin(self, wish: Quantise) -> Quantising:
        """Make a copy when it is its turn; raises UnknownModel, UnusableModel and QuantiseRefused."""
        entry, facts = self._source(wish.name)
        plan = make_plan(
            facts,
            name=entry.name,
            type_name=wish.type,
            folder=models_folder(),
            output=wish.output.strip() or None,
            may_requantise=wish.may_requantise,
        )
        with self._lock:
            self._check_name(plan)
            self._n_begun += 1
            begun = Quantising(self._n_begun, entry.name, plan.name, plan.type.name)
            self._known[begun.number] = begun
            self._jobs[begun.number] = QuantiseJob(plan, models_folder(), n_threads=wish.threads)
            self._lock.notify_all()
        self._notifier.tell()  # before the answer, so that whoever follows it hears nothing older afterwards
        return begun

    def cancel(self, number: int) -> None:
        """End one, and take it off the list; one that was taken off before needs nothing. Raises LibraryError."""
        with self._lock:
            if not 1 <= number <= self._n_begun:
                sentence = Sentence("There is no copy {number} that is made smaller.", number=number)
                raise library_error(Trouble(sentence, TroubleKind.MISSING))
            job = self._jobs.pop(number, None)
            self._known.pop(number, None)
        if job is not None:
            job.cancel()
        self._notifier.note()

    def _source(self, name: str) -> tuple[ModelEntry, ModelFacts]:
        entry = self._shelf.entry(name)
        if entry.facts is None or entry.problem is not None:
            raise UnusableModel("{name} cannot be made smaller: {problem}", name=entry.name, problem=entry.problem)
        return entry, entry.facts

    def _check_name(self, plan: QuantisePlan) -> None:
        if any(one.name == plan.name and not one.is_over for one in self._known.values()):
            raise QuantiseRefused("{name} is being made already. Give this one another name.", name=plan.name)

    def _work(self) -> None:
        while True:
            with self._lock:
                self._lock.wait_for(lambda: self._jobs or self._is_over)
                if self._is_over:
                    return
                number, job = next(iter(self._jobs.items()))
            self._run(number, job)
            with self._lock:
                self._jobs.pop(number, None)

    def _run(self, number: int, job: QuantiseJob) -> None:
        def report(progress: QuantiseProgress) -> None:
            # It is done when its file is a model of the list, which is a little later.
            if progress.phase is not QuantisePhase.DONE:
                self._change(number, progress=progress)

        try:
            done = job.run(report)
        except QuantiseCancelled:
            return
        except Exception as error:
            # Whatever it was: the next one is to be made, and this one's user gets a sentence.
            self._change(number, QuantisePhase.FAILED, trouble=trouble_of(error))
            return
        self._change(number, QuantisePhase.DONE, done=done)
        self._arrived()

    def _change(self, number: int, end: QuantisePhase | None = None, **changes: Any) -> None:
        with self._lock:
            known = self._known.get(number)
            if known is not None:
                if end is not None:
                    changes["progress"] = replace(known.progress, phase=end, eta=None)
                self._known[number] = replace(known, **changes)
        self._notifier.note()
