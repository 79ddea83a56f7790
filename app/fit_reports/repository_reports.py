"""The models of one repository judged for one machine, and which of them to take."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from app.fit_reports.fit_reports import CurrentMachine, report_remote

if TYPE_CHECKING:
    from models.facts.model_facts import ModelFacts
    from models.hub.client import Hub
    from models.hub.repository import HubModel, Repository
    from models.recommend.fit_report import FitReport
    from models.recommend.recommend import QuantisationOption, Recommendation


class RepositoryReports:
    """Judges the models of a repository, each by its own header, on this machine as it is when it is first asked.

    What it recommends and what it says of a single model are the same judgement. Headers are read once, a few MB each;
    methods raise HubError and GgufError where one cannot be. May be asked from any thread.
    """

    def __init__(
        self, hub: Hub, repository: Repository, look: Callable[[], CurrentMachine], n_ctx: int | None = None
    ) -> None:
        """``look`` looks at the machine, once."""
        self.repository = repository
        self._hub, self._look, self._n_ctx = hub, look, n_ctx
        self._lock = threading.Lock()
        self._here: CurrentMachine | None = None
        self._known: dict[str, tuple[ModelFacts, FitReport]] = {}

    def judged(self, model: HubModel) -> tuple[ModelFacts, FitReport]:
        """Return what a model's header says, and what the model would be here."""
        from models.hub.remote_source import remote_facts

        key = model.files[0].path
        with self._lock:
            if key not in self._known:
                facts = remote_facts(self._hub, self.repository, model)
                self._known[key] = facts, self._judge(facts)
            return self._known[key]

    def recommended(self) -> Recommendation | None:
        """Say which model to take; None where there is none to judge.

        The header of one tells about all; the one that is recommended by it is then judged by its own.
        """
        from models.hub.repository import FileRole
        from models.recommend.recommend import recommend

        models = [
            model for model in self.repository.with_role(FileRole.MODEL) if not model.missing and model.quantisation
        ]
        if not models:
            return None
        candidates, own = self._first_look(models)
        while True:
            found = recommend(candidates)
            place = candidates.index(found.candidate) if found.candidate is not None else 0
            if found.candidate is None or place in own:
                return found
            own.add(place)
            candidates[place] = replace(found.candidate, judgement=self._own_judgement(models[place]))

    def _first_look(self, models: Sequence[HubModel]) -> tuple[list[QuantisationOption], set[int]]:
        """Judge all by the header of the one in the middle by size, the nearest to most of the others."""
        from models.facts.quantisation_rank import resized
        from models.recommend.recommend import QuantisationOption

        read = sorted(range(len(models)), key=lambda place: models[place].n_bytes)[len(models) // 2]
        facts, own = self.judged(models[read])
        candidates = []
        for place, model in enumerate(models):
            judgement = own
            if place != read:
                judgement = self._judge(resized(facts, model.quantisation, model.n_bytes))
            candidates.append(QuantisationOption(model.name, model.quantisation, model.n_bytes, judgement))
        return candidates, {read}

    def _own_judgement(self, model: HubModel) -> FitReport:
        """Judge by its own header. A broken file cannot be used, and others may still be recommended."""
        from models.estimate.fit.summary import FitVerdict
        from models.gguf.errors import GgufError
        from models.recommend.fit_report import FitReport

        try:
            return self.judged(model)[1]
        except GgufError as error:
            return FitReport(FitVerdict.UNUSABLE, str(error))

    def _judge(self, facts: ModelFacts) -> FitReport:
        self._here = self._here or self._look()
        return report_remote(facts, self._here, n_ctx=self._n_ctx)
