"""Models that turn texts into vectors, with random weights and Ember's vocabulary."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import gguf

from tools.model_factory.gguf_factory import EMBER_DRAFT, MetadataEntry, Tensor, metadata_of, write
from tools.model_factory.recurrent_factory import N_VOCAB, noise, ones, weights

_POOLINGS = {"none": 0, "mean": 1, "cls": 2, "last": 3, "rank": 4}


@dataclass(frozen=True)
class BertShape:
    """The sizes of an encoder; those of bge-small are (384, 1536, 12, 12, 512)."""

    n_embd: int = 64
    n_ff: int = 128
    n_layers: int = 2
    n_heads: int = 2
    n_ctx: int = 256


def bert(path: Path, pooling: str = "mean", shape: BertShape = BertShape()) -> Path:
    """Write an encoder, or with pooling ``rank`` a reranker, whose head gives one score."""
    values = {
        "context_length": shape.n_ctx,
        "embedding_length": shape.n_embd,
        "block_count": shape.n_layers,
        "feed_forward_length": shape.n_ff,
        "attention.head_count": shape.n_heads,
        "vocab_size": N_VOCAB,
        "pooling_type": _POOLINGS[pooling],
    }
    number = gguf.GGUFValueType.UINT32
    entries = [entry for entry in metadata_of(EMBER_DRAFT) if not entry.key.startswith(("llama.", "general."))]
    entries.append(MetadataEntry("general.architecture", "bert", gguf.GGUFValueType.STRING))
    entries += [MetadataEntry(f"bert.{key}", value, number) for key, value in values.items()]
    entries.append(MetadataEntry("bert.attention.layer_norm_epsilon", 1e-12, gguf.GGUFValueType.FLOAT32))
    entries.append(MetadataEntry("bert.attention.causal", False, gguf.GGUFValueType.BOOL))
    entries.append(MetadataEntry("tokenizer.ggml.token_type_count", 2, number))
    tensors = [
        noise("token_embd.weight", shape.n_embd, N_VOCAB, scale=1.0),
        noise("token_types.weight", shape.n_embd, 2, scale=0.1),
        noise("position_embd.weight", shape.n_embd, shape.n_ctx, scale=0.3),
        *_norm("token_embd_norm", shape.n_embd),
        *(tensor for layer in range(shape.n_layers) for tensor in _layer(f"blk.{layer}.", shape)),
    ]
    if pooling == "rank":
        tensors.append(noise("cls.output.weight", shape.n_embd, 1, scale=1.0))
    return write(path, entries, tensors)


def _layer(name: str, shape: BertShape) -> Iterator[Tensor]:
    for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
        yield noise(f"{name}{part}.weight", shape.n_embd, shape.n_embd)
    yield from _norm(name + "attn_output_norm", shape.n_embd)
    yield noise(name + "ffn_up.weight", shape.n_embd, shape.n_ff)
    yield noise(name + "ffn_down.weight", shape.n_ff, shape.n_embd)
    yield from _norm(name + "layer_output_norm", shape.n_embd)


def _norm(name: str, size: int) -> tuple[Tensor, Tensor]:
    return ones(f"{name}.weight", size), weights(f"{name}.bias", noise(f"{name}.bias", size, scale=0.0).data())
