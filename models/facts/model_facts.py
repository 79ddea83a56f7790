"""The facts of a model, computed from its file's header."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from models.facts import architectures
from models.facts.layer_weights import (
    LOOKED_UP,
    LayerWeights,
    WeightMap,
    block_of,
    head_weights,
    is_of_experts,
    weight_map,
)
from models.facts.split_files import parts
from models.formatting.safe_text import shortened
from models.formatting.sentence import Sentence
from models.gguf.errors import BadGguf, GgufError
from models.gguf.header import GgufHeader, TensorInfo, read_header
from models.gguf.tensor_types import BY_NAME, FILE_TYPES

# llama.cpp's limit (LLAMA_MAX_LAYERS), then limits far above any real model.
MAX_LAYERS = 512
MAX_EXPERTS = 1_024
_MAX_HEADS = 65_536
_MAX_LENGTH = 1 << 31
_LONGEST_SHOWN = 200
_MOST_KEPT = 8

_RECURRENT = ("ssm_", "shortconv", "time_mix", "channel_mix")
_BOTH_IN_ONE_LAYER = ("falcon-h1",)
# Hybrids whose prediction heads also get cells in the main cache (the filters in llama_model::create_memory).
_IDLE_HEADS = ("bailingmoe3", "nemotron_h_moe")
# Layers of Gemma 3n from here on reuse the cache of earlier ones.
_FIRST_SHARED = {"gemma3n": 20}
# Sliding windows in layers by llama.cpp's own rule (load_swa_pattern in src/models), where the file does not list them:
# the period, and whether it begins or ends with the layer that sees everything.
_WINDOW_PERIODS = {
    "afmoe": (4, False),
    "cohere2": (4, False),
    "cohere2moe": (4, True),
    "exaone-moe": (4, False),
    "exaone4": (4, False),
    "gemma2": (2, False),
    "gemma3": (6, False),
    "gemma3n": (5, False),
    "gpt-oss": (2, False),
    "laguna": (4, True),
    "llama4": (4, False),
    "mellum": (4, False),
    "muse-glimmer": (4, False),
    "olmo2": (4, False),
    "plamo3": (8, False),
    "smallthinker": (4, True),
}
# Architectures whose windows slide token by token over a cache of keys and values that can be cut to them
# (llama_kv_cache_iswa with LLAMA_SWA_TYPE_STANDARD).
_CUT_WINDOWS = frozenset(_WINDOW_PERIODS) - {"llama4"} | {"deepseek4", "gemma4", "mimo2", "step35"}
# Architectures for whose texts llama.cpp makes a whole cache each, even where they are to share one.
_APART = frozenset({"deepseek4"})
# Their layers that compress by this have an index of what was compressed (DSV4_CSA_RATIO).
_INDEXED = 4


@dataclass(frozen=True, slots=True)
class LayerCache:
    """The elements of K and V that one layer keeps per token (V is 0 if K holds both).

    A token attends to the last ``window`` tokens only, or to all if that is 0.
    """

    n_k: int
    n_v: int
    layer: int = 0
    window: int = 0

    def n_bytes(self, kv_type: str) -> int:
        """Bytes per token in ggml's type of this name, such as "f16" or "q8_0"."""
        kind = BY_NAME[kv_type.lower()]
        return kind.bytes_for(self.n_k) + kind.bytes_for(self.n_v)


