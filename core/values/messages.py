"""Messages between server and engine process: frozen values that cross the pipe, matched by type.

The server sends a ``Command`` and gets ``Event``s. Each submitted request gets exactly one ``Ended``, after at most one
``Started`` and any number of ``Token``, or the one answer of a request that generates nothing. No event of a request
comes after its ``Ended``, which carries the ``Receipt``. Closing the pipe tells the engine process to exit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from core.values.engine_options import DEFAULT_KV_TYPE, EngineOptions, Pooling
from core.values.errors import InputTooLong, PromptTooLong
from core.values.request import (
    Detokenized,
    DetokenizeRequest,
    Embedded,
    EmbedRequest,
    Request,
    SlotDone,
    SlotRequest,
    Tokenized,
    TokenizeRequest,
)


@dataclass(frozen=True, slots=True)
class CacheMiss:
    """After ``position`` equal tokens a cached text has ``stored``, the prompt ``prompt``: a few tokens each."""

    position: int
    stored: str
    prompt: str


class Bottleneck(StrEnum):
    """The limit that sets the speed of the steps."""

    BANDWIDTH = "bandwidth"  # reading weights and KV: more rows are nearly free
    COMPUTE = "compute"  # arithmetic: time grows in proportion to the rows
    OVERHEAD = "overhead"  # neither: kernel launches, and work between steps
    UNKNOWN = "unknown"  # the peak of this device was not measured


@dataclass(frozen=True, slots=True)
class Receipt:
    """Counts in tokens, times in seconds on the engine's clock, measured from the moment the engine saw the request.

    ``ttft`` is the time to the first token (0 where none came); ``prefill`` the time from the first prefill step to the
    first token; ``decode`` the time from the first token to the last. ``bytes_per_token`` is the bytes read for each
    decoded token (0 if unknown). ``peak_share`` is the read rate as a share of the measured bandwidth, including the
    requests that ran at the same time, and ``limited_by`` what took most of the time of each step. ``speedup`` compares
    with observed plain steps: 1 if nothing was drafted, None if too few were seen. ``plain_seconds`` is the time per
    token without drafts, from the same steps; it is None also while other programs use the cores. ``cache_miss`` is
    None if the prompt continues a cached one, or shares no beginning with any. Of the tokens that draft models and
    heads proposed, ``n_judged`` could be compared with the target's own, and ``n_right`` of them were equal.
    ``kv_type`` is the type of the KV cache.
    """

    n_prompt: int = 0
    n_cached: int = 0
    n_generated: int = 0
    n_drafted: int = 0
    n_accepted: int = 0
    n_judged: int = 0
    n_right: int = 0
    queued: float = 0.0
    ttft: float = 0.0
    prefill: float = 0.0
    decode: float = 0.0
    total: float = 0.0
    seed: int | None = None
    bytes_per_token: float = 0.0
    peak_share: float | None = None
    limited_by: Bottleneck = Bottleneck.UNKNOWN
    speedup: float | None = 1.0
    plain_seconds: float | None = None
    cache_miss: CacheMiss | None = None
    kv_type: str = DEFAULT_KV_TYPE

    @property
    def prefill_rate(self) -> float:
        """Prompt tokens evaluated per second (cached tokens do not count)."""
        return (self.n_prompt - self.n_cached) / self.prefill if self.prefill > 0 else 0.0

    @property
    def decode_rate(self) -> float:
        """Generated tokens per second after the first (OTPS)."""
        return (self.n_generated - 1) / self.decode if self.decode > 0 and self.n_generated > 1 else 0.0


@dataclass(frozen=True, slots=True)
class LaneCount:
    """Requests of one lane that have a slot, and requests that wait for one."""

    lane: str
    n_running: int
    n_waiting: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Rates are of the last second of work; they are 0 while the engine is idle.

    ``bytes_per_second`` is computed: the weights and the KV that each step must read, over its time. ``peak`` is the
    measured bandwidth (None where it is not known) and ``peak_share`` at most 1. ``is_in_cache``: the model is so small
    that the processor's cache may hold it, so that steps do not read from memory. ``drafted_at[d]`` counts tokens
    drafted at depth d since the model was loaded, ``accepted_at[d]`` the accepted ones of them; ``n_drafted`` and
    ``n_accepted`` are of the last second. ``cache_ram_bytes`` is the prompt cache in RAM. ``speedup`` compares with
    observed plain steps (None: too few). ``cheap_rows`` is how many rows a step can have within 1.75 times the time of
    one row, by the cost model. Since the model was loaded there were ``n_steps`` steps, ``n_shares`` requests in
    them altogether, and ``n_drafts`` drafts that were verified.
    """

    is_idle: bool = True
    decode_rate: float = 0.0
    prefill_rate: float = 0.0
    bytes_per_second: float = 0.0
    peak: float | None = None
    peak_share: float | None = None
    is_in_cache: bool = False
    limited_by: Bottleneck = Bottleneck.UNKNOWN
    n_active: int = 0
    n_waiting: int = 0
    lanes: tuple[LaneCount, ...] = ()
    n_cells_used: int = 0
    n_cells: int = 0
    cache_ram_bytes: int = 0
    n_drafted: int = 0
    n_accepted: int = 0
    drafted_at: tuple[int, ...] = ()
    accepted_at: tuple[int, ...] = ()
    speedup: float | None = None
    cheap_rows: int = 1
    n_steps: int = 0
    n_shares: int = 0
    n_drafts: int = 0

    @property
    def acceptance(self) -> float | None:
        """Share of drafted tokens that were accepted in the last second; None where none were drafted."""
        return self.n_accepted / self.n_drafted if self.n_drafted else None


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
    Files that are not ``is_mapped`` into memory were read.
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
    is_mapped: bool = True


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
    guessed ahead, and accepted. The first event of a request has the receipt's ``ttft``, the others 0.
    """

    request_id: str
    text: str
    n: int
    logprobs: tuple[TokenLogprob, ...]
    is_drafted: bool = False
    ttft: float = 0.0


@dataclass(frozen=True, slots=True)
class Started:
    """The request has ``slot``, and its prompt is tokenised; ``n_cached`` of ``n_prompt`` tokens need no prefill."""

    request_id: str
    n_prompt: int
    n_cached: int
    slot: int = 0


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

    @classmethod
    def too_long(cls, error: PromptTooLong | InputTooLong) -> Failure:
        """Return that of a prompt, or an input for vectors, which does not fit into the context."""
        sizes = {"n_prompt": error.n_prompt, "n_ctx": error.n_ctx}
        return cls(FailureKind.CONTEXT_LENGTH, error.message, error.param, **sizes)


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
    ``retry_at``, on the server's ``time.monotonic``. ``n_deaths`` counts the engine's deaths in a row, until one has
    worked for a minute; ``left_out`` are sentences about features that are off since then.
    """

    phase: EnginePhase
    model: LoadedModel | None = None
    progress: float = 0.0
    problem: str | None = None
    load: int = 0
    retry_at: float = 0.0
    n_deaths: int = 0
    left_out: tuple[str, ...] = ()


StepRequest = Request | EmbedRequest | SlotRequest
AnyRequest = StepRequest | TokenizeRequest | DetokenizeRequest
Answer = Tokenized | Detokenized | Embedded | SlotDone
"""The answer to a request that generates nothing; it comes before its ``Ended``."""
RequestEvent = Started | PromptRead | PromptScored | Token | Answer | Ended
Event = RequestEvent | EngineState | Snapshot


@dataclass(frozen=True, slots=True)
class LoadModel:
    """The first command: load a model. ``cache_folder`` keeps measurements."""

    options: EngineOptions
    cache_folder: Path


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


@dataclass(frozen=True, slots=True)
class ShareCores:
    """So many engines of this server compute: use this engine's part of the cores until told otherwise."""

    n_engines: int


Command = LoadModel | Submit | Cancel | EndThoughts | ShareCores
