"""Tests pairs on this machine and keeps the winner."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import IO

from app.client.discovery import RunningServer, running_servers
from app.client.http_client import Client, ServerRefused, ServerUnreachable
from app.pairing.conditions import machine_key
from app.pairing.decision import Decision
from app.pairing.service import CannotPair, Models, forget_choice, keep_choice, keep_gain, pairing, usable_partner
from core.process.child_process import ChildProcess, PipeClosed, last_line, start_module
from core.values.errors import SlipstreamError
from models.catalog.catalog import ModelEntry
from models.formatting.program import advice, command
from models.formatting.sentence import Sentence, joined
from models.pairing.gain import WORTH
from models.pairing.partner import Partner
from models.pairing.store import MeasuredGain, file_id


@dataclass(frozen=True, slots=True)
class TrialTask:
    """A model and what drafts for it (None: the prediction heads in its file); ``seconds`` of measuring at most."""

    target: str
    draft: str | None
    n_tokens: int = 48
    seconds: float = 40.0


@dataclass(frozen=True, slots=True)
class TrialResult:
    """Rates in tokens per second over all replies. Where nothing was drafted, ``acceptance`` is None and ``gain`` 1."""

    gain: float
    plain_rate: float
    drafted_rate: float
    acceptance: float | None


@dataclass(frozen=True, slots=True)
class TrialProgress:
    """How far a trial is: a stage, and 0 to 1."""

    stage: str
    share: float


@dataclass(frozen=True, slots=True)
class TrialProblem:
    """Why a pair could not be measured, as a sentence."""

    message: str


_ANSWER_SECONDS = 1.0  # a server that does not answer by then counts as idle


class OtherWork(StrEnum):
    """Work of a server that takes the memory's bandwidth."""

    REPLIES = "replies"
    LOADING = "a load"

    @property
    def why_not_now(self) -> Sentence:
        """Why nothing can be measured beside it, and what to do."""
        if self is OtherWork.REPLIES:
            return Sentence(
                "Slipstream is at work on replies: beside it, the figures would be wrong. Measure when that is done."
            )
        return Sentence(
            "Slipstream is at work on a load: beside it, the figures would be wrong. Measure when that is done."
        )


def other_work() -> OtherWork | None:
    """Return what a running server of this user is at work on; None where all of them are idle, or there is none."""
    found = {_work_of(server) for server in running_servers()}
    return next((work for work in OtherWork if work in found), None)


def _work_of(server: RunningServer) -> OtherWork | None:
    try:
        state = Client(server.url, server.api_key, _ANSWER_SECONDS).state()
    except (ServerUnreachable, ServerRefused):
        return None  # what does not answer does not write either, as far as can be known
    if state.fields.get("active") or state.fields.get("queued"):
        return OtherWork.REPLIES
    return OtherWork.LOADING if state.phase in ("loading", "restarting") else None


MOST_TESTED = 3  # each takes about a minute
TestProgress = Callable[[str, str, float], None]
"""Called with the partner's name, a stage, and 0 to 1: "loading", "measuring", or what is waited for (OtherWork)."""
LOOK_SECONDS = 0.5
QUIET_LOOKS = 3  # between the replies of a conversation nothing runs for a moment


class Cancelled(SlipstreamError):
    """The test was stopped; what had been measured before is kept."""


@dataclass(frozen=True, slots=True)
class PartnerTrial:
    """One partner's test: the measurement, or a sentence about why there is none.

    ``was_disturbed`` says that a server of this machine was at work meanwhile.
    """

    partner: Partner
    measured: TrialResult | None
    problem: str | None = None
    was_disturbed: bool = False


@dataclass(frozen=True, slots=True)
class PairTestResult:
    """All trials in their order, and who drafts from now on."""

    trials: tuple[PartnerTrial, ...]
    decision: Decision


