"""Tiny models with a recurrent state or a sliding window, random weights and Ember's vocabulary.

What they say means nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from tools.model_factory.gguf_factory import EMBER_DRAFT, MetadataEntry, Tensor, metadata_of, write

N_VOCAB, N_EMBD, N_FF, N_LAYERS, N_CTX = 4096, 64, 128, 4, 1024
_INNER, _STATE, _RANK, _KERNEL = 2 * N_EMBD, 16, 4, 4
_N_HEADS = 2


def mamba(path: Path) -> Path:
    """Write a model of state-space layers only; llama.cpp keeps no snapshots of such a state."""
    values = {
        "feed_forward_length": 0,
        "attention.head_count": 0,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "ssm.conv_kernel": _KERNEL,
        "ssm.inner_size": _INNER,
        "ssm.state_size": _STATE,
        "ssm.time_step_rank": _RANK,
    }
    return write_model(path, "mamba", values, [tensor for layer in range(N_LAYERS) for tensor in _mamba_layer(layer)])


def lfm2(path: Path) -> Path:
    """Write a hybrid: short convolutions and attention in turns; llama.cpp can keep snapshots of its state."""
    values = {
        "feed_forward_length": N_FF,
        "attention.head_count": _N_HEADS,
        "attention.head_count_kv": [0 if _is_convolution(layer) else 1 for layer in range(N_LAYERS)],
        "attention.layer_norm_rms_epsilon": 1e-5,
        "rope.freq_base": 10_000.0,
        "shortconv.l_cache": 3,
    }
    layers = [tensor for layer in range(N_LAYERS) for tensor in _lfm2_layer(layer)]
    return write_model(path, "lfm2", values, layers, norm="token_embd_norm.weight")


def gemma3(path: Path, window: int = 32) -> Path:
    """Write a model in which every layer but the last attends only to the last ``window`` tokens."""
    values = {
        "feed_forward_length": N_FF,
        "attention.head_count": _N_HEADS,
        "attention.head_count_kv": 1,
        "attention.key_length": N_EMBD // _N_HEADS,
        "attention.value_length": N_EMBD // _N_HEADS,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "attention.sliding_window": window,
        "attention.sliding_window_pattern": N_LAYERS,
        "rope.freq_base": 10_000.0,
    }
    return write_model(path, "gemma3", values, [tensor for layer in range(N_LAYERS) for tensor in _gemma3_layer(layer)])


def _is_convolution(layer: int) -> bool:
    return layer % 2 == 0


def _mamba_layer(layer: int) -> Iterator[Tensor]:
    name = f"blk.{layer}."
    yield ones(name + "attn_norm.weight", N_EMBD)
    yield noise(name + "ssm_in.weight", N_EMBD, 2 * _INNER)
    yield noise(name + "ssm_conv1d.weight", _KERNEL, _INNER)
    yield noise(name + "ssm_conv1d.bias", _INNER)
    yield noise(name + "ssm_x.weight", _INNER, _RANK + 2 * _STATE)
    yield noise(name + "ssm_dt.weight", _RANK, _INNER)
    yield noise(name + "ssm_dt.bias", _INNER)
    # Negative decay rates, some of them small, so that the state remembers.
    fading = -np.tile(np.geomspace(0.02, 2.0, _STATE, dtype=np.float32), (_INNER, 1))
    yield weights(name + "ssm_a", fading)
    yield ones(name + "ssm_d", _INNER)
    yield noise(name + "ssm_out.weight", _INNER, N_EMBD)


def _lfm2_layer(layer: int) -> Iterator[Tensor]:
    name = f"blk.{layer}."
    yield ones(name + "attn_norm.weight", N_EMBD)
    if _is_convolution(layer):
        yield noise(name + "shortconv.conv.weight", 3, N_EMBD)
        yield noise(name + "shortconv.in_proj.weight", N_EMBD, 3 * N_EMBD)
        yield noise(name + "shortconv.out_proj.weight", N_EMBD, N_EMBD)
    else:
        yield from _attention(name)
    yield from _feed_forward(name)


def _gemma3_layer(layer: int) -> Iterator[Tensor]:
    name = f"blk.{layer}."
    yield ones(name + "attn_norm.weight", N_EMBD)
    yield from _attention(name)
    yield ones(name + "post_attention_norm.weight", N_EMBD)
    yield from _feed_forward(name)
    yield ones(name + "post_ffw_norm.weight", N_EMBD)


def _attention(name: str) -> Iterator[Tensor]:
    n_head = N_EMBD // _N_HEADS
    yield noise(name + "attn_q.weight", N_EMBD, N_EMBD)
    yield noise(name + "attn_k.weight", N_EMBD, n_head)
    yield noise(name + "attn_v.weight", N_EMBD, n_head)
    yield noise(name + "attn_output.weight", N_EMBD, N_EMBD)
    yield ones(name + "attn_q_norm.weight", n_head)
    yield ones(name + "attn_k_norm.weight", n_head)


def _feed_forward(name: str) -> Iterator[Tensor]:
    yield ones(name + "ffn_norm.weight", N_EMBD)
    yield noise(name + "ffn_gate.weight", N_EMBD, N_FF)
    yield noise(name + "ffn_up.weight", N_EMBD, N_FF)
    yield noise(name + "ffn_down.weight", N_FF, N_EMBD)


def write_model(
    path: Path,
    architecture: str,
    values: dict[str, Any],
    layers: list[Tensor],
    norm: str = "output_norm.weight",
    tables: tuple[Tensor, Tensor] | None = None,
) -> Path:
    """Write a model of ``layers``; ``values`` are metadata by key without the prefix.

    ``tables`` are its embeddings and its output. The output is a matrix of its own, because a model of random weights
    with tied embeddings repeats one token.
    """
    shared = {"context_length": N_CTX, "embedding_length": N_EMBD, "block_count": N_LAYERS, "vocab_size": N_VOCAB}
    entries = [entry for entry in metadata_of(EMBER_DRAFT) if not entry.key.startswith(("llama.", "general."))]
    entries.append(MetadataEntry("general.architecture", architecture, gguf.GGUFValueType.STRING))
    entries += [_entry(f"{architecture}.{key}", value) for key, value in (shared | values).items()]
    random = (
        noise("token_embd.weight", N_EMBD, N_VOCAB, scale=1.0),
        noise("output.weight", N_EMBD, N_VOCAB, scale=0.5),
    )
    return write(path, entries, [*(tables or random), ones(norm, N_EMBD), *layers])


def _entry(key: str, value: Any) -> MetadataEntry:
    kinds = {
        bool: gguf.GGUFValueType.BOOL,
        int: gguf.GGUFValueType.UINT32,
        float: gguf.GGUFValueType.FLOAT32,
    }
    if isinstance(value, list):
        return MetadataEntry(key, value, gguf.GGUFValueType.ARRAY, gguf.GGUFValueType.INT32)
    return MetadataEntry(key, value, kinds[type(value)])


def noise(name: str, *shape: int, scale: float | None = None) -> Tensor:
    """Return normally distributed weights that keep the norm of their input, the same in each run."""
    noise = np.random.default_rng(sum(name.encode())).standard_normal(shape[::-1], np.float32)
    return weights(name, noise * np.float32(shape[0] ** -0.5 if scale is None else scale))


def ones(name: str, size: int) -> Tensor:
    """Return the weights of a norm that scales nothing."""
    return weights(name, np.ones(size, np.float32))


def weights(name: str, values: np.ndarray) -> Tensor:
    """These weights, F32."""
    data = functools.partial(np.ascontiguousarray, values, np.float32)
    return Tensor(name, gguf.GGMLQuantizationType.F32, values.shape[::-1], data)