@dataclass(frozen=True, slots=True)
class WeightBytes:
    """Bytes of weights by how a token uses them: all of ``shared``, and ``used`` of ``count`` parts of ``experts``."""

    shared: int
    experts: int
    n_experts: int
    n_experts_used: int

    def read_by(self, n_rows: int) -> int:
        """Bytes that one step over ``n_rows`` independent tokens is expected to read."""
        if not self.experts:
            return self.shared
        touched = 1.0 - (1.0 - self.n_experts_used / self.n_experts) ** n_rows
        return self.shared + round(self.experts * touched)


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """One model. Sizes are bytes; ``n_bytes`` is the size on disk of all its files, ``weight_bytes`` of its tensors.

    ``n_layers`` counts the main layers, without multi-token prediction heads. ``caches`` has one item per layer that
    keeps keys and values, and another where it also keeps them compressed, those of prediction heads last;
    ``state_elements`` counts the recurrent state of one sequence (F32). ``n_mtp_layers`` counts the prediction heads
    whose weights are in the file, and ``mtp_head`` is what the first of them reads. ``has_output`` is False for a head
    that uses the output of its model. ``names_pooling``: the file says how the vectors of all tokens become one. A
    context of more than ``n_ctx_short`` tokens has other factors of its rotary positions (LongRoPE, arXiv 2402.13753),
    also for short texts; 0 if the file has only one kind.
    ``problem`` says why the model cannot be used here, or is None.
    """

    files: tuple[Path, ...]
    architecture: str
    title: str | None
    licence: str | None
    quantisation: str
    n_params: int
    n_active_params: int
    n_bytes: int
    weight_bytes: int
    active_weights: WeightBytes
    mtp_head: LayerWeights
    n_ctx_train: int
    n_layers: int
    n_mtp_layers: int
    n_embd: int
    n_ff: int
    n_ff_expert: int
    n_heads: int
    n_kv_heads: tuple[int, ...]
    key_length: int
    value_length: int
    n_experts: int
    n_experts_used: int
    n_vocab: int
    caches: tuple[LayerCache, ...]
    state_elements: int
    tokenizer: str | None
    has_chat_template: bool
    problem: str | None
    weight_map: WeightMap
    has_output: bool = True
    names_pooling: bool = False
    n_ctx_short: int = 0

    @property
    def mtp_weights(self) -> WeightBytes:
        """Bytes that the first prediction head reads."""
        return self.used_of(self.mtp_head)

    def used_of(self, weights: LayerWeights) -> WeightBytes:
        """``weights`` with the share of experts that a token uses in this model."""
        n_shared = weights.n_bytes - weights.expert_bytes
        return WeightBytes(n_shared, weights.expert_bytes, max(1, self.n_experts), self.n_experts_used)

    @property
    def active_bytes_per_token(self) -> int:
        """Bytes of weights that one token reads."""
        return self.active_weights.read_by(1)

    @property
    def state_bytes(self) -> int:
        """Bytes of the recurrent state of one sequence, which llama.cpp keeps in F32."""
        return self.state_elements * 4

    def n_caches(self, n_slots: int) -> int:
        """How many caches llama.cpp makes for ``n_slots`` requests, each with room for a whole context."""
        return n_slots if self.architecture in _APART else 1

    @property
    def window(self) -> int:
        """How many tokens the cache may keep in layers with a sliding window; 0 if it has to keep all."""
        windows = {cache.window for cache in self.caches if cache.window}
        can_cut = self.architecture in _CUT_WINDOWS and not self.state_elements
        return windows.pop() if can_cut and len(windows) == 1 else 0

    @property
    def expert_share(self) -> float:
        """The share of its experts that a token uses; 0 without experts."""
        return self.n_experts_used / self.n_experts if self.n_experts else 0.0

    def kv_bytes_in_windows(self, kv_type: str) -> int:
        """Bytes of ``kv_bytes_per_token`` that belong to layers with a sliding window."""
        return sum(cache.n_bytes(kv_type) for cache in self._answering if cache.window)

    def kv_bytes_per_further_token(self, kv_type: str = "f16") -> int:
        """Bytes that one more token takes in a long context, where layers with a sliding window keep no more."""
        in_windows = self.kv_bytes_in_windows(kv_type) if self.window else 0
        return self.kv_bytes_per_token(kv_type) - in_windows

    def kv_bytes_per_token(self, kv_type: str = "f16") -> int:
        """Bytes that one token takes in the KV cache, with the name of a ggml type such as "f16" or "q8_0"."""
        return sum(cache.n_bytes(kv_type) for cache in self._answering)

    @property
    def is_head(self) -> bool:
        """True for a file that drafts with the hidden states of a model in another file."""
        return self.architecture in architectures.DRAFT_HEADS

    @property
    def is_embedder(self) -> bool:
        """True for a model that turns texts into vectors and cannot write."""
        return self.architecture in architectures.EMBEDDERS

    @property
    def is_for_vectors(self) -> bool:
        """True for an embedder, and for a decoder that was trained on as one: what that writes is of no use."""
        return self.is_embedder or self.names_pooling

    @property
    def why_no_draft(self) -> str | None:
        """Why it cannot be the small model that drafts for another, whichever that is; or None."""
        if self.problem is not None:
            return self.problem
        return Sentence("It turns texts into vectors and writes nothing.") if self.is_for_vectors else None

    def mtp_kv_bytes_per_token(self, kv_type: str = "f16") -> int:
        """Bytes that one token takes in the cache of the prediction heads."""
        heads = self.caches[len(self._answering) :] if self.n_mtp_layers else ()
        return sum(cache.n_bytes(kv_type) for cache in heads)

    def idle_kv_bytes_per_token(self, kv_type: str) -> int:
        """Bytes per token that llama.cpp reserves in the main cache for heads that use a cache of their own."""
        return self.mtp_kv_bytes_per_token(kv_type) if self.architecture in _IDLE_HEADS else 0

    @property
    def _answering(self) -> tuple[LayerCache, ...]:
        return tuple(cache for cache in self.caches if cache.layer < self.n_layers)


