"""Keeps an engine process alive: starts it, sends it requests, ends the requests lost in a crash, restarts it."""

from __future__ import annotations

import logging
import math
import re
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from core.process.child_process import PipeClosed
from core.process.engine_process import EngineProcess, EnginesAtWork, last_words, load_error_in
from core.values.addresses import LOST_WORKER
from core.values.engine_options import EngineOptions
from core.values.errors import EngineUnavailable, llama_error_in
from core.values.messages import (
    AnyRequest,
    Cancel,
    Ended,
    EndThoughts,
    EnginePhase,
    EngineState,
    Event,
    Failure,
    FailureKind,
    FinishReason,
    LoadModel,
    Snapshot,
    Submit,
)
from models.formatting.sentence import Sentence, joined
from models.formatting.system_error import system_reason

_log = logging.getLogger(__name__)

EventListener = Callable[[tuple[Event, ...]], None]
"""Called once per message of the engine with its events in order, on a thread of the supervisor's or the caller's.

It is called under the supervisor's lock, which keeps the order: it must hand the events on and return.
"""

# Seconds to wait after each failure in a row; the last holds for all that follow.
_WAITS = (0.0, 1.0, 5.0, 15.0, 30.0)
# After waits up to this the engine restarts by itself, and requests wait for it, since a client's retry takes as long.
# After longer waits it restarts with the next request, so that a model that always crashes is not loaded for ever.
_UNNOTICED_WAIT = 1.0
# An engine that lived this long with its model loaded is trusted again.
_HEALTHY_SECONDS = 60.0
# After this many deaths in a row it starts without drafts, without cached prompts, and without suspect requests.
_WITHOUT_DRAFTS, _WITHOUT_KEPT_TEXTS, _WITHOUT_SUSPECTS = 2, 3, 4
_OUT_OF_MEMORY = re.compile(r"std::bad_alloc|insufficient memory|can't start new thread|MemoryError")
_KILLED = Sentence("was killed (by the system when memory ran out, or by hand)")


