"""Messages between server and engine process: frozen values that cross the pipe, matched by type.

The server sends a ``Command`` and gets ``Event``s. Each submitted request gets exactly one ``Ended``, after at most one
``Started`` and any number of ``Token``, or the one answer of a request that generates nothing. No event of a request
comes after its ``Ended``. Closing the pipe tells the engine process to exit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from core.values.engine_options import EngineOptions, Pooling
from core.values.receipt import Receipt, Snapshot
from core.values.request import (
    Detokenized,
    DetokenizeRequest,
    Embedded,
    EmbedRequest,
    Request,
    Tokenized,
    TokenizeRequest,
)


class FillInTheMiddle(NamedTuple):
    """The texts of the tokens around a middle to be filled in; those for several files are "" if the model has none."""

    prefix: str
    suffix: str
    middle: str
    repository: str = ""
    separator: str = ""


@dataclass(frozen=True, slots=True)
class SmallModel:
    """Facts about the draft model that can also answer alone; fields as in ``LoadedModel``."""

    name: str
    description: str
    n_bytes: int
    n_vocab: int
    n_ctx: int
    chat_template: str | None
    fim: FillInTheMiddle | None


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """Facts about a loaded model and the options in effect.

    ``n_ctx`` is the context length of one request, ``n_cells`` the KV cells that all requests share. Experts of the
    first ``n_cpu_moe`` layers are in host memory. ``chat_template`` is the GGUF's jinja source, or None.
    ``bos``/``eos`` are the texts of these tokens ("" if none). ``fim`` is None if the model cannot fill in the
    middle. ``notices`` are sentences about parts that cannot be used. ``spark`` is
    the small model that answers if a request asks for it. If it is None, ``why_no_spark`` is a sentence. ``draft_path``
    is the file of the draft model or head, "" if none was loaded. ``has_heads``: the prediction heads in the model's
    file draft. ``mmproj`` is the file of the projector, with which the model sees images, "" if none was loaded.
    ``pooling`` is how its vectors come from those of tokens. Without ``can_write`` it gives vectors and no text.
    """

    path: str
    description: str
    architecture: str
    n_params: int
    n_bytes: int
    n_vocab: int
    n_ctx_train: int
    n_ctx: int
    n_cells: int
    n_slots: int
    n_threads: int
    n_gpu_layers: int
    kv_type: str
    devices: tuple[str, ...]
    chat_template: str | None
    bos: str
    eos: str
    fim: FillInTheMiddle | None
    load_seconds: float
    notices: tuple[str, ...] = ()
    spark: SmallModel | None = None
    why_no_spark: str = ""
    n_cpu_moe: int = 0
    draft_path: str = ""
    has_heads: bool = False
    mmproj: str = ""
    pooling: Pooling = "last"
    can_write: bool = True


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
    earlier tokens that was held back. ``n`` is the number of tokens in this event. With ``is_drafted`` the token was
    guessed ahead, and accepted.
    """

    request_id: str
    text: str
    n: int
    logprobs: tuple[TokenLogprob, ...]
    is_drafted: bool = False


@dataclass(frozen=True, slots=True)
class Started:
    """The request has a slot and its prompt is tokenised; ``n_cached`` of ``n_prompt`` tokens need no prefill."""

    request_id: str
    n_prompt: int
    n_cached: int


class PromptRead(NamedTuple):
    """How much of a prompt is in the KV cache, for a request that reports it: ``n_read`` of ``n_prompt`` tokens.

    ``n_cached`` of them needed no prefill; it has taken ``seconds`` so far.
    """

    request_id: str
    n_prompt: int
    n_cached: int
    n_read: int
    seconds: float


class PromptScored(NamedTuple):
    """Log probabilities of the next tokens of a prompt, in order; that of its first token is not a number."""

    request_id: str
    logprobs: tuple[TokenLogprob, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a request failed. ``param`` names the offending field where there is one.

    In ``retry_after`` seconds an engine may run it again; 0 means at once. If a prompt is too long, ``n_prompt`` and
    ``n_ctx`` are its tokens and those of the context.
    """

    kind: FailureKind
    message: str
    param: str | None = None
    retry_after: float = 0.0
    n_prompt: int = 0
    n_ctx: int = 0


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


StepRequest = Request | EmbedRequest
AnyRequest = StepRequest | TokenizeRequest | DetokenizeRequest
Answer = Tokenized | Detokenized | Embedded
"""The answer to a request that generates nothing; it comes before its ``Ended``."""
RequestEvent = Started | PromptRead | PromptScored | Token | Answer | Ended
Event = RequestEvent | EngineState | MeasurementsTaken | Snapshot


@dataclass(frozen=True, slots=True)
class LoadModel:
    """The first command: load a model. ``cache_folder`` keeps measurements.

    ``measured`` holds earlier measurements of an engine with these options, by the keys of ``Measurements``.
    """

    options: EngineOptions
    cache_folder: Path
    measured: Mapping[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Submit:
    """Run a request."""

    request: AnyRequest


@dataclass(frozen=True, slots=True)
class Cancel:
    """End a request."""

    request_id: str


@dataclass(frozen=True, slots=True)
class EndThoughts:
    """Let a request that bounds its thoughts go on to the answer."""

    request_id: str


Command = LoadModel | Submit | Cancel | EndThoughts
