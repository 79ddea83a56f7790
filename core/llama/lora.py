"""LoRA adapters: small matrices that change what a model computes, each by a scale."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from typing import Any

from core.llama.context import Context
from core.llama.library import L
from core.llama.model import Model
from core.values.errors import LoadFailed
from models.formatting.sentence import Sentence


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
