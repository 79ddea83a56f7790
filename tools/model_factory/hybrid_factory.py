"""Tiny hybrids with a prediction head (MTP): attention layers between layers with a recurrent state.

Each mostly says the next token id, but its state sometimes makes it say another one, so a wrong state shows in the
text. A head that "counts" proposes the next token id, whatever the hidden state, and is often right. A "random" head
proposes noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tools.model_factory.gguf_factory import Tensor
from tools.model_factory.recurrent_factory import N_EMBD, N_FF, N_VOCAB, noise, ones, weights, write_model

Head = Literal["random", "counts"]

# Layers after the first four are silent: the model says the same and takes longer.
N_LAYERS = 4
_N_HEADS, _HEAD = 2, 32
# Of layers with a state: the numbers of key and value heads, their size, and the width of the convolution before them.
_N_KEYS, _N_VALUES, _STATE, _KERNEL = 2, 4, 16, 4
_KEYS, _VALUES = _N_KEYS * _STATE, _N_VALUES * _STATE
_N_EXPERTS, _N_FF_EXPERT = 4, 32
# Of latent attention: the ranks of what is cached, and the width of what is rotated.
_RANK, _ROTATED = 32, 16
# How much the layers add to the embedding, and the scale of the logits.
_LOUD, _SURE = 1.0, 0.5


def qwen35(path: Path, head: Head = "counts", n_layers: int = N_LAYERS) -> Path:
    """Write a dense hybrid with gated delta nets; llama.cpp can keep snapshots of its state."""
    layers: list[Tensor] = []
    for layer in range(n_layers):
        loud = _LOUD if layer < N_LAYERS else 0.0
        layers += [*_qwen_mixer(layer, loud), *_feed_forward(layer, loud)]
    block = [*_gated_attention(n_layers, _loudness(head)), *_feed_forward(n_layers, _loudness(head))]
    values = _qwen_values() | _SECTIONS
    return _write(path, "qwen35", values, layers, [*block, *_nextn(head, n_layers)], n_layers)


def qwen35moe(path: Path, head: Head = "counts") -> Path:
    """Write ``qwen35`` with experts."""
    return _qwen_with_experts(path, "qwen35moe", _SECTIONS, head)


def qwen3next(path: Path, head: Head = "counts", n_layers: int = N_LAYERS) -> Path:
    """Write a hybrid of the generation before ``qwen35``; llama.cpp keeps no snapshots of its state."""
    return _qwen_with_experts(path, "qwen3next", {}, head, n_layers)


def nemotron_h_moe(path: Path, head: Head = "counts") -> Path:
    """Write a hybrid in which each layer is state space, attention or experts; its head has attention and experts."""
    kinds = ("state", "attention", "state", "experts")
    values = {
        "feed_forward_length": [N_FF if kind == "experts" else 0 for kind in kinds] + [0],
        "attention.head_count": _N_HEADS,
        "attention.head_count_kv": [int(kind == "attention") for kind in kinds] + [1],
        "attention.key_length": _HEAD,
        "attention.value_length": _HEAD,
        "attention.layer_norm_epsilon": 1e-5,
        "attention.layer_norm_rms_epsilon": 1e-5,
        **_state_values(),
        **_expert_values(),
        "expert_shared_count": 1,
        "expert_weights_norm": True,
        "expert_weights_scale": 1.0,
    }
    makers = {"state": _state_space, "attention": _attention, "experts": _ungated_experts}
    layers = [tensor for layer, kind in enumerate(kinds) for tensor in makers[kind](layer, _LOUD)]
    layers += [ones(f"blk.{layer}.attn_norm.weight", N_EMBD) for layer in range(N_LAYERS)]
    block = [*_attention(N_LAYERS, _loudness(head)), *_ungated_experts(N_LAYERS, _loudness(head)), *_nextn(head)]
    norms = [ones(f"blk.{N_LAYERS}.{name}.weight", N_EMBD) for name in (*_NORMS, "nextn.shared_head_norm")]
    return _write(path, "nemotron_h_moe", values, layers, [*block, *norms])


def bailingmoe3(path: Path, head: Head = "counts") -> Path:
    """Write a hybrid of Kimi delta attention and latent attention, with experts after the first layer."""
    is_recurrent = [layer % 2 == 0 for layer in range(N_LAYERS)]
    values = {
        "feed_forward_length": N_FF,
        "attention.head_count": _N_HEADS,
        "attention.head_count_kv": [int(not recurrent) for recurrent in is_recurrent] + [1],
        "attention.key_length": _RANK + _ROTATED,
        "attention.value_length": _RANK,
        "attention.key_length_mla": _HEAD,
        "attention.value_length_mla": _HEAD,
        "attention.kv_lora_rank": _RANK,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "rope.dimension_count": _ROTATED,
        "rope.freq_base": 10_000.0,
        "ssm.conv_kernel": _KERNEL,
        "kda.head_dim": _HEAD,
        "kda.gate_lower_bound": -5.0,
        **_expert_values(),
        "expert_shared_count": 1,
        "expert_gating_func": 2,
        "leading_dense_block_count": 1,
    }
    layers: list[Tensor] = []
    for layer, recurrent in enumerate(is_recurrent):
        layers += _kimi_delta(layer) if recurrent else _latent_attention(layer, _LOUD)
        layers += _experts(layer, _LOUD) if layer else _dense(layer, _LOUD)
    loud = _loudness(head)
    block = [*_latent_attention(N_LAYERS, loud), *_experts(N_LAYERS, loud), *_nextn(head)]
    block.append(ones(f"blk.{N_LAYERS}.layer_output_norm.weight", N_EMBD))
    norms = [
        ones(f"blk.{layer}.{name}.weight", N_EMBD)
        for layer in range(N_LAYERS + 1)
        for name in ("attn_norm", "ffn_norm")
    ]
    bias = [weights(f"blk.{layer}.exp_probs_b.bias", np.zeros(_N_EXPERTS)) for layer in range(1, N_LAYERS + 1)]
    return _write(path, "bailingmoe3", values, layers, [*block, *norms, *bias])


_SECTIONS = {"rope.dimension_sections": [4, 2, 2, 0]}
_NORMS = ("attn_norm", "post_attention_norm")


def _loudness(head: Head) -> float:
    """Return the scale of a head's layer: a head that counts uses only the token, so its layer is silent."""
    return _LOUD if head == "random" else 0.0


