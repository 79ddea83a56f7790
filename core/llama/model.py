"""Models: weights and vocabulary of one that is loaded; and a copy of a file with other tensor types."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from core.llama.devices import handles_of
from core.llama.library import MIB, L, declare, ggml, log_to_stderr, start_backend
from core.values.addresses import is_worker
from core.values.engine_options import EngineOptions
from core.values.errors import LoadFailed, SlipstreamError
from core.values.messages import FillInTheMiddle

_cpu_buffers = declare(ggml, "ggml_backend_cpu_buffer_type", ctypes.c_void_p)


class _Override(ctypes.Structure):
    """``llama_model_tensor_buft_override``."""

    _fields_ = [("pattern", ctypes.c_char_p), ("buffer_type", ctypes.c_void_p)]


def kept_in_host_memory(n_layers: int) -> Any:
    """Return the overrides for the experts of the first ``n_layers`` layers; they must outlive the load.

    The pattern is that of LLM_FFN_EXPS_REGEX in llama.cpp's common.h, for each layer.
    """
    patterns = [rf"blk\.{layer}\.ffn_(up|down|gate|gate_up)_(ch|)exps".encode() for layer in range(n_layers)]
    overrides = [_Override(pattern, _cpu_buffers()) for pattern in patterns]
    return (_Override * (n_layers + 1))(*overrides, _Override(None, None))


def _overrides(metadata: Mapping[str, int]) -> Any:
    """Return the metadata as llama.cpp reads it at a load, up to an empty key."""
    found = (L.llama_model_kv_override * (len(metadata) + 1))()
    for override, (key, value) in zip(found, metadata.items(), strict=False):
        override.tag, override.key, override.value.val_i64 = L.LLAMA_KV_OVERRIDE_TYPE_INT, key.encode(), value
    return found


class Model:
    """Weights on their devices (``c``: ``llama_model``), and what its file says. Close every context before the model.

    ``description`` is as "llama ?B Q8_0". ``n_bytes`` are those of all tensors, ``n_params`` is the number of weights,
    ``n_ctx_train`` the context length that it was trained for, in tokens. In some layers a token sees at most the last
    ``window`` tokens (0: all of them). ``n_embd_out`` are the values of a vector that it gives for a token,
    ``n_scores`` those that its head for ranking gives for a text. ``is_recurrent``: some or all layers keep a state
    that cannot be cut at a position. ``is_offloaded``: layers may be on GPUs, which compute while llama.cpp goes on.
    ``can_generate``: it has nothing but a decoder, which predicts text. ``chat_template`` is the jinja source in the
    file; ``rerank_template`` is the text that puts a query and a document together for ranking. Both may be None.
    """

    def __init__(
        self,
        path: str,
        options: EngineOptions | None = None,
        *,
        n_gpu_layers: int = 0,
        load_mtp: bool = False,
        no_alloc: bool = False,
        metadata: Mapping[str, int] | None = None,
        progress: Callable[[float], None] = lambda share: None,
    ) -> None:
        """Load ``path``; -1 GPU layers means all. Raises LoadFailed, or BadOption for an unknown device.

        ``options`` say on which devices, which experts stay in host memory, and how the file is read. ``load_mtp``
        loads the layers that predict further tokens, too. ``no_alloc`` reads the header alone: contexts of such a model
        report what they would allocate, and cannot compute. ``metadata`` stands in place of the file's.
        ``progress`` is called with 0 to 1.
        """
        start_backend()
        options = options or EngineOptions(path)
        params = L.llama_model_default_params()
        params.n_gpu_layers = n_gpu_layers
        # ``llama_load_mode``: 1 maps the file into memory, 2 locks what was read, 3 does both.
        params.load_mode = 0 if no_alloc else (options.mmap is not False) + 2 * options.mlock
        params.no_alloc = no_alloc
        params.load_mtp = load_mtp
        handles = _device_array(options.devices)
        if handles is not None:
            params.devices = ctypes.cast(handles, ctypes.c_void_p)
        overrides = kept_in_host_memory(options.n_cpu_moe) if options.n_cpu_moe else None
        if overrides is not None:
            params.tensor_buft_overrides = ctypes.cast(overrides, ctypes.c_void_p)

        replaced = _overrides(metadata or {})
        params.kv_overrides = replaced

        def go_on(share: float, _data: object) -> bool:
            progress(share)
            return True  # False would stop the load

        callback = L.llama_progress_callback(go_on)
        params.progress_callback = callback
        self.c: Any = L.llama_model_load_from_file(os.fsencode(path), params)
        if not self.c:
            raise LoadFailed("llama.cpp could not load {path}.", path=path)
        self.is_offloaded = n_gpu_layers != 0
        self._read_facts()

    @cached_property
    def vocab(self) -> Vocab:
        """Its vocabulary, read when it is first asked for: that of a large one takes a quarter of a second."""
        return Vocab(self)

    def _read_facts(self) -> None:
        model = self.c
        buffer = ctypes.create_string_buffer(256)
        L.llama_model_desc(model, buffer, len(buffer))
        self.description = buffer.value.decode("utf-8", "replace")
        self.n_bytes, self.n_params = int(L.llama_model_size(model)), int(L.llama_model_n_params(model))
        self.n_ctx_train, self.n_layers = int(L.llama_model_n_ctx_train(model)), int(L.llama_model_n_layer(model))
        self.window = int(L.llama_model_n_swa(model))
        self.n_embd_out, self.n_scores = int(L.llama_model_n_embd_out(model)), int(L.llama_model_n_cls_out(model))
        self.is_recurrent = bool(L.llama_model_is_recurrent(model) or L.llama_model_is_hybrid(model))
        is_other = L.llama_model_has_encoder(model) or L.llama_model_is_diffusion(model)
        self.can_generate = bool(L.llama_model_has_decoder(model)) and not is_other
        self.chat_template, self.rerank_template = self._template(None), self._template(b"rerank")

    def _template(self, name: bytes | None) -> str | None:
        source = L.llama_model_chat_template(self.c, name)
        return source.decode("utf-8", "replace") if source else None

    def metadata(self, key: str) -> str | None:
        """Return a metadata value as text (``llama_model_meta_val_str``), or None."""
        buffer = ctypes.create_string_buffer(512)
        length = L.llama_model_meta_val_str(self.c, key.encode(), buffer, len(buffer))
        return buffer.value.decode("utf-8", "replace") if length >= 0 else None

    def close(self) -> None:
        """Free the weights."""
        if self.c:
            L.llama_model_free(self.c)
            self.c = None


def _device_array(names: tuple[str, ...]) -> Any:
    """Return a NULL-terminated array of device handles, or None for llama.cpp's own choice."""
    if not names:
        return None
    # Workers first, as llama.cpp does: the output is on the last device, and its logits are many bytes.
    handles = handles_of(sorted(names, key=lambda name: not is_worker(name)))
    return (ctypes.c_void_p * (len(handles) + 1))(*handles, None)


