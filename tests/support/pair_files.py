"""Files that could draft for Ember and some that cannot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import gguf

from tools.model_factory.gguf_factory import EMBER_DRAFT, MetadataEntry, Tensor, metadata_of, reader_of, write


def other_words(path: Path, changed: Mapping[int, str]) -> Path:
    """The small model with other texts for some token ids; it loads, and must not draft."""
    entries = []
    for entry in metadata_of(EMBER_DRAFT):
        if entry.key == "tokenizer.ggml.tokens":
            tokens = list(entry.value)
            for token, text in changed.items():
                tokens[token] = text
            entry = replace(entry, value=tokens)
        entries.append(entry)
    return _written(path, entries)


def decoder_for_vectors(path: Path) -> Path:
    """The small model as if it had been trained on to give vectors, as Qwen3-Embedding was; it must not draft."""
    last = MetadataEntry("llama.pooling_type", 3, gguf.GGUFValueType.UINT32)
    return _written(path, [*metadata_of(EMBER_DRAFT), last])


def _written(path: Path, entries: list[MetadataEntry]) -> Path:
    tensors = [
        Tensor(tensor.name, tensor.tensor_type, tuple(int(n) for n in tensor.shape), lambda tensor=tensor: tensor.data)
        for tensor in reader_of(EMBER_DRAFT).tensors
    ]
    return write(path, entries, tensors)