class Supervisor:
    """The server's side of the engine, whose latest ``state`` it has. Every method may be called from any thread.

    Each submitted request gets exactly one ``Ended`` through the listener, whatever happens to the process. An engine
    that dies again and again is always started again, after a wait and without the features that may be the cause.
    """

    def __init__(
        self,
        listener: EventListener,
        *,
        log_folder: Path,
        cache_folder: Path,
        at_work: EnginesAtWork | None = None,
    ) -> None:
        """Start nothing yet. ``at_work`` are the engines that share the machine's cores with this one."""
        self._listener = listener
        self._log_folder = log_folder
        self._cache_folder = cache_folder
        self._at_work = EnginesAtWork() if at_work is None else at_work
        # Held from the end of a process to the start of the next, so that two never take memory at the same time.
        self._change = threading.Lock()
        self._lock = threading.RLock()
        self.state = EngineState(EnginePhase.EMPTY)
        self._options: EngineOptions | None = None
        self._process: EngineProcess | None = None
        # A started process that waits for a model.
        self._spare: EngineProcess | None = None
        self._live: dict[str, AnyRequest] = {}
        # Those of them that no other engine may run: the engine has said something of them, or was told to end them.
        self._begun: set[str] = set()
        self._queued: dict[str, AnyRequest] = {}
        self._load_number = 0
        # Since the engine last ran long enough: failed loads and deaths, deaths alone, and the requests that ran at
        # each death.
        self._n_failures = self._n_deaths = 0
        self._suspects: list[AnyRequest] = []
        self._generation = 0

    # -- the model ----------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Start a process ahead of the next ``load``, where none runs: its imports take half a second."""
        with self._lock:
            if self._process is None and self._spare is None:
                try:
                    self._spare = EngineProcess(self._log_folder)
                except OSError as error:
                    _log.warning("An engine process could not be started ahead of its model: %s", error)

    def load(self, options: EngineOptions, number: int = 0, *, again: bool = False) -> None:
        """Start loading a model and return at once; the listener gets states with this ``number``.

        Requests of a model that was loaded before end with a failure of kind ``shutdown``. ``again``: the same model
        failed before, so features that may be the cause stay off.
        """
        with self._change:
            with self._lock:
                before = self._stop(Sentence("Another model was loaded."))
                self._options, self._load_number = options, number
                if not again:
                    self._trust()
                self._publish(EngineState(EnginePhase.LOADING))
            # Not under the lock, which requests and cancels need: a large model takes long to free its memory.
            if before is not None:
                before.kill()
            with self._lock:
                self._start()

    def unload(self, number: int = 0) -> None:
        """Stop the engine until the next ``load``, and free its memory; the state that says so has this ``number``."""
        self._leave(Sentence("The model was unloaded."), number)

    def close(self) -> None:
        """Stop the engine for good."""
        self._leave(Sentence("Slipstream is closing."))

    # -- requests -----------------------------------------------------------------------------------------------

    def submit(self, request: AnyRequest) -> None:
        """Run a request; it waits while the model loads. Raises EngineUnavailable if no engine can take it now."""
        with self._lock:
            if request.id in self._live or request.id in self._queued:
                raise ValueError(f"request id {request.id} is in use")
            self._check_suspicion(request)
            if self.state.phase is EnginePhase.READY and self._process is not None:
                self._live[request.id] = request
                self._process.send(Submit(request))
                self._note_work()
            elif self.state.phase in (EnginePhase.LOADING, EnginePhase.RESTARTING):
                self._queued[request.id] = request
            else:
                left = self.state.retry_at - time.monotonic() if self.state.phase is EnginePhase.FAILED else None
                raise EngineUnavailable(self.state.problem or Sentence("No model is loaded."), left)

    def cancel(self, request_id: str) -> None:
        """End a request; ids that are unknown or have ended are ignored."""
        with self._lock:
            if self._queued.pop(request_id, None) is not None:
                self._tell((Ended(request_id, FinishReason.CANCELLED),))
            elif request_id in self._live and self._process is not None:
                self._begun.add(request_id)
                self._process.send(Cancel(request_id))

    def end_thoughts(self, request_id: str) -> None:
        """Let a running request whose thoughts are bounded go on to its answer; other ids are ignored."""
        with self._lock:
            if request_id in self._live and self._process is not None:
                self._process.send(EndThoughts(request_id))

    # -- inside -------------------------------------------------------------------------------------------------

    def _tell(self, events: tuple[Event, ...]) -> None:
        try:
            self._listener(events)
        except Exception:  # a listener's mistake must not leave other requests without an end
            _log.exception("The listener failed")

    def _publish(self, state: EngineState) -> None:
        state = replace(state, load=self._load_number, n_deaths=self._n_deaths, left_out=self._left_out())
        self.state = state
        self._tell((state,))

    def _start(self) -> None:
        """Start a process for the current options, and a thread that reads its events until it ends."""
        assert self._options is not None
        self._generation += 1
        process, self._spare = self._spare, None
        if process is not None and not process.child.is_running:
            process.close()
            process = None
        try:
            process = process or EngineProcess(self._log_folder)
        except OSError as error:
            problem = Sentence("The engine process could not be started: {error}", error=system_reason(error))
            self._fail(problem, self._next_wait())
            return
        self._process = process
        process.n_deaths_before = self._n_deaths
        process.send(LoadModel(self._safer(self._options), self._cache_folder))
        self._at_work.put(process, is_at_work=True)
        arguments = (self._process, self._generation)
        threading.Thread(target=self._follow, args=arguments, name="engine-follower", daemon=True).start()

    def _leave(self, reason: str, number: int | None = None) -> None:
        with self._change:
            with self._lock:
                before = self._stop(reason)
                spare, self._spare = self._spare, None
                self._options = None
                self._trust()
                self._load_number = self._load_number if number is None else number
                self._publish(EngineState(EnginePhase.EMPTY))
            if before is not None:
                before.kill()
            if spare is not None:
                spare.kill()
                spare.close()

    def _stop(self, reason: str) -> EngineProcess | None:
        """End all requests and ignore further events of the process; return it if any, for the caller to kill."""
        process, self._process = self._process, None
        self._generation += 1
        self._end_all(Failure(FailureKind.SHUTDOWN, reason))
        return process

    def _end_all(self, failure: Failure, *, queued_too: bool = True) -> None:
        ids = list(self._live) + (list(self._queued) if queued_too else [])
        self._live.clear()
        self._begun.clear()
        if queued_too:
            self._queued.clear()
        if ids:
            self._tell(tuple(Ended(request_id, FinishReason.FAILED, failure=failure) for request_id in ids))

    def _follow(self, process: EngineProcess, generation: int) -> None:
        """Pass on the events of a process until it ends; runs on its own thread."""
        try:
            while True:
                self._hear(process.child.pipe.receive(), generation)
        except PipeClosed:
            pass
        except Exception:
            _log.exception("The engine's messages could not be read")
            process.kill()
        code = process.child.wait()
        process.close()
        with self._lock:
            if generation == self._generation:
                self._bury(process, code)
            self._at_work.forget(process)  # from now on no request is given to it

    def _hear(self, events: tuple[Event, ...], generation: int) -> None:
        with self._lock:
            if generation != self._generation:
                return
            passed_on: list[Event] = []
            for event in events:
                match event:
                    case EngineState():
                        self._tell(tuple(passed_on))
                        passed_on = []
                        self._hear_state(event)
                    case Ended(request_id):
                        self._begun.discard(request_id)
                        if self._live.pop(request_id, None) is not None:
                            passed_on.append(event)
                    case Snapshot():
                        passed_on.append(event)
                    case _:
                        if event.request_id in self._live:
                            self._begun.add(event.request_id)
                            passed_on.append(event)
            if passed_on:
                self._tell(tuple(passed_on))
            self._note_work()

    def _note_work(self) -> None:
        """Note whether the engine, which is not loading, takes cores from others. On a GPU threads only wait."""
        model = self.state.model
        if self._process is not None and self.state.phase is EnginePhase.READY and model is not None:
            self._at_work.put(self._process, is_at_work=bool(self._live) and not model.n_gpu_layers)

    def _hear_state(self, state: EngineState) -> None:
        if state.phase is EnginePhase.FAILED:
            problem = state.problem or Sentence("The model could not be loaded.")
            said = load_error_in(self._process.written()) if self._process is not None else ""
            if said and problem.startswith("llama.cpp could not"):
                problem = joined((problem, _why_not_loaded(said.rstrip("."))))
            self._fail(problem, self._next_wait())
            return
        if state.phase is EnginePhase.LOADING and self.state.phase is EnginePhase.RESTARTING:
            state = replace(state, phase=EnginePhase.RESTARTING, problem=self.state.problem)
        self._publish(state)
        if state.phase is EnginePhase.READY and self._process is not None:
            assert self._options is not None
            # The load has worked: from now on a missing draft must not prevent a restart.
            self._options = replace(self._options, must_draft=False)
            self._process.ready_at = time.monotonic()
            if self._n_failures:
                self._later(_HEALTHY_SECONDS, self._recover)
            waiting, self._queued = self._queued, {}
            self._live.update(waiting)
            for request in waiting.values():
                self._process.send(Submit(request))

    def _next_wait(self) -> float:
        """Count a failure; return the seconds until the next try."""
        self._n_failures += 1
        return _WAITS[min(self._n_failures, len(_WAITS)) - 1]

    def _fail(self, problem: str, wait: float, message: str = "") -> None:
        """Run no engine for ``wait`` seconds, and end the requests with this message, else with the problem."""
        self._process = None
        self._generation += 1
        self._publish(EngineState(EnginePhase.FAILED, problem=problem, retry_at=time.monotonic() + wait))
        self._end_all(Failure(FailureKind.ENGINE_DIED, message or problem, retry_after=wait))

    def _bury(self, process: EngineProcess, code: int) -> None:
        """Handle the death of a process: end its requests, and start another process now or later."""
        log = process.written()
        words = last_words(log)
        cause = _cause_of_death(code, llama_error_in(log), words)
        name = Path(self._options.model_path).name if self._options is not None else "no model"
        # For a process killed from outside, the last log lines are unrelated to the cause.
        end = f" {process.log_path} ends with:\n{words}" if words and cause != _KILLED else ""
        _log.error("The engine of %s %s.%s", name, cause, end)
        workers = self._options.workers if self._options is not None else ()
        if workers and LOST_WORKER in log:
            # Our watch names the worker, ggml's own last words do not.
            gone = tuple(worker for worker in workers if f"{LOST_WORKER}: {worker} " in log)
            self._lose(gone or workers)
            return
        ran = [replace(request, id="") for request in self._live.values()]
        self._suspects = [one for one in ran if one in self._suspects] if self._n_deaths else ran
        self._n_deaths += 1
        wait = self._next_wait()
        if wait > _UNNOTICED_WAIT:
            detail = Sentence("Its last words: {words}", words=words) if words and cause != _KILLED else ""
            problem = Sentence("The engine {cause}, {n_deaths} times in a row.", cause=cause, n_deaths=self._n_deaths)
            problem = joined((problem, detail))
            # As who asks meanwhile is told.
            again = Sentence("{problem} Try again in {seconds} s.", problem=problem, seconds=math.ceil(wait))
            self._fail(problem, wait, again)
            return
        self._keep_unbegun()
        message = Sentence(
            "The engine {cause} while it was answering. It is being restarted: please send the request again.",
            cause=cause,
        )
        self._start_anew(wait, Sentence("The engine {cause} and is being restarted.", cause=cause), message)

    def _lose(self, workers: tuple[str, ...]) -> None:
        """Handle the loss of a worker, which is not the engine's fault.

        Another engine starts for the requests that have not begun, and else with the next one, since the worker may
        stay away.
        """
        self._keep_unbegun()
        wait = self._next_wait() if self._queued else 0.0
        if self._queued and wait <= _UNNOTICED_WAIT:
            self._start_anew(wait, _lost(workers), _lost(workers))
        else:
            self._fail(_lost(workers), 0.0)

    def _start_anew(self, wait: float, problem: str, message: str) -> None:
        """End the requests that have begun with this message, and start another process for the others."""
        self._process = None
        self._end_all(Failure(FailureKind.ENGINE_DIED, message, retry_after=wait), queued_too=False)
        self._publish(EngineState(EnginePhase.RESTARTING, problem=problem))
        self._generation += 1
        self._later(wait, self._start)

    def _keep_unbegun(self) -> None:
        """Let requests that have not begun wait for the next engine, but not if they were there at an earlier death."""
        again = self._suspects if self._n_deaths > 1 else ()
        for request_id, request in list(self._live.items()):
            if request_id not in self._begun and replace(request, id="") not in again:
                self._queued[request_id] = self._live.pop(request_id)

    def _later(self, seconds: float, call: Callable[[], None]) -> None:
        """Call under the lock in so many seconds, unless the engine is another one by then."""
        generation = self._generation

        def now() -> None:
            with self._lock:
                if generation == self._generation:
                    call()

        timer = threading.Timer(seconds, now)
        timer.daemon = True
        timer.start()

    def _recover(self) -> None:
        """Say that the engine can be trusted again."""
        self._trust()
        self._publish(self.state)

    def _trust(self) -> None:
        """Forget earlier failures."""
        self._n_failures = self._n_deaths = 0
        self._suspects = []

    def _safer(self, options: EngineOptions) -> EngineOptions:
        """Return options without the features that may have killed the engine."""
        if self._n_deaths >= _WITHOUT_DRAFTS:
            options = replace(options, speculation="off")
        if self._n_deaths >= _WITHOUT_KEPT_TEXTS:
            options = replace(options, cache_ram=0, cache_disk=0)
        return options

    def _left_out(self) -> tuple[str, ...]:
        """Return sentences about the features that are off since the engine died several times."""
        left_out = []
        n_deaths = self._n_deaths or (self._process.n_deaths_before if self._process is not None else 0)
        if n_deaths >= _WITHOUT_DRAFTS:
            left_out.append(Sentence("Since the engine died twice, nothing drafts until the model is loaded again."))
        if n_deaths >= _WITHOUT_KEPT_TEXTS:
            left_out.append(Sentence("Texts that were kept in memory or on disk are not used until then."))
        if self._n_deaths >= _WITHOUT_SUSPECTS and self._suspects:
            left_out.append(
                Sentence("Requests that ran at each death are refused until the engine has worked for a minute.")
            )
        return tuple(left_out)

    def _check_suspicion(self, request: AnyRequest) -> None:
        """Refuse a request that ran at each of several deaths, until the engine is trusted again."""
        if self._n_deaths < _WITHOUT_SUSPECTS or replace(request, id="") not in self._suspects:
            return
        ready_at = self._process.ready_at if self._process is not None else None
        worked = time.monotonic() - ready_at if ready_at is not None else 0.0
        raise EngineUnavailable(
            "The engine died {n_deaths} times in a row while this request ran, so it is not run again "
            "before the engine has worked for {healthy_seconds:.0f} s without it. Change the request.",
            max(_HEALTHY_SECONDS - worked, 0.0),
            n_deaths=self._n_deaths,
            healthy_seconds=_HEALTHY_SECONDS,
        )


