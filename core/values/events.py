"""Events from the engine: frozen values that cross the pipe, matched by type.

Each submitted request gets exactly one ``Ended``, after at most one ``Started`` and any number of ``Token``. No event
of a request comes after its ``Ended``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from core.values.loaded_model import LoadedModel
from core.values.receipt import Receipt
from core.values.snapshot import Snapshot


class FinishReason(StrEnum):
    """Why a request ended."""

    STOP = "stop"  # the model ended its turn, or a stop string was met
    LENGTH = "length"  # max_tokens or the context is used up
    CANCELLED = "cancelled"
    FAILED = "failed"


class FailureKind(StrEnum):
    """The kind of failure of a request; it decides the HTTP status."""

    BAD_REQUEST = "bad_request"
    CONTEXT_LENGTH = "context_length"
    ENGINE_DIED = "engine_died"
    LOAD_FAILED = "load_failed"  # the draft engine that it asks for could not be opened
    SHUTDOWN = "shutdown"
    INTERNAL = "internal"


class Logprob(NamedTuple):
    """A token, its bytes, and its natural log probability before any sampler."""

    token: int
    piece: bytes
    logprob: float


class TokenLogprob(NamedTuple):
    """The chosen token and the most likely ones at its position, best first."""

    chosen: Logprob
    top: tuple[Logprob, ...]


class Token(NamedTuple):
    """Newly generated text of a request.

    ``text`` is empty for a token that ends inside a UTF-8 character or may begin a stop string. It can include text of
    earlier tokens that was held back. ``n`` is the number of tokens in this event.
    """

    request_id: str
    text: str
    n: int
    logprobs: tuple[TokenLogprob, ...]


@dataclass(frozen=True, slots=True)
class Started:
    """The request has a slot and its prompt is tokenised; ``n_cached`` of ``n_prompt`` tokens need no prefill."""

    request_id: str
    n_prompt: int
    n_cached: int


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a request failed. ``param`` names the offending field where there is one."""

    kind: FailureKind
    message: str
    param: str | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a request. ``text`` is the text still held back; ``stop`` is the stop string that was found."""

    request_id: str
    reason: FinishReason
    text: str = ""
    stop: str | None = None
    failure: Failure | None = None
    receipt: Receipt = field(default_factory=Receipt)


class EnginePhase(StrEnum):
    """The state of an engine."""

    EMPTY = "empty"  # no model was requested
    LOADING = "loading"
    READY = "ready"
    RESTARTING = "restarting"  # it died; the same model is being loaded again
    FAILED = "failed"  # it could not be loaded, or died several times in a row: the next request tries again


@dataclass(frozen=True, slots=True)
class EngineState:
    """The engine's state; ``progress`` is 0 to 1 while loading, ``problem`` a sentence when something is wrong.

    ``load`` is the number of the load that this state belongs to. A model that failed is not tried again before
    ``retry_at``, on the server's ``time.monotonic``. ``n_deaths`` counts the engine's deaths in a row; ``left_out`` are
    sentences about features that are off since then.
    """

    phase: EnginePhase
    model: LoadedModel | None = None
    progress: float = 0.0
    problem: str | None = None
    load: int = 0
    retry_at: float = 0.0
    n_deaths: int = 0
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MeasurementsTaken:
    """The engine's measurements of its model, for the supervisor, which passes them to ``LoadModel``."""

    entries: Mapping[str, dict[str, Any]]


RequestEvent = Started | Token | Ended
Event = Started | Token | Ended | EngineState | MeasurementsTaken | Snapshot