class PairTest:
    """A test that runs on one thread and may be begun and cancelled from any."""

    def __init__(
        self,
        entry: ModelEntry,
        draft: str | None,
        models: Models,
        *,
        n_tokens: int = 48,
        seconds: float = 40.0,
        look: Callable[[], OtherWork | None] = other_work,
    ) -> None:
        """``draft`` names the one to test; None tests the most promising. ``seconds`` bound each measurement.

        While ``look`` finds other work, it waits. Raises CannotPair and UnknownModel.
        """
        self._entry, self._models, self._look = entry, models, look
        self._goes_on = threading.Event()
        self._was_disturbed = False
        self._n_tokens, self._seconds = n_tokens, seconds
        self._lock = threading.Lock()
        self._child: ChildProcess | None = None
        self._is_cancelled = False
        self.partners = self._to_test(draft)

    def run(self, progress: TestProgress = lambda name, stage, share: None) -> PairTestResult:
        """Measure every pair, keep what was measured and the winner.

        Raises Cancelled, CannotPair where nothing could be measured, and LibraryError where it cannot be kept.
        """
        trials = tuple(self._try(partner, progress) for partner in self.partners)
        if all(trial.measured is None for trial in trials):
            raise CannotPair(" ".join(f"{trial.partner.name}: {trial.problem}" for trial in trials))
        self._keep_winner()
        return PairTestResult(trials, pairing(self._entry, self._models).decision)

    def begin(self) -> None:
        """Wait for nothing more, whatever else is at work."""
        self._goes_on.set()

    def cancel(self) -> None:
        """Stop at once."""
        with self._lock:
            self._is_cancelled = True
            self._goes_on.set()
            if self._child is not None:
                self._child.kill()

    def _to_test(self, draft: str | None) -> tuple[Partner, ...]:
        if draft is not None:
            return (usable_partner(self._entry, draft, self._models),)
        found = pairing(self._entry, self._models)
        usable = tuple(partner for partner in found.partners if partner.is_usable)[:MOST_TESTED]
        if not usable:
            pair = advice(f"`{command('models pair', self._entry.name)}`", Sentence("The list of who drafts"))
            raise CannotPair(
                "There is nothing to test: {why} {pair} says what would fit.", why=found.decision.why, pair=pair
            )
        return usable

    def _wait(self, progress: TestProgress) -> None:
        """Wait until the servers of this machine have had nothing to do for a moment."""
        if self._goes_on.is_set() or (work := self._look()) is None:
            return
        n_quiet = 0
        while n_quiet < QUIET_LOOKS:
            if work is not None:
                progress("", work.value, 0.0)
            if self._goes_on.wait(LOOK_SECONDS):
                return  # where it is cancelled, nothing is started
            work = self._look()
            n_quiet = 0 if work is not None else n_quiet + 1

    def _try(self, partner: Partner, progress: TestProgress) -> PartnerTrial:
        self._wait(progress)
        self._was_disturbed = False
        try:
            measured = self.measure(partner, progress)
        except CannotPair as error:
            return PartnerTrial(partner, None, error.message)
        gain = MeasuredGain(
            target=file_id(self._entry.path),
            draft=partner.id,
            machine=machine_key(),
            gain=measured.gain,
            plain_rate=measured.plain_rate,
            drafted_rate=measured.drafted_rate,
            acceptance=measured.acceptance,
            forecast=partner.prediction.gain if partner.prediction is not None else 1.0,
            date=time.strftime("%Y-%m-%d"),
        )
        keep_gain(gain)
        return PartnerTrial(partner, measured, was_disturbed=self._was_disturbed)

    def measure(self, partner: Partner, progress: TestProgress) -> TrialResult:
        """Run the trial in a process of its own, which a fault of llama.cpp may take down."""
        draft = str(partner.path) if partner.path is not None else None
        job = TrialTask(str(self._entry.path), draft, self._n_tokens, self._seconds)
        news: object = None
        code = 0
        with tempfile.TemporaryFile() as errors, self._started(errors) as child:
            try:
                child.pipe.send(job)
                while not isinstance(news, TrialResult | TrialProblem):
                    news = child.pipe.receive()
                    if isinstance(news, TrialProgress):
                        self._was_disturbed = self._was_disturbed or self._look() is not None
                        progress(partner.name, news.stage, news.share)
            except PipeClosed:
                code = child.wait()
            finally:
                with self._lock:
                    self._child = None
            return self._outcome(news, code, errors)

    def _started(self, errors: IO[bytes]) -> ChildProcess:
        with self._lock:
            if self._is_cancelled:
                raise Cancelled(Sentence("The test was stopped."))
            self._child = start_module("app.jobs.pair_test.trial", errors)
            return self._child

    def _outcome(self, news: object, code: int, errors: IO[bytes]) -> TrialResult:
        if self._is_cancelled:
            raise Cancelled(Sentence("The test was stopped."))
        if isinstance(news, TrialResult):
            return news
        if isinstance(news, TrialProblem):
            raise CannotPair(news.message)
        how = (
            Sentence("The test was ended by signal {number}.", number=-code)
            if code < 0
            else Sentence("The test ended with exit code {code}.", code=code)
        )
        raise CannotPair(joined((how, last_line(errors))))

    def _keep_winner(self) -> None:
        """Choose the fastest that was measured; where none is faster, leave it to what is expected of the others."""
        found = pairing(self._entry, self._models).partners
        usable = [partner for partner in found if partner.is_usable]
        measured = [partner for partner in usable if partner.measured is not None]
        best = max(measured, key=lambda partner: partner.gain, default=None)
        machine = machine_key()
        if best is not None and best.gain >= WORTH:
            keep_choice(self._entry, best, "test", machine)
        elif any(partner.is_worth_it for partner in usable):
            forget_choice(self._entry)
        else:
            keep_choice(self._entry, None, "test", machine)