def _write(
    path: Path,
    architecture: str,
    values: dict[str, Any],
    layers: list[Tensor],
    block: list[Tensor],
    n_layers: int = N_LAYERS,
) -> Path:
    values = values | {"block_count": n_layers + 1, "nextn_predict_layers": 1}
    return write_model(path, architecture, values, [*layers, *block], tables=_counting_tables())


def _counting_tables() -> tuple[Tensor, Tensor]:
    """Return embeddings, and an output that maps each token's embedding to the next id."""
    rows = np.random.default_rng(5).standard_normal((N_VOCAB, N_EMBD), np.float32)
    return weights("token_embd.weight", rows), weights("output.weight", np.roll(rows, 1, axis=0) * np.float32(_SURE))


def _nextn(head: Head, n_layers: int = N_LAYERS) -> Iterator[Tensor]:
    """Yield the tensors by which a head combines a token with the hidden state before it."""
    name = f"blk.{n_layers}.nextn."
    yield ones(name + "enorm.weight", N_EMBD)
    yield ones(name + "hnorm.weight", N_EMBD)
    if head == "random":
        yield noise(name + "eh_proj.weight", 2 * N_EMBD, N_EMBD)
    else:
        yield weights(name + "eh_proj.weight", np.concatenate([np.eye(N_EMBD), np.zeros((N_EMBD, N_EMBD))], axis=1))


# -- metadata ----------------------------------------------------------------------------------------------------------


def _state_values() -> dict[str, Any]:
    return {
        "ssm.conv_kernel": _KERNEL,
        "ssm.inner_size": _VALUES,
        "ssm.state_size": _STATE,
        "ssm.time_step_rank": _N_VALUES,
        "ssm.group_count": _N_KEYS,
    }


def _expert_values() -> dict[str, Any]:
    return {
        "expert_count": _N_EXPERTS,
        "expert_used_count": 2,
        "expert_feed_forward_length": _N_FF_EXPERT,
        "expert_shared_feed_forward_length": _N_FF_EXPERT,
    }