def read_model(path: Path) -> ModelFacts:
    """Read the headers of the model at ``path``, all parts of a split one; raises GgufError.

    A load asks some times for those of a model and of its draft, and a header with a large vocabulary takes 0.1 s: the
    facts of the last models are kept until a file changes.
    """
    files = parts(Path(path))
    try:
        stamps = tuple((found.st_mtime_ns, found.st_size, found.st_ino) for found in map(os.stat, files))
    except (OSError, ValueError):
        return _facts_of(files)  # which says what is wrong
    return _kept_facts(files, stamps)


@lru_cache(_MOST_KEPT)
def _kept_facts(files: tuple[Path, ...], _stamps: tuple[tuple[int, int, int], ...]) -> ModelFacts:
    return _facts_of(files)


def _facts_of(files: tuple[Path, ...]) -> ModelFacts:
    headers = []
    for number, file in enumerate(files, 1):
        try:
            headers.append(read_header(file))
        except GgufError as error:
            if len(files) == 1 or not isinstance(error.__cause__, FileNotFoundError):
                raise
            raise GgufError(
                "Part {number} of {n_files} is missing: {name}. Download it to the same folder.",
                number=number,
                n_files=len(files),
                name=file.name,
            ) from error
    return facts_from(headers, files)


def facts_from(headers: Sequence[GgufHeader], files: tuple[Path, ...] = ()) -> ModelFacts:
    """Compute the facts from the headers of all parts, the first of which has the metadata; raises BadGguf."""
    first = headers[0]
    n_parts = first.integer("split.count") or 1
    if n_parts != len(headers):
        advice = Sentence("Keep the file names it was published with, and all parts in one folder.")
        raise BadGguf(
            first.source.name,
            Sentence(
                "it is one of {n_parts} parts, and {n_headers} were found", n_parts=n_parts, n_headers=len(headers)
            ),
            advice,
        )
    return _Facts(first, [tensor for header in headers for tensor in header.tensors]).build(headers, files)


