"""Engine options, and the devices that they name. Frozen values that raise BadOption with a sentence for bad ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from core.values.addresses import is_worker, worker_address
from core.values.errors import BadOption
from models.formatting.sentence import Sentence

if TYPE_CHECKING:
    from models.estimate.speed.machine import Lent


@dataclass(frozen=True, slots=True)
class Device:
    """A device; ``free`` and ``total`` are bytes (the host's memory for the CPU).

    ``kind`` is cpu, gpu, igpu, accelerator or meta (``ggml_backend_dev_type``). llama.cpp calls every device that is
    ``lent`` by another machine a GPU, whatever it is there.
    """

    name: str
    description: str
    kind: str
    free: int = 0
    total: int = 0
    lent: Lent | None = None

    @property
    def is_gpu(self) -> bool:
        """True for discrete and integrated GPUs."""
        return self.kind in ("gpu", "igpu")


KvType = Literal["f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0"]
DEFAULT_KV_TYPE: KvType = "f16"
# Rows that llama.cpp evaluates at a time, its own default.
DEFAULT_UBATCH = 512
# Rows of a step at most, llama.cpp's own default of n_batch: far more than slots, drafts and a prefill chunk take.
MAX_STEP_ROWS = 2048
# From this many rows on a step counts as wide, as in prefill, and has its own number of threads.
MANY_ROWS = 32
# Requests that run at once. Benchmarks and probes use it too, because attention and kernels depend on it.
DEFAULT_SLOTS = 4
FlashAttention = Literal["auto", "on", "off"]
Pooling = Literal["none", "mean", "cls", "last", "rank"]
"""How one vector comes from those of all tokens: all of them (none), their mean, the first (cls), the last.

``rank`` is a model's own head that scores how well a document answers a query (``LLAMA_POOLING_TYPE_RANK``).
"""
Speculation = Literal["auto", "draft", "off"]
MAX_SLOTS = 64  # far more than one machine answers at a useful pace
MAX_LAYERS = 512  # LLAMA_MAX_LAYERS
MAX_THREADS = 512  # GGML_MAX_N_THREADS
# The most tokens that are drafted for a request in one step.
MAX_DRAFT_DEPTH = 16
# While a draft model catches up, this many of the latest tokens are compared with what it would have said.
MAX_READ_ALONG = 32


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Options of one engine. None means that the engine chooses a value for this machine.

    ``n_ctx`` is the context length of one request in tokens, ``n_cells`` the KV cells that all slots share (at least
    ``n_ctx``), ``n_slots`` how many requests run at once. ``n_gpu_layers`` None offloads what fits. ``n_cpu_moe`` keeps
    the experts of that many first layers in host memory (None: of as few as needed). ``kv_type`` None is f16, or a
    coarser type if f16 does not fit. A value that is set is used or the load fails: a set ``n_ctx`` is never shortened.

    ``mmap`` maps the file into memory instead of reading it; None reads it if that makes steps faster and memory is
    plentiful.

    ``speculation`` "auto" drafts with n-gram lookup, with the prediction heads in the model's file, and with
    ``draft_path``: a draft model, an EAGLE-3 or a DFlash head. "draft" uses ``draft_path`` alone (or the prediction
    heads if it is None). "off" never drafts. ``draft_depth`` fixes the number of drafted tokens instead of choosing it
    by cost (for comparisons). ``uses_heads`` false does not use the prediction heads in the model's file. A draft that
    cannot be loaded is an error; with ``must_draft`` false the model is loaded without it, with a notice.

    ``mmproj`` is a projector, with which the model sees images. One that cannot be loaded is an error, or a notice with
    ``must_see`` false.

    ``cache_ram`` bounds the bytes of host memory for prompt caches that have left the KV cache; None takes a share of
    what is free, 0 keeps none. ``cache_disk`` bounds those on disk, which survive a restart; None takes a share of the
    disk, 0 writes none. ``calibrates`` false measures nothing while the model is loaded: step times unknown from an
    earlier load are assumed, and learnt from the steps. ``devices`` names llama.cpp devices (as ``doctor`` lists them);
    empty means all GPUs, else the CPU. rpc://HOST:PORT is all devices that a worker lends; ``also_worker`` is one
    beside those of ``devices``, whatever they are. ``worker_tokens`` are pairs of such a name and the token that the
    worker wants. ``chat_template`` replaces the one in the model's file.
    ``pooling`` replaces the file's way to make one vector of those of all tokens.
    ``lora`` are files of LoRA adapters, each with its scale; texts computed with them are not kept on disk.
    """

    model_path: str
    n_ctx: int | None = None
    n_cells: int | None = None
    n_slots: int = DEFAULT_SLOTS
    n_ubatch: int = DEFAULT_UBATCH
    n_threads: int | None = None
    n_gpu_layers: int | None = None
    n_cpu_moe: int | None = None
    flash_attention: FlashAttention = "auto"
    kv_type: KvType | None = None
    mmap: bool | None = None
    mlock: bool = False
    devices: tuple[str, ...] = ()
    also_worker: str | None = None
    worker_tokens: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    speculation: Speculation = "auto"
    draft_path: str | None = None
    must_draft: bool = True
    uses_heads: bool = True
    mmproj: str | None = None
    must_see: bool = True
    draft_depth: int | None = None
    cache_ram: int | None = None
    cache_disk: int | None = 0
    calibrates: bool = True
    chat_template: str | None = None
    pooling: Pooling | None = None
    lora: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        if not self.model_path:
            raise BadOption(Sentence("No model file was given."))
        _within(Sentence("context length"), self.n_ctx, 16)
        _within(Sentence("number of KV cells"), self.n_cells, 16)
        _within(Sentence("number of threads"), self.n_threads, 1, MAX_THREADS)
        _within(Sentence("number of slots"), self.n_slots, 1, MAX_SLOTS)
        _within(Sentence("number of GPU layers"), self.n_gpu_layers, 0)
        _within(Sentence("number of layers whose experts stay on the processor"), self.n_cpu_moe, 0, MAX_LAYERS)
        _within(Sentence("cache in RAM in bytes"), self.cache_ram, 0)
        _within(Sentence("cache on disk in bytes"), self.cache_disk, 0)
        _within(Sentence("draft depth"), self.draft_depth, 0, MAX_DRAFT_DEPTH)
        _one_of(Sentence("kind of speculation"), self.speculation, Speculation)
        _one_of(Sentence("flash attention"), self.flash_attention, FlashAttention)
        _one_of(Sentence("pooling"), self.pooling, Pooling)
        _one_of(Sentence("type of the KV cache"), self.kv_type, KvType)
        if self.n_ctx is not None and self.n_cells is not None and self.n_cells < self.n_ctx:
            raise BadOption(
                "{n_cells} KV cells cannot hold one context of {n_ctx} tokens.", n_cells=self.n_cells, n_ctx=self.n_ctx
            )
        for worker in self.workers:
            worker_address(worker)
        if self.flash_attention == "off" and self.cache_type not in ("f32", "f16", "bf16"):
            raise BadOption(
                "A KV cache of type {kv_type} needs flash attention: set it to auto or on.", kv_type=self.kv_type
            )

    @property
    def workers(self) -> tuple[str, ...]:
        """Those of ``devices`` that are workers and the one beside them, each once."""
        also = () if self.also_worker is None else (self.also_worker,)
        return tuple(dict.fromkeys((*filter(is_worker, self.devices), *also)))

    @property
    def cache_type(self) -> KvType:
        """The type of the KV cache, where it is set or has been chosen."""
        return self.kv_type or DEFAULT_KV_TYPE


def _within(what: str, value: int | None, low: int, high: int | None = None) -> None:
    if value is not None and value < low and high is None:
        raise BadOption("The {what} must be at least {low}, not {value}.", what=what, low=low, value=value)
    if value is not None and high is not None and not low <= value <= high:
        facts = {"what": what, "low": low, "high": high, "value": value}
        raise BadOption("The {what} must be between {low} and {high}, not {value}.", **facts)


def _one_of(what: str, value: str | None, kind: object) -> None:
    choices = get_args(kind)
    if value is not None and value not in choices:
        facts = {"what": what, "choices": ", ".join(choices), "value": repr(value)}
        raise BadOption("The {what} must be one of {choices}, not {value}.", **facts)


# Bytes of a cache line, and of an output's index.
_LINE_BYTES = 64
_INDEX_BYTES = 4


def whole_lines(n_outputs: int) -> int:
    """Return the next number of outputs whose indices fill whole cache lines.

    All tensors that a step computes follow these indices in one buffer, each aligned to 32 bytes only
    (``TENSOR_ALIGNMENT`` in ggml-backend.cpp). If the indices end in the middle of a line, every second vector read
    crosses a line: with 17 outputs steps of four rows took 2 to 4 % longer than with 16 under flash attention and 8 %
    without it (AVX-512, Q8_0).
    """
    per_line = _LINE_BYTES // _INDEX_BYTES
    return -(-n_outputs // per_line) * per_line