def _qwen_values() -> dict[str, Any]:
    return _state_values() | {
        "feed_forward_length": N_FF,
        "attention.head_count": _N_HEADS,
        "attention.head_count_kv": 1,
        "attention.key_length": _HEAD,
        "attention.value_length": _HEAD,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "rope.dimension_count": _HEAD // 2,
        "rope.freq_base": 10_000.0,
        "full_attention_interval": 2,
    }


# -- layers ------------------------------------------------------------------------------------------------------------


def _qwen_with_experts(
    path: Path, architecture: str, added: dict[str, Any], head: Head, n_layers: int = N_LAYERS
) -> Path:
    is_old = architecture == "qwen3next"
    layers: list[Tensor] = []
    for layer in range(n_layers):
        loud = _LOUD if layer < N_LAYERS else 0.0
        layers += [*_qwen_mixer(layer, loud, is_old=is_old), *_experts(layer, loud, is_gated=True)]
    block = [*_gated_attention(n_layers, _loudness(head)), *_experts(n_layers, _loudness(head), is_gated=True)]
    norms = [ones(f"blk.{layer}.{name}.weight", N_EMBD) for layer in range(n_layers + 1) for name in _NORMS]
    values = _qwen_values() | _expert_values() | added
    return _write(path, architecture, values, layers, [*block, *_nextn(head, n_layers), *norms], n_layers)


def _qwen_mixer(layer: int, loud: float, *, is_old: bool = False) -> Iterator[Tensor]:
    return _gated_attention(layer, loud) if layer % 2 else _delta_net(layer, loud, is_old=is_old)


def _delta_net(layer: int, loud: float, *, is_old: bool) -> Iterator[Tensor]:
    name = f"blk.{layer}."
    yield noise(name + "attn_qkv.weight", N_EMBD, 2 * _KEYS + _VALUES)
    yield noise(name + "attn_gate.weight", N_EMBD, _VALUES)
    yield noise(name + "ssm_conv1d.weight", _KERNEL, 2 * _KEYS + _VALUES)
    yield noise(name + "ssm_dt.bias", _N_VALUES)
    yield _fading(name, (_N_VALUES,))
    if is_old:
        yield noise(name + "ssm_ba.weight", N_EMBD, 2 * _N_VALUES)
    else:
        yield noise(name + "ssm_beta.weight", N_EMBD, _N_VALUES)
        yield noise(name + "ssm_alpha.weight", N_EMBD, _N_VALUES)
    yield ones(name + "ssm_norm.weight", _STATE)
    yield _last(name + "ssm_out.weight", _VALUES, loud)


