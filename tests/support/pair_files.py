"""Files that could draft for Ember and some that cannot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tools.model_factory.gguf_factory import EMBER_DRAFT, Tensor, metadata_of, reader_of, write


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
    tensors = [
        Tensor(tensor.name, tensor.tensor_type, tuple(int(n) for n in tensor.shape), lambda tensor=tensor: tensor.data)
        for tensor in reader_of(EMBER_DRAFT).tensors
    ]
    return write(path, entries, tensors)
