"""LoRA adapters for Ember and other models, with random matrices."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

from tools.model_factory.gguf_factory import EMBER, MetadataEntry, reader_of, write
from tools.model_factory.recurrent_factory import weights

_RANK = 4


def lora(path: Path, seed: int = 1, source: Path = EMBER) -> Path:
    """Write an adapter of each layer's query matrix, strong enough to change the model's text."""
    text, number, reader = gguf.GGUFValueType.STRING, gguf.GGUFValueType.FLOAT32, reader_of(source)
    entries = [
        MetadataEntry("general.architecture", reader.fields["general.architecture"].contents(), text),
        MetadataEntry("general.type", "adapter", text),
        MetadataEntry("adapter.type", "lora", text),
        MetadataEntry("adapter.lora.alpha", float(_RANK), number),
    ]
    noise = np.random.default_rng(seed)
    tensors = []
    for tensor in reader.tensors:
        if tensor.name.endswith("attn_q.weight"):
            n_in, n_out = (int(size) for size in tensor.shape)
            tensors.append(
                weights(f"{tensor.name}.lora_a", noise.standard_normal((_RANK, n_in), np.float32) / n_in**0.5)
            )
            tensors.append(weights(f"{tensor.name}.lora_b", noise.standard_normal((n_out, _RANK), np.float32)))
    return write(path, entries, tensors)