# Bytes of the buffer for a token's text; longer ones are read again into a larger one.
_PIECE_BYTES = 512
NO_TOKEN = -1  # LLAMA_TOKEN_NULL


class Vocab:
    """A model's vocabulary (``c``: ``llama_vocab``), with the bytes of every token. Safe to use from any thread.

    ``kind`` is that of its tokenizer (``llama_vocab_type``). ``pieces`` are the bytes that each token adds to visible
    text, empty for control tokens. ``adds_begin`` and ``adds_end`` are the tokens that every text begins and ends with,
    -1 for none; ``begin_text`` and ``end_text`` are the beginning- and end-of-text tokens written out, "" if there are
    none. ``between_texts`` are the tokens between a query and a document that are ranked together, ``after_text`` those
    behind them.
    """

    def __init__(self, model: Model) -> None:
        """Read every piece once: about 1 µs per token. Whoever has the model has its vocabulary already."""
        vocab = self.c = L.llama_model_get_vocab(model.c)
        self.kind, self.n_tokens = int(L.llama_vocab_type(vocab)), int(L.llama_vocab_n_tokens(vocab))
        begin, end, separator = (int(one(vocab)) for one in (L.llama_vocab_bos, L.llama_vocab_eos, L.llama_vocab_sep))
        self.adds_begin = begin if L.llama_vocab_get_add_bos(vocab) else NO_TOKEN
        self.adds_end = end if L.llama_vocab_get_add_eos(vocab) else NO_TOKEN
        self.begin_text, self.end_text = self.text(begin), self.text(end)
        behind = separator if end == NO_TOKEN else end
        self.after_text = (behind,) if L.llama_vocab_get_add_eos(vocab) else ()
        self.between_texts = (*self.after_text, separator) if L.llama_vocab_get_add_sep(vocab) else self.after_text
        buffer = ctypes.create_string_buffer(_PIECE_BYTES)
        self.pieces = tuple(self._piece(token, buffer, special=False) for token in range(self.n_tokens))
        self.end_tokens = frozenset(token for token in range(self.n_tokens) if L.llama_vocab_is_eog(vocab, token))
        # Special tokens have no visible piece, so their written form is measured.
        self.longest_piece = max(
            len(piece) or len(self._piece(token, buffer, special=True)) for token, piece in enumerate(self.pieces)
        )
        count = ctypes.c_int32()
        suppressed = L.llama_vocab_get_suppress_tokens(vocab, ctypes.byref(count))
        self.suppressed = frozenset(suppressed[index] for index in range(count.value)) if suppressed else frozenset()

    def raw_text(self, token: int) -> bytes:
        """Return a token's raw text from the model file."""
        return bytes(L.llama_vocab_get_text(self.c, token) or b"")

    def tokenize(self, text: str, *, add_special: bool = True, parse_special: bool = True) -> npt.NDArray[np.int32]:
        """Return token ids of ``text`` (``llama_tokenize``).

        ``add_special`` adds the tokens that the model wants at the start, ``parse_special`` recognises special
        tokens written out in the text.
        """
        data = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace").encode()
        room = len(data) + 8
        tokens = np.empty(room, np.int32)
        pointer = tokens.ctypes.data_as(ctypes.POINTER(ctypes.c_int32))
        count = L.llama_tokenize(self.c, data, len(data), pointer, room, add_special, parse_special)
        if count < 0:
            tokens = np.empty(-count, np.int32)
            pointer = tokens.ctypes.data_as(ctypes.POINTER(ctypes.c_int32))
            count = L.llama_tokenize(self.c, data, len(data), pointer, -count, add_special, parse_special)
        # A chat template may have written the begin token that add_special adds again.
        is_doubled = add_special and count > 1 and tokens[0] == tokens[1] == self.adds_begin
        return tokens[int(is_doubled) : count].copy()

    def text(self, token: int) -> str:
        """Return a token written out, special ones too; "" for no token."""
        if token == NO_TOKEN:
            return ""
        return self._piece(token, ctypes.create_string_buffer(_PIECE_BYTES), special=True).decode("utf-8", "replace")

    def bytes_of(self, token: int) -> bytes:
        """Return a token's bytes, special ones written out (``common_token_to_piece``)."""
        return self.pieces[token] or self._piece(token, ctypes.create_string_buffer(_PIECE_BYTES), special=True)

    def specials_in(self, texts: Iterable[str]) -> dict[int, bytes]:
        """Return the special tokens in ``texts``, each written out."""
        found = {int(token) for text in texts for token in self.tokenize(text, add_special=False)}
        return {token: self.text(token).encode() for token in found if not self.pieces[token]}

    @property
    def fill_in_the_middle(self) -> FillInTheMiddle | None:
        """The tokens around a middle that is to be filled in, or None where the model has not all three."""
        find = (L.llama_vocab_fim_pre, L.llama_vocab_fim_suf, L.llama_vocab_fim_mid)
        around = [int(one(self.c)) for one in find]
        if NO_TOKEN in around:
            return None
        files = int(L.llama_vocab_fim_rep(self.c)), int(L.llama_vocab_fim_sep(self.c))
        return FillInTheMiddle(*(self.text(token) for token in (*around, *files)))

    def _piece(self, token: int, buffer: ctypes.Array[ctypes.c_char], special: bool) -> bytes:
        length = L.llama_token_to_piece(self.c, token, buffer, len(buffer), 0, special)
        if length < 0:
            buffer = ctypes.create_string_buffer(-length)
            length = L.llama_token_to_piece(self.c, token, buffer, len(buffer), 0, special)
        return buffer.raw[:length]


