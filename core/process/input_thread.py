"""The input thread of the engine process: prepares and checks requests before the model's thread gets them."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from typing import Protocol

from core.scheduler.input_processor import PreparedRequest
from core.values.errors import BadRequest, LoadFailed, PromptTooLong
from core.values.events import Ended, Failure, FailureKind, FinishReason
from core.values.request import Request

_log = logging.getLogger(__name__)
# Grammars are compiled by recursion, and the default stack of threads is smaller on some systems.
STACK_BYTES = 16 << 20

ArrivedRequest = tuple[PreparedRequest, float]


class Preparer(Protocol):
    """Prepares requests: an engine, or several."""

    def prepare(self, request: Request) -> PreparedRequest:
        """Return a request that can be submitted. Called on the input thread."""


class InputThread:
    """Prepares requests on its own thread, so that a huge prompt delays neither running requests nor a cancel.

    Every request is passed on exactly once: to ``admit``, or as ``Ended`` to ``refuse``.
    """

    def __init__(
        self, engine: Preparer, admit: Callable[[ArrivedRequest], None], refuse: Callable[[Ended], None]
    ) -> None:
        """``admit`` and ``refuse`` are called on the input thread."""
        self._engine = engine
        self._admit = admit
        self._refuse = refuse
        self._arrivals: queue.SimpleQueue[tuple[Request, float] | None] = queue.SimpleQueue()
        self._cancelled: set[str] = set()
        self._inside: set[str] = set()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="door", daemon=True)
        usual = threading.stack_size(STACK_BYTES)
        self._thread.start()
        threading.stack_size(usual)

    def put(self, request: Request) -> None:
        """Queue a request."""
        with self._lock:
            self._inside.add(request.id)
        self._arrivals.put((request, time.perf_counter()))

    def cancel(self, request_id: str) -> bool:
        """Cancel a request that is still here; return False if it is not."""
        with self._lock:
            if request_id not in self._inside:
                return False
            self._cancelled.add(request_id)
            return True

    def close(self) -> None:
        """End the thread after the queued requests."""
        self._arrivals.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (arrival := self._arrivals.get()) is not None:
            request, submitted_at = arrival
            outcome = self._examine(request, submitted_at)
            with self._lock:
                self._inside.discard(request.id)
                was_cancelled = request.id in self._cancelled
                self._cancelled.discard(request.id)
                if was_cancelled:
                    if isinstance(outcome, tuple):
                        outcome[0].close()
                    outcome = Ended(request.id, FinishReason.CANCELLED)
                if isinstance(outcome, tuple):
                    # Under the lock: a cancel either still finds the request here, or comes after it in the inbox.
                    self._admit(outcome)
            if isinstance(outcome, Ended):
                self._refuse(outcome)

    def _examine(self, request: Request, submitted_at: float) -> ArrivedRequest | Ended:
        try:
            return self._engine.prepare(request), submitted_at
        except PromptTooLong as error:
            failure = Failure(FailureKind.CONTEXT_LENGTH, error.message, error.param)
        except BadRequest as error:
            failure = Failure(FailureKind.BAD_REQUEST, error.message, error.param)
        except LoadFailed as error:
            _log.warning("%s", error)
            failure = Failure(FailureKind.LOAD_FAILED, error.message)
        except Exception as error:  # a request must end even after a bug here
            _log.exception("Preparing failed")
            failure = Failure(FailureKind.INTERNAL, f"The request could not be prepared: {error}")
        return Ended(request.id, FinishReason.FAILED, failure=failure)