def _state_space(layer: int, loud: float) -> Iterator[Tensor]:
    """Yield the tensors of a Mamba 2 layer."""
    name = f"blk.{layer}."
    yield noise(name + "ssm_in.weight", N_EMBD, 2 * _VALUES + 2 * _KEYS + _N_VALUES)
    yield noise(name + "ssm_conv1d.weight", _KERNEL, _VALUES + 2 * _KEYS)
    yield noise(name + "ssm_conv1d.bias", _VALUES + 2 * _KEYS)
    yield noise(name + "ssm_dt.bias", _N_VALUES)
    yield _fading(name, (_N_VALUES, 1))
    yield weights(name + "ssm_d", np.ones((_N_VALUES, 1)))
    yield weights(name + "ssm_norm.weight", np.ones((_N_KEYS, _VALUES // _N_KEYS)))
    yield _last(name + "ssm_out.weight", _VALUES, loud)


def _kimi_delta(layer: int) -> Iterator[Tensor]:
    name = f"blk.{layer}."
    inner = _N_HEADS * _HEAD
    for kind in "qkv":
        yield noise(name + f"attn_{kind}.weight", N_EMBD, inner)
        yield noise(name + f"ssm_conv1d_{kind}.weight", _KERNEL, 1, inner, 1)
    yield noise(name + "ssm_f_a.weight", N_EMBD, inner)
    yield noise(name + "ssm_g_a.weight", N_EMBD, inner)
    yield noise(name + "ssm_beta.weight", N_EMBD, _N_HEADS)
    yield weights(name + "ssm_a", np.linspace(0.2, 1.0, _N_HEADS).reshape(_N_HEADS, 1))
    # Far below the sigmoid's middle, so that the state decays slowly.
    yield weights(name + "ssm_dt.bias", np.full(inner, -4.0))
    yield ones(name + "ssm_norm.weight", _HEAD)
    yield _last(name + "attn_output.weight", inner, _LOUD)


def _fading(name: str, shape: tuple[int, ...]) -> Tensor:
    """Return negative decay rates. Some are small, so that these heads remember."""
    return weights(name + "ssm_a", -np.geomspace(0.02, 1.0, _N_VALUES).reshape(shape))


def _attention(layer: int, loud: float) -> Iterator[Tensor]:
    name = f"blk.{layer}."
    yield noise(name + "attn_q.weight", N_EMBD, _N_HEADS * _HEAD)
    yield noise(name + "attn_k.weight", N_EMBD, _HEAD)
    yield noise(name + "attn_v.weight", N_EMBD, _HEAD)
    yield _last(name + "attn_output.weight", _N_HEADS * _HEAD, loud)


def _gated_attention(layer: int, loud: float) -> Iterator[Tensor]:
    name = f"blk.{layer}."
    yield noise(name + "attn_q.weight", N_EMBD, 2 * _N_HEADS * _HEAD)
    yield noise(name + "attn_k.weight", N_EMBD, _HEAD)
    yield noise(name + "attn_v.weight", N_EMBD, _HEAD)
    yield _last(name + "attn_output.weight", _N_HEADS * _HEAD, loud)
    yield ones(name + "attn_q_norm.weight", _HEAD)
    yield ones(name + "attn_k_norm.weight", _HEAD)


def _latent_attention(layer: int, loud: float) -> Iterator[Tensor]:
    name = f"blk.{layer}."
    yield noise(name + "attn_q.weight", N_EMBD, _N_HEADS * _HEAD)
    yield noise(name + "attn_kv_a_mqa.weight", N_EMBD, _RANK + _ROTATED)
    yield ones(name + "attn_kv_a_norm.weight", _RANK)
    yield noise(name + "attn_k_b.weight", _HEAD - _ROTATED, _RANK, _N_HEADS)
    yield noise(name + "attn_v_b.weight", _RANK, _HEAD, _N_HEADS)
    yield noise(name + "attn_gate.weight", N_EMBD, _N_HEADS)
    yield _last(name + "attn_output.weight", _N_HEADS * _HEAD, loud)


def _feed_forward(layer: int, loud: float) -> Iterator[Tensor]:
    yield from _dense(layer, loud)
    for norm in _NORMS:
        yield ones(f"blk.{layer}.{norm}.weight", N_EMBD)


def _dense(layer: int, loud: float) -> Iterator[Tensor]:
    name = f"blk.{layer}."
    yield noise(name + "ffn_gate.weight", N_EMBD, N_FF)
    yield noise(name + "ffn_up.weight", N_EMBD, N_FF)
    yield _last(name + "ffn_down.weight", N_FF, loud)


def _experts(layer: int, loud: float, *, is_gated: bool = False) -> Iterator[Tensor]:
    """Yield experts and one that all tokens share, which is scaled by a gate if ``is_gated``."""
    name = f"blk.{layer}."
    yield noise(name + "ffn_gate_inp.weight", N_EMBD, _N_EXPERTS, scale=1.0)
    if is_gated:
        yield noise(name + "ffn_gate_inp_shexp.weight", N_EMBD)
    for kind in ("gate", "up"):
        yield noise(name + f"ffn_{kind}_exps.weight", N_EMBD, _N_FF_EXPERT, _N_EXPERTS)
        yield noise(name + f"ffn_{kind}_shexp.weight", N_EMBD, _N_FF_EXPERT)
    yield _last(name + "ffn_down_exps.weight", _N_FF_EXPERT, loud, _N_EXPERTS)
    yield _last(name + "ffn_down_shexp.weight", _N_FF_EXPERT, loud)


def _ungated_experts(layer: int, loud: float) -> Iterator[Tensor]:
    """Yield experts of two matrices each."""
    name = f"blk.{layer}."
    yield weights(name + "exp_probs_b.bias", np.zeros(_N_EXPERTS))
    for tensor in _experts(layer, loud):
        if "ffn_gate_exps" not in tensor.name and "ffn_gate_shexp" not in tensor.name:
            yield tensor


def _last(name: str, width: int, loud: float, *copies: int) -> Tensor:
    """Return a layer's last matrix, whose result is added to the residual stream."""
    return noise(name, width, N_EMBD, *copies, scale=loud * width**-0.5)