TensorCallback = Callable[[str], None]
"""Called with the name of each tensor before it is written."""

# llama.cpp's own bound on the rows in memory at once is 8 GiB.
_MOST_BUFFERED = 1 << 30
_TENSOR = re.compile(r"\[ *\d+/ *(?P<count>\d+)\] (?P<name>\S+)")
_SIZE = re.compile(r"quant size += +(?P<mib>[\d.]+) MiB")
_FALLBACK = re.compile(r"(?P<count>\d+) of \d+ tensor\(s\) required fallback")
_FAILURE = re.compile(r"failed to quantize: (?P<reason>.+)", re.DOTALL)


class QuantiserRefused(SlipstreamError):
    """llama.cpp could not quantise; the text is its reason."""


@dataclass(frozen=True, slots=True)
class QuantiseOutcome:
    """Bytes of all tensors (to a hundredth of a MiB), how many there are, and how many got a larger type."""

    n_bytes: int
    n_tensors: int
    n_fallback: int


def quantise(
    source: str,
    target: str | None,
    *,
    file_type: int,
    n_threads: int,
    may_requantise: bool,
    progress: TensorCallback = lambda name: None,
) -> QuantiseOutcome:
    """Write ``source`` (the first part of a split model) to ``target`` as ``file_type`` (``llama_ftype``).

    ``target`` None writes nothing and only returns the size. Raises QuantiserRefused; an unfinished file stays. Bad
    input can abort the process: call it in a child process.
    """
    start_backend()
    params = L.llama_model_quantize_default_params()
    params.nthread, params.ftype = n_threads, file_type
    params.allow_requantize, params.dry_run = may_requantise, target is None
    params.max_buf_size = _MOST_BUFFERED
    listener = _LogReader(progress)
    # Progress is only in the log. The callback runs on this thread, so it may be Python.
    callback = L.llama_log_callback(listener.hear)
    L.llama_log_set(callback, ctypes.c_void_p(0))
    try:
        code = L.llama_model_quantize(os.fsencode(source), os.fsencode(target or os.devnull), ctypes.byref(params))
    finally:
        log_to_stderr()
    if code:
        raise QuantiserRefused(listener.reason or "llama.cpp gives no reason")
    return QuantiseOutcome(round(listener.mib * MIB), listener.n_tensors, listener.n_fallback)


class _LogReader:
    """Parses the log of ``llama_model_quantize_impl``."""

    def __init__(self, progress: TensorCallback) -> None:
        self._progress = progress
        self.n_tensors = self.n_fallback = 0
        self.mib = 0.0
        self.reason = ""

    def hear(self, _level: int, text: bytes, _data: object) -> None:
        line = text.decode("utf-8", "replace")
        if found := _TENSOR.match(line):
            self.n_tensors = int(found["count"])
            self._progress(found["name"])
        elif found := _SIZE.search(line):
            self.mib = float(found["mib"])
        elif found := _FALLBACK.search(line):
            self.n_fallback = int(found["count"])
        elif found := _FAILURE.search(line):
            self.reason = found["reason"].strip()
