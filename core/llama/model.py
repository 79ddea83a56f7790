"""A loaded model: weights and vocabulary, closed explicitly."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from core.llama.devices import handles_of
from core.llama.library import L, declare, ggml, start_backend
from core.values.addresses import is_worker
from core.values.engine_options import EngineOptions
from core.values.errors import LoadFailed
from models.formatting.sentence import Sentence

if TYPE_CHECKING:
    from core.llama.context import Context

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


class Model:
    """Weights on their devices (``llama_model``), and what its file says. Close every context before the model.

    ``description`` is as "llama ?B Q8_0". ``n_bytes`` are those of all tensors, ``n_params`` is the number of weights,
    ``n_ctx_train`` the context length that it was trained for, in tokens. ``n_embd_out`` are the values of a vector
    that it gives for a token, ``n_scores`` those that its head for ranking gives for a text. ``is_recurrent``: some or
    all layers keep a state that cannot be cut at a position. ``can_generate``: it has nothing but a decoder, which
    predicts text. ``chat_template`` is the jinja source in the file; ``rerank_template`` is the text that puts a query
    and a document together for ranking. Both may be None.
    """

    def __init__(
        self,
        path: str,
        options: EngineOptions | None = None,
        *,
        n_gpu_layers: int = 0,
        load_mtp: bool = False,
        no_alloc: bool = False,
        progress: Callable[[float], None] = lambda share: None,
    ) -> None:
        """Load ``path``; -1 GPU layers means all. Raises LoadFailed, or BadOption for an unknown device.

        ``options`` say on which devices, which experts stay in host memory, and how the file is read. ``load_mtp``
        loads the layers that predict further tokens, too. ``no_alloc`` reads the header alone: contexts of such a model
        report what they would allocate, and cannot compute. ``progress`` is called with 0 to 1.
        """
        start_backend()
        options = options or EngineOptions(path)
        params = L.llama_model_default_params()
        params.n_gpu_layers = n_gpu_layers
        # ``llama_load_mode``: 1 maps the file into memory, 2 locks what was read, 3 does both.
        params.load_mode = 0 if no_alloc else options.mmap + 2 * options.mlock
        params.no_alloc = no_alloc
        params.load_mtp = load_mtp
        handles = _device_array(options.devices)
        if handles is not None:
            params.devices = ctypes.cast(handles, ctypes.c_void_p)
        overrides = kept_in_host_memory(options.n_cpu_moe) if options.n_cpu_moe else None
        if overrides is not None:
            params.tensor_buft_overrides = ctypes.cast(overrides, ctypes.c_void_p)

        def go_on(share: float, _data: object) -> bool:
            progress(share)
            return True  # False would stop the load

        callback = L.llama_progress_callback(go_on)
        params.progress_callback = callback
        self._model: Any = L.llama_model_load_from_file(os.fsencode(path), params)
        if not self._model:
            raise LoadFailed(Sentence("llama.cpp could not load {path}.", path=path))
        self.vocab: Any = L.llama_model_get_vocab(self._model)
        self._read_facts()

    def _read_facts(self) -> None:
        model = self._model
        buffer = ctypes.create_string_buffer(256)
        L.llama_model_desc(model, buffer, len(buffer))
        self.description = buffer.value.decode("utf-8", "replace")
        self.n_bytes, self.n_params = int(L.llama_model_size(model)), int(L.llama_model_n_params(model))
        self.n_ctx_train, self.n_layers = int(L.llama_model_n_ctx_train(model)), int(L.llama_model_n_layer(model))
        self.n_embd_out, self.n_scores = int(L.llama_model_n_embd_out(model)), int(L.llama_model_n_cls_out(model))
        self.is_recurrent = bool(L.llama_model_is_recurrent(model) or L.llama_model_is_hybrid(model))
        is_other = L.llama_model_has_encoder(model) or L.llama_model_is_diffusion(model)
        self.can_generate = bool(L.llama_model_has_decoder(model)) and not is_other
        self.chat_template, self.rerank_template = self._template(None), self._template(b"rerank")

    def _template(self, name: bytes | None) -> str | None:
        source = L.llama_model_chat_template(self._model, name)
        return source.decode("utf-8", "replace") if source else None

    @property
    def c(self) -> Any:
        """The C pointer."""
        return self._model

    def metadata(self, key: str) -> str | None:
        """Return a metadata value as text (``llama_model_meta_val_str``), or None."""
        buffer = ctypes.create_string_buffer(512)
        length = L.llama_model_meta_val_str(self._model, key.encode(), buffer, len(buffer))
        return buffer.value.decode("utf-8", "replace") if length >= 0 else None

    def close(self) -> None:
        """Free the weights."""
        if self._model:
            L.llama_model_free(self._model)
            self._model = None


class LoraAdapters:
    """The adapters of a model, in the order in which they were named. llama.cpp frees them with the model."""

    def __init__(self, model: Model, files: Sequence[tuple[str, float]]) -> None:
        """Load them from ``files`` with their usual scales; raises LoadFailed for one that does not fit the model."""
        self.scales = tuple(scale for _, scale in files)
        self._adapters: list[Any] = []
        for path, _ in files:
            adapter = L.llama_adapter_lora_init(model.c, os.fsencode(path))
            if not adapter:
                raise LoadFailed(
                    Sentence(
                        "llama.cpp could not load the LoRA adapter {path}: it must be a GGUF file made for this model.",
                        path=path,
                    )
                )
            self._adapters.append(adapter)

    def apply(self, context: Context, scales: Sequence[float]) -> None:
        """Let ``context`` compute with these scales from now on; 0 leaves an adapter out."""
        used = [(adapter, scale) for adapter, scale in zip(self._adapters, scales, strict=True) if scale]
        handles = (ctypes.c_void_p * len(used))(*[ctypes.cast(adapter, ctypes.c_void_p).value for adapter, _ in used])
        pointers = ctypes.cast(handles, ctypes.POINTER(L.llama_adapter_lora_p_ctypes))
        L.llama_set_adapters_lora(context.c, pointers, len(used), (ctypes.c_float * len(used))(*[s for _, s in used]))


def _device_array(names: tuple[str, ...]) -> Any:
    """Return a NULL-terminated array of device handles, or None for llama.cpp's own choice."""
    if not names:
        return None
    # Workers first, as llama.cpp does: the output is on the last device, and its logits are many bytes.
    handles = handles_of(sorted(names, key=lambda name: not is_worker(name)))
    return (ctypes.c_void_p * (len(handles) + 1))(*handles, None)