class _Facts:
    """Reads one model's metadata by the keys of its architecture."""

    def __init__(self, header: GgufHeader, tensors: Sequence[TensorInfo]) -> None:
        self.header, self.tensors = header, tensors
        self.architecture = header.text("general.architecture") or ""
        self.n_blocks = self.number("block_count", MAX_LAYERS)
        self.n_layers = max(0, self.n_blocks - self.number("nextn_predict_layers", MAX_LAYERS))
        self.n_embd = self.number("embedding_length")
        self.n_heads = self.per_layer("attention.head_count", (0,) * self.n_blocks)
        self.n_kv_heads = self.per_layer("attention.head_count_kv", self.n_heads)
        self.n_experts = self.number("expert_count", MAX_EXPERTS)
        used = self.per_layer("expert_used_count", (0,) * self.n_blocks)
        self.n_experts_used = min(max(used, default=0), self.n_experts)

    def build(self, headers: Sequence[GgufHeader], files: tuple[Path, ...]) -> ModelFacts:
        header, heads = self.header, max(self.n_heads, default=0)
        head_length = self.n_embd // heads if heads else 0
        vocabulary = header.count("tokenizer.ggml.tokens") or self.number("vocab_size")
        tokenizer = self.header.text("tokenizer.ggml.model") if self.header.count("tokenizer.ggml.tokens") else None
        return ModelFacts(
            files=files,
            architecture=self.architecture,
            title=self.short("general.name"),
            licence=self.short("general.license.name") or self.short("general.license"),
            quantisation=self._quantisation(),
            n_params=sum(tensor.n_elements for tensor in self.tensors),
            n_active_params=self._active_params(),
            n_bytes=sum(part.file_bytes for part in headers),
            weight_bytes=sum(tensor.n_bytes for tensor in self.tensors),
            active_weights=self._active_weights(),
            mtp_head=head_weights(self.tensors, self.n_layers) if self._n_mtp_layers() else LayerWeights(),
            n_ctx_train=self.number("context_length"),
            n_layers=self.n_layers,
            n_mtp_layers=self._n_mtp_layers(),
            n_embd=self.n_embd,
            n_ff=max(self.per_layer("feed_forward_length", (0,), _MAX_LENGTH), default=0),
            n_ff_expert=max(self.per_layer("expert_feed_forward_length", (0,), _MAX_LENGTH), default=0),
            n_heads=heads,
            n_kv_heads=self.n_kv_heads[: self.n_layers],
            key_length=self.number("attention.key_length") or head_length,
            value_length=self.number("attention.value_length") or head_length,
            n_experts=self.n_experts,
            n_experts_used=self.n_experts_used,
            n_vocab=vocabulary,
            caches=tuple(self._caches(head_length)),
            state_elements=self._state_elements(),
            tokenizer=tokenizer,
            has_chat_template="tokenizer.chat_template" in header.metadata,
            problem=self._problem(tokenizer),
            weight_map=weight_map(self.tensors, self.n_layers, is_tied=self._is_tied),
            has_output=self._has_output or self._is_tied,
            names_pooling=(header.integer(f"{self.architecture}.pooling_type") or 0) > 0,
            n_ctx_short=self._n_ctx_short(),
        )

    def short(self, key: str) -> str | None:
        """The text under ``key``, shortened if it is too long to be shown."""
        text = self.header.text(key)
        return None if text is None else shortened(text, _LONGEST_SHOWN)

    def number(self, key: str, limit: int = _MAX_LENGTH) -> int:
        """The whole number under the architecture's ``key``; 0 if there is none."""
        return self._bounded(key, self.header.integer(f"{self.architecture}.{key}") or 0, limit)

    def per_layer(self, key: str, default: tuple[int, ...], limit: int = _MAX_HEADS) -> tuple[int, ...]:
        """One number per block, from a single number or an array."""
        array = self._array(key)
        if array is None:
            value = self.header.integer(f"{self.architecture}.{key}")
            return default if value is None else (self._bounded(key, value, limit),) * self.n_blocks
        array = tuple(self._bounded(key, value, limit) for value in array[: self.n_blocks])
        return array + (0,) * (self.n_blocks - len(array))

    def _array(self, key: str) -> tuple[int, ...] | None:
        """The array under the architecture's ``key``, which has at most one item per layer."""
        key = f"{self.architecture}.{key}"
        count = self.header.count(key)
        if count is not None and count > MAX_LAYERS:
            raise BadGguf(
                self.header.source.name,
                Sentence("{key} has {count:,} values, and no model has so many layers", key=key, count=count),
            )
        return None if count is None else self.header.integers(key)

    def _bounded(self, key: str, value: int, limit: int) -> int:
        if not 0 <= value <= limit:
            raise BadGguf(
                self.header.source.name,
                Sentence("{key} is {value:,}, and must be between 0 and {limit:,}", key=key, value=value, limit=limit),
            )
        return value

    def _quantisation(self) -> str:
        """The file's own type name, else the tensor type with the most bytes."""
        kind = self.header.integer("general.file_type")
        if kind in FILE_TYPES:
            return FILE_TYPES[kind]
        bytes_by_type: Counter[str] = Counter()
        for tensor in self.tensors:
            bytes_by_type[tensor.type.name] += tensor.n_bytes
        return bytes_by_type.most_common(1)[0][0] if bytes_by_type else ""

    @property
    def _main_tensors(self) -> Iterator[TensorInfo]:
        """The tensors of the main layers, and those around them."""
        for tensor in self.tensors:
            block = block_of(tensor)
            if block is None or block < self.n_layers:
                yield tensor

    def _active_weights(self) -> WeightBytes:
        """Add up the tensors that a token uses: blocks, head, one row of each table."""
        tied = self._is_tied
        shared = experts = 0
        for tensor in self._main_tensors:
            if tensor.name in LOOKED_UP:
                shared += tensor.n_bytes // max(1, tensor.shape[-1] if tensor.shape else 1)
                shared += tensor.n_bytes if tied and tensor.name == "token_embd.weight" else 0
            elif self.n_experts and is_of_experts(tensor.name):
                experts += tensor.n_bytes
            else:
                shared += tensor.n_bytes
        return WeightBytes(shared, experts, max(1, self.n_experts), self.n_experts_used)

    def _n_mtp_layers(self) -> int:
        """Prediction heads whose weights are in the file: many files announce heads and leave them out."""
        names = {tensor.name for tensor in self.tensors}
        heads = range(self.n_layers, self.n_blocks)
        return len(heads) if all(f"blk.{block}.nextn.eh_proj.weight" in names for block in heads) else 0

    @property
    def _has_output(self) -> bool:
        return any(tensor.name == "output.weight" for tensor in self.tensors)

    @property
    def _is_tied(self) -> bool:
        """Whether the table of embeddings is also the output. A head in a file of its own uses its model's output."""
        return not self._has_output and self.architecture not in architectures.DRAFT_HEADS

    def _active_params(self) -> int:
        """Parameters that take part in one token: all but the experts that are not chosen and unused blocks."""
        active = 0
        for tensor in self._main_tensors:
            is_expert = self.n_experts and is_of_experts(tensor.name)
            share = self.n_experts_used / self.n_experts if is_expert else 1
            active += round(tensor.n_elements * share)
        return active

    def _caches(self, head_length: int) -> Iterator[LayerCache]:
        """K and V of each layer, those of the blocks that predict further tokens last."""
        lengths = self._lengths("", (head_length, head_length))
        if self.architecture in _APART:
            yield from self._compressed_caches(*lengths)
            return
        windowed = self._lengths("_swa", lengths)
        pattern = self._array("attention.sliding_window_pattern") or ()
        latent = bool(self.number("attention.key_length_mla") and self.number("attention.value_length_mla"))
        recurrent = self._recurrent_layers()
        for layer in range(self._first_shared()):
            n_kv = self.n_kv_heads[layer]
            alone = layer in recurrent and self.architecture not in _BOTH_IN_ONE_LAYER
            if n_kv and not alone:
                is_listed = layer < len(pattern) and bool(pattern[layer])
                k, v = windowed if is_listed else lengths
                has_window = is_listed or (not pattern and self._is_windowed(layer))
                window = self.number("attention.sliding_window") if has_window else 0
                yield LayerCache(n_kv * k, 0 if latent else n_kv * v, layer, window)

    def _compressed_caches(self, n_k: int, n_v: int) -> Iterator[LayerCache]:
        """Those of DeepSeek V4 (llama_kv_cache_dsv4): the last tokens, K and V in one, and older ones compressed."""
        window, n_index = self.number("attention.sliding_window"), self.number("attention.indexer.key_length")
        for layer, ratio in enumerate(self.per_layer("attention.compress_ratios", (0,) * self.n_blocks)):
            yield LayerCache(n_k, 0 if layer < self.n_layers else n_v, layer, window)
            if ratio and layer < self.n_layers:
                yield LayerCache((n_k + n_index * (ratio == _INDEXED)) // ratio, 0, layer)

    def _is_windowed(self, layer: int) -> bool:
        """Whether llama.cpp's own rule gives a layer a window that the file does not list."""
        period, dense_first = _WINDOW_PERIODS.get(self.architecture, (1, False))
        if self.header.count(f"{self.architecture}.attention.sliding_window_pattern") is None:
            period = self.number("attention.sliding_window_pattern", MAX_LAYERS) or period
        return period > 1 and layer < self.n_layers and layer % period != (0 if dense_first else period - 1)

    def _lengths(self, suffix: str, default: tuple[int, int]) -> tuple[int, int]:
        k, v = self.number(f"attention.key_length{suffix}"), self.number(f"attention.value_length{suffix}")
        return k or default[0], v or default[1]

    def _first_shared(self) -> int:
        """The first layer that uses the cache of an earlier one."""
        shared = self.number("attention.shared_kv_layers", MAX_LAYERS)
        return min(self.n_blocks - shared, _FIRST_SHARED.get(self.architecture, self.n_blocks))

    def _recurrent_layers(self) -> frozenset[int]:
        found = set()
        for tensor in self.tensors:
            block = block_of(tensor)
            if block is not None and tensor.name.split(".")[2].startswith(_RECURRENT):
                found.add(block)
        return frozenset(found)

    def _n_ctx_short(self) -> int:
        """The longest context with the factors for short ones (``llama_model::get_rope_factors``); 0 without those."""
        if not any(tensor.name == "rope_factors_short.weight" for tensor in self.tensors):
            return 0
        return self.number("rope.scaling.original_context_length") or self.number("context_length")

    def _state_elements(self) -> int:
        """Elements of recurrent state of one sequence, for the state-space families that most hybrids use."""
        n_layers = len([layer for layer in self._recurrent_layers() if layer < self.n_layers])
        if n_layers == 0:
            return 0
        short = self.number("shortconv.l_cache")
        if short:
            return n_layers * self.n_embd * (short - 1)
        head = self.number("wkv.head_size")
        if head:
            return n_layers * self.n_embd * (head + 2)
        kimi = self.number("kda.head_dim")
        if kimi:
            return (
                n_layers * max(self.n_heads, default=0) * kimi * (3 * max(0, self.number("ssm.conv_kernel") - 1) + kimi)
            )
        inner, state = self.number("ssm.inner_size"), self.number("ssm.state_size")
        convolution = max(0, self.number("ssm.conv_kernel") - 1) * (inner + 2 * self.number("ssm.group_count") * state)
        return n_layers * (convolution + inner * state)

    def _problem(self, tokenizer: str | None) -> str | None:
        kind = self.header.text("general.type")
        if kind in _NOT_MODELS:
            return _NOT_MODELS[kind]
        if not self.architecture:
            return Sentence(
                "The file does not say which architecture its model has. Get the model from another source."
            )
        reason = architectures.why_not(self.architecture)
        if reason is not None:
            return reason
        if tokenizer is None:
            return Sentence("The file has no tokenizer, so it cannot read text. Get a complete file of this model.")
        if self._is_head_alone:
            return Sentence(
                "The file holds only the prediction heads of a model, which Slipstream uses from the model's "
                "own file. Get the model in a file that carries them."
            )
        return self._missing(("context_length", "embedding_length", "block_count"))

    @property
    def _is_head_alone(self) -> bool:
        """Whether the file has only the prediction heads of a model."""
        blocks = {block for tensor in self.tensors if (block := block_of(tensor)) is not None}
        return bool(blocks) and self._n_mtp_layers() > 0 and min(blocks) >= self.n_layers

    def _missing(self, keys: Iterable[str]) -> str | None:
        for key in keys:
            if not self.number(key):
                return Sentence(
                    "The file lacks {architecture}.{key}. Get a complete file of this model.",
                    architecture=self.architecture,
                    key=key,
                )
        return None if self.tensors else Sentence("The file has no weights. Get a complete file of this model.")


_NOT_MODELS = {
    "adapter": Sentence("This is a LoRA adapter: it changes a model and is loaded beside one."),
    "mmproj": Sentence(
        "This file is a projector, which lets a model see or hear. Choose the model that it belongs to."
    ),
    "imatrix": Sentence("This is an importance matrix, made to quantise a model, and not a model."),
}
