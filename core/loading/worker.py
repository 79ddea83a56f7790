"""The engine process: reads commands from stdin, steps the model, writes events to stdout."""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import logging
import os
import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial

from core.engine.embedder import Embedder, Prepared
from core.engine.engines import Engines
from core.machine.host import return_freed_memory
from core.process.child_process import Pipe, PipeClosed, die_with_parent, leave_signals_to_the_parent, own_streams
from core.scheduler.input_processor import PreparedRequest
from core.values.errors import BadRequest, InputTooLong, LoadFailed, PromptTooLong, SlipstreamError
from core.values.messages import (
    AnyRequest,
    Cancel,
    Command,
    Ended,
    EndThoughts,
    EnginePhase,
    EngineState,
    Event,
    Failure,
    FailureKind,
    FinishReason,
    LoadModel,
    RequestEvent,
    ShareCores,
    Started,
    StepRequest,
    Submit,
    Token,
)
from core.values.request import Request, SlotRequest, Tokenized
from models.formatting.sentence import Sentence

_log = logging.getLogger(__name__)

ArrivedRequest = tuple[Prepared, float]


class InputThread:
    """Prepares requests on its own thread, so that a huge prompt delays neither running requests nor a cancel.

    Every request is passed on exactly once: to ``admit``, or to ``tell`` with its answer and ``Ended``.
    """

    def __init__(
        self,
        engines: Engines | Embedder,
        admit: Callable[[ArrivedRequest], None],
        tell: Callable[[tuple[RequestEvent, ...]], None],
    ) -> None:
        """``admit`` and ``tell`` are called on the input thread."""
        self._engines = engines
        self._admit = admit
        self._tell = tell
        self._arrivals: queue.SimpleQueue[tuple[AnyRequest, float] | None] = queue.SimpleQueue()
        # The requests that are here, and whether they were cancelled.
        self._inside: dict[str, bool] = {}
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="input", daemon=True)
        self._thread.start()

    def put(self, request: AnyRequest) -> None:
        """Queue a request."""
        with self._lock:
            self._inside[request.id] = False
        self._arrivals.put((request, time.perf_counter()))

    def cancel(self, request_id: str) -> bool:
        """Cancel a request that is still here; return False if it is not."""
        with self._lock:
            if request_id not in self._inside:
                return False
            self._inside[request_id] = True
            return True

    def close(self) -> None:
        """End the thread after the queued requests."""
        self._arrivals.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (arrival := self._arrivals.get()) is not None:
            request, submitted_at = arrival
            prepared, told = self._examine(request)
            with self._lock:
                if self._inside.pop(request.id):
                    if isinstance(prepared, PreparedRequest):
                        prepared.sampler.close()
                    prepared, told = None, (Ended(request.id, FinishReason.CANCELLED),)
                if prepared is not None:
                    # Under the lock: a cancel either still finds the request here, or comes after it in the inbox.
                    self._admit((prepared, submitted_at))
            if told:
                self._tell(told)
            # What waits for the next request must not keep a long text and its tokens.
            del arrival, request, prepared, told

    def _examine(self, request: AnyRequest) -> tuple[Prepared | None, tuple[RequestEvent, ...]]:
        """Return the prepared request, or None and the events of a request that has ended."""
        if self._inside[request.id]:
            return None, ()
        try:
            if isinstance(request, StepRequest):
                return self._engines.prepare(request), ()
            return None, (self._engines.answer(request), Ended(request.id, FinishReason.STOP))
        except (PromptTooLong, InputTooLong) as error:
            failure = Failure.too_long(error)
        except BadRequest as error:
            failure = Failure(FailureKind.BAD_REQUEST, error.message, error.param)
        except LoadFailed as error:
            _log.warning("%s", error)
            failure = Failure(FailureKind.LOAD_FAILED, error.message)
        except Exception as error:  # a request must end even after a bug here
            _log.exception("Preparing failed")
            failure = Failure(FailureKind.INTERNAL, Sentence("The request could not be prepared: {error}", error=error))
        return None, (Ended(request.id, FinishReason.FAILED, failure=failure),)


# The thread that steps the model needs the GIL back at once after a decode.
_SWITCH_SECONDS = 5e-4
# Progress of a load is told in steps of this share.
_PROGRESS_STEP = 0.04
# 40 messages a second are smooth enough for a reader.
_TOGETHER_SECONDS = 0.025
# The text of so many tokens has left megabytes of small blocks behind.
_MANY_TOKENS = 100_000
# Exit codes as in sysexits.h: unavailable, and an error of ours.
_EXIT_NOT_LOADED, _EXIT_BROKEN = 69, 70


