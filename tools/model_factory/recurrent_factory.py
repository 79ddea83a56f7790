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
# Of DeepSeek V4: the values of a key, those of its index, by how much each layer compresses, and parallel residuals.
_LATENT, _INDEX, _RATIOS, _STREAMS = 128, 128, (0, 4, 128, 4), 4


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


def llama4(path: Path) -> Path:
    """Write a model in whose layers but the last a token sees only those behind the last multiple of 8,192 tokens."""
    values = {
        "context_length": 16_384,
        "feed_forward_length": N_FF,
        "expert_feed_forward_length": N_FF,
        "expert_count": 1,
        "expert_used_count": 1,
        "interleave_moe_layer_step": 0,
        "attention.head_count": _N_HEADS,
        "attention.head_count_kv": 1,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "rope.freq_base": 10_000.0,
        "rope.dimension_count": N_EMBD // _N_HEADS,
    }
    layers = [tensor for layer in range(N_LAYERS) for tensor in _llama4_layer(f"blk.{layer}.")]
    return write_model(path, "llama4", values, layers)


def deepseek4(path: Path) -> Path:
    """Write a model whose layers keep the last tokens, and older ones compressed: none of them, by 4, by 128, and by 4.

    llama.cpp keeps apart what each sequence has.
    """
    values = {
        "feed_forward_length": N_FF,
        "expert_feed_forward_length": N_FF,
        "expert_count": 4,
        "expert_used_count": 2,
        "expert_shared_count": 1,
        "expert_gating_func": 4,  # sqrt of softplus
        "expert_weights_norm": True,
        "expert_weights_scale": 1.0,
        "swiglu_clamp_exp": 10.0,
        "attention.head_count": _N_HEADS,
        "attention.head_count_kv": 1,
        "attention.key_length": _LATENT,
        "attention.value_length": _LATENT,
        "attention.q_lora_rank": N_EMBD,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "attention.sliding_window": 128,
        "attention.indexer.head_count": 2,
        "attention.indexer.key_length": _INDEX,
        "attention.indexer.top_k": 64,
        "attention.output_group_count": 1,
        "attention.output_lora_rank": N_EMBD,
        "attention.compress_ratios": list(_RATIOS),
        "attention.compress_rope_freq_base": 10_000.0,
        "hyper_connection.count": _STREAMS,
        "hyper_connection.sinkhorn_iterations": 4,
        "hyper_connection.epsilon": 1e-6,
        "hash_layer_count": 0,
        "rope.dimension_count": 64,
        "rope.freq_base": 10_000.0,
    }
    head = [
        noise("output_hc_fn.weight", _STREAMS * N_EMBD, _STREAMS),
        ones("output_hc_base.weight", _STREAMS),
        ones("output_hc_scale.weight", 1),
    ]
    layers = [tensor for layer, ratio in enumerate(_RATIOS) for tensor in _deepseek4_layer(f"blk.{layer}.", ratio)]
    return write_model(path, "deepseek4", values, [*head, *layers])


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


def _llama4_layer(name: str) -> Iterator[Tensor]:
    yield ones(name + "attn_norm.weight", N_EMBD)
    yield from _projections(name)
    yield from _feed_forward(name)


def _deepseek4_layer(name: str, ratio: int) -> Iterator[Tensor]:
    yield ones(name + "attn_norm.weight", N_EMBD)
    yield ones(name + "attn_sinks.weight", _N_HEADS)
    yield noise(name + "attn_q_a.weight", N_EMBD, N_EMBD)
    yield ones(name + "attn_q_a_norm.weight", N_EMBD)
    yield noise(name + "attn_q_b.weight", N_EMBD, _N_HEADS * _LATENT)
    yield noise(name + "attn_kv.weight", N_EMBD, _LATENT)
    yield ones(name + "attn_kv_a_norm.weight", _LATENT)
    yield noise(name + "attn_output_a.weight", _N_HEADS * _LATENT, N_EMBD)
    yield noise(name + "attn_output_b.weight", N_EMBD, N_EMBD)
    for part in ("attn", "ffn"):
        yield noise(name + f"hc_{part}_fn.weight", _STREAMS * N_EMBD, (2 + _STREAMS) * _STREAMS)
        yield ones(name + f"hc_{part}_base.weight", (2 + _STREAMS) * _STREAMS)
        yield ones(name + f"hc_{part}_scale.weight", 3)
    if ratio:
        yield from _compressor(name + "attn_compressor", _LATENT, ratio)
    if ratio == 4:
        yield noise(name + "indexer.proj.weight", N_EMBD, 2)
        yield noise(name + "indexer.attn_q_b.weight", N_EMBD, 2 * _INDEX)
        yield from _compressor(name + "indexer_compressor", _INDEX, ratio)
    yield noise(name + "ffn_gate_inp.weight", N_EMBD, 4)
    yield ones(name + "exp_probs_b.bias", 4)
    yield ones(name + "ffn_norm.weight", N_EMBD)
    for part, shape in (("gate", (N_EMBD, N_FF)), ("up", (N_EMBD, N_FF)), ("down", (N_FF, N_EMBD))):
        yield noise(name + f"ffn_{part}_exps.weight", *shape, 4)
        yield noise(name + f"ffn_{part}_shexp.weight", *shape)


def _compressor(name: str, width: int, ratio: int) -> Iterator[Tensor]:
    n_overlapping = 2 if ratio == 4 else 1
    yield noise(name + "_kv.weight", N_EMBD, n_overlapping * width)
    yield noise(name + "_gate.weight", N_EMBD, n_overlapping * width)
    yield noise(name + "_ape.weight", n_overlapping * width, ratio)
    yield ones(name + "_norm.weight", width)


def _projections(name: str) -> Iterator[Tensor]:
    n_head = N_EMBD // _N_HEADS
    yield noise(name + "attn_q.weight", N_EMBD, N_EMBD)
    yield noise(name + "attn_k.weight", N_EMBD, n_head)
    yield noise(name + "attn_v.weight", N_EMBD, n_head)
    yield noise(name + "attn_output.weight", N_EMBD, N_EMBD)


def _attention(name: str) -> Iterator[Tensor]:
    n_head = N_EMBD // _N_HEADS
    yield from _projections(name)
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