def _lost(workers: tuple[str, ...]) -> str:
    """Return what happened when a worker went away, and what to do."""
    names = ", ".join(workers)
    one = (
        Sentence("The worker {names}", names=names)
        if len(workers) == 1
        else Sentence("One of the workers {names}", names=names)
    )
    return Sentence(
        "{one} stopped answering, and the part of the model that it held is gone. Start it again "
        "there: the next request connects to it and loads the model.",
        one=one,
    )


def _why_not_loaded(reason: str) -> Sentence:
    """Return what llama.cpp says, and what helps."""
    if "allocate" in reason:
        return Sentence(
            "It says: {reason}. Memory is short: close other programs, or load the model with less context or fewer "
            "layers on GPUs.",
            reason=reason,
        )
    return Sentence(
        "It says: {reason}. The file may be damaged, or made for a newer llama.cpp: download it again, or "
        "update Slipstream.",
        reason=reason,
    )


def _cause_of_death(code: int, said: str, words: str) -> str:
    """Return a phrase for an exit code; ``said`` is llama.cpp's last error or "", ``words`` the end of the log."""
    if found := _OUT_OF_MEMORY.search(words):
        return Sentence("ran out of memory ({signal})", signal=found[0])
    if code >= 0:
        return Sentence("stopped with exit code {code}", code=f"{code}: {said}" if said else code)
    import signal

    names = {
        "SIGKILL": _KILLED,
        **{name: Sentence("crashed ({signal})", signal=name) for name in ("SIGSEGV", "SIGBUS")},
        "SIGABRT": Sentence("aborted ({signal})", signal=f"SIGABRT: {said}" if said else "SIGABRT"),
        "SIGILL": Sentence("met an instruction that this CPU does not have (SIGILL)"),
    }
    name = next((known.name for known in signal.Signals if known == -code), f"signal {-code}")
    return names.get(name, Sentence("was ended by {name}", name=name))