class EventSender:
    """Sends events from its own thread, so that a slow reader never delays a step.

    Each message wakes the server, which takes a core from the running step. So tokens are collected until
    ``_TOGETHER_SECONDS`` after the last message. A request's first token and all other events are sent at once.
    Collecting wakes nobody: the thread sleeps meanwhile.
    """

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._without_token: set[str] = set()  # started requests without a token yet
        self._sent_at = 0.0
        self._collected: deque[tuple[Event, ...]] = deque()
        self._is_asleep = False  # until there are events
        self._wake: queue.SimpleQueue[bool] = queue.SimpleQueue()  # False: send what is left and end
        self._thread = threading.Thread(target=self._work, name="outbox", daemon=True)
        self._thread.start()

    def put(self, events: Iterable[Event]) -> None:
        """Send events, in one message."""
        message = tuple(events)
        if not message:
            return
        is_urgent = self._is_urgent(message)
        self._collected.append(message)
        if is_urgent or self._is_asleep:
            self._is_asleep = False  # once is enough
            self._wake.put(True)

    def close(self) -> None:
        """Send what is left and stop."""
        self._wake.put(False)
        self._thread.join()

    def _work(self) -> None:
        is_open = True
        while is_open:
            is_open = self._wait()
            self._is_asleep = False
            events = [event for _ in range(len(self._collected)) for event in self._collected.popleft()]
            if not events:
                continue
            try:
                self._pipe.send(tuple(events))
            except PipeClosed:
                os._exit(0)  # the server is gone
            except Exception:  # an engine that sends nothing would leave its requests without an end
                _log.exception("Events could not be sent")
                os._exit(_EXIT_BROKEN)
            self._sent_at = time.monotonic()
            is_long = any(isinstance(event, Tokenized) and len(event.tokens) > _MANY_TOKENS for event in events)
            del events  # the tokens of a long text would stay until the next event
            if is_long:
                return_freed_memory()

    def _wait(self) -> bool:
        """Wait until events are to be sent; return False if no more will come."""
        left = self._sent_at + _TOGETHER_SECONDS - time.monotonic()
        if left > 0:
            with contextlib.suppress(queue.Empty):
                return self._wake.get(timeout=left)
        self._is_asleep = True
        # What came before ``put`` could see that the thread sleeps.
        return True if self._collected else self._wake.get()

    def _is_urgent(self, events: Iterable[Event]) -> bool:
        is_urgent = False
        for event in events:
            match event:
                case Token(request_id):
                    is_urgent |= request_id in self._without_token
                    self._without_token.discard(request_id)
                case Started(request_id):
                    self._without_token.add(request_id)
                    is_urgent = True
                case Ended(request_id):
                    self._without_token.discard(request_id)
                    is_urgent = True
                case _:
                    is_urgent = True
        return is_urgent


class Worker:
    """Moves commands into the engine and events out of it."""

    def __init__(self, engines: Engines | Embedder, pipe: Pipe, outbox: EventSender) -> None:
        self._engines = engines
        self._pipe = pipe
        self._outbox = outbox
        self._inbox: queue.SimpleQueue[ArrivedRequest | Cancel | EndThoughts | ShareCores] = queue.SimpleQueue()
        self._input = InputThread(engines, self._inbox.put, outbox.put)
        # Texts that become tokens or vectors may be as long as a body: nobody waits for a reply behind them.
        self._input_of_texts = InputThread(engines, self._inbox.put, outbox.put)
        threading.Thread(target=self._read, name="reader", daemon=True).start()

    def run(self) -> None:
        """Step for ever. Raises the errors of a step: the supervisor then starts a new process."""
        while True:
            self._take_commands()
            events: list[Event] = [*self._engines.step()]
            snapshot = self._engines.take_snapshot()
            if snapshot is not None:
                events.append(snapshot)
            self._outbox.put(events)

    def _take_commands(self) -> None:
        """Apply the commands that have arrived; wait only if the engines are idle."""
        timeout: float | None = 0.0
        if self._engines.is_idle:
            # While idle, write cached prompts to disk, a segment at a time.
            timeout = self._engines.write_back()
        while True:
            try:
                command = self._inbox.get(block=timeout != 0.0, timeout=timeout)
            except queue.Empty:
                return
            timeout = 0.0
            if isinstance(command, Cancel):
                self._engines.cancel(command.request_id)
            elif isinstance(command, ShareCores):
                self._engines.share_cores(command.n_engines)
            elif isinstance(command, EndThoughts):
                if isinstance(self._engines, Engines):
                    self._engines.end_thoughts(command.request_id)
            else:
                self._submit(command)

    def _submit(self, admitted: ArrivedRequest) -> None:
        prepared, submitted_at = admitted
        try:
            self._engines.submit(prepared, submitted_at)
        except Exception as error:  # a request must end even after a bug here
            _log.exception("A request could not be started")
            failure = Failure(FailureKind.INTERNAL, Sentence("The request could not be started: {error}", error=error))
            request = prepared if isinstance(prepared, SlotRequest) else prepared.request
            self._outbox.put((Ended(request.id, FinishReason.FAILED, failure=failure),))

    def _read(self) -> None:
        """Pass on the commands that arrive; runs on the reader thread."""
        try:
            while True:
                command: Command = self._pipe.receive()
                match command:
                    case Submit(Request() as request):
                        self._input.put(request)
                    case Submit(request):
                        self._input_of_texts.put(request)
                    case Cancel(request_id):
                        if not (self._input.cancel(request_id) or self._input_of_texts.cancel(request_id)):
                            self._inbox.put(command)
                    case EndThoughts() | ShareCores():
                        self._inbox.put(command)
        except PipeClosed:
            os._exit(0)  # the server is gone
        except Exception:  # an engine that receives nothing would leave its requests without an end
            _log.exception("The server's commands could not be read")
            os._exit(_EXIT_BROKEN)


def main() -> int:
    """Load the model named by the first command and serve until the pipe closes."""
    faulthandler.enable()
    gc.disable()  # until the model is there: nearly all that is made before stays
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    leave_signals_to_the_parent()
    sys.setswitchinterval(_SWITCH_SECONDS)
    pipe = own_streams()
    die_with_parent()
    with contextlib.suppress(Exception):  # the error is reported when a model is loaded
        # Already now, while the server still decides what to load.
        import core.loading.load_engine  # noqa: F401
    try:
        command = pipe.receive()
    except PipeClosed:
        return 0
    if not isinstance(command, LoadModel):
        raise TypeError(f"the first command must be LoadModel, not {command!r}")
    outbox = EventSender(pipe)
    engines = _load(command, outbox)
    if engines is None:
        outbox.close()
        return _EXIT_NOT_LOADED
    gc.freeze()  # imported objects stay: collecting them again and again would delay steps
    gc.enable()
    try:
        Worker(engines, pipe, outbox).run()
    except Exception:
        _log.exception("The engine failed")
    outbox.close()
    return _EXIT_BROKEN


def _in_steps(report: Callable[[float], None]) -> Callable[[float], None]:
    """Report progress only when it moved by a few per cent, since llama.cpp reports each tensor."""
    last = 0.0

    def step(share: float) -> None:
        nonlocal last
        if share >= last + _PROGRESS_STEP or share >= 1.0 > last:
            last = share
            report(share)

    return step


def _load(command: LoadModel, outbox: EventSender) -> Engines | Embedder | None:
    """Load the model; on an error send the reason and return None."""
    try:
        from core.llama.library import log_errors, log_to_stderr
        from core.loading.load_drafts import open_draft_engine
        from core.loading.load_engine import embedder_beside, is_embedder, load_embedder, load_engine
        from core.machine.bandwidth import measure_when_idle, remembered
        from core.machine.host import this_machine

        _log.info("Loading %s", command.options.model_path)
        log_to_stderr()
        progress = _in_steps(lambda share: outbox.put((EngineState(EnginePhase.LOADING, progress=share),)))
        if is_embedder(command.options.model_path):
            embedder, model = load_embedder(command.options, progress)
            log_errors()
            outbox.put((EngineState(EnginePhase.READY, model, progress=1.0),))
            return embedder
        engine, model = load_engine(command.options, cache_folder=command.cache_folder, progress=progress)
        log_errors()
        open_spark = partial(open_draft_engine, engine, model) if model.spark is not None else None
        engines = Engines(engine, embedder_beside(engine, command.options, model), open_spark)
        known = remembered(command.cache_folder, this_machine())
        if not model.n_gpu_layers and (known is None or known.is_estimate):
            # The weights are in host memory, whose bandwidth was not measured while the machine was at rest.
            arguments = (engines.activity, command.cache_folder, partial(setattr, engine.meter, "peak"))
            threading.Thread(target=measure_when_idle, args=arguments, name="peak-finder", daemon=True).start()
    except SlipstreamError as error:
        outbox.put((EngineState(EnginePhase.FAILED, problem=error.message),))
        return None
    except Exception as error:
        _log.exception("Loading failed")
        outbox.put(
            (EngineState(EnginePhase.FAILED, problem=Sentence("The model could not be loaded: {error}", error=error)),)
        )
        return None
    outbox.put((EngineState(EnginePhase.READY, model, progress=1.0),))
    return engines


if __name__ == "__main__":
    # Skip C destructors: llama.cpp's threads may still run, and its backends can crash at exit.
    os._exit(main())
