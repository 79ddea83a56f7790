"""Makes models that carry prediction heads, and heads in files of their own, out of Ember and of nothing.

``mtp_ember`` is Ember in the clothes of GLM-4.5 (the same text, whose rotary embedding pairs other columns) with one
multi-token prediction layer behind it. ``counter`` is a model whose every token is followed by the next token id, so
that a head can be made which is always right. ``eagle_head`` is an EAGLE-3 head in a file of its own.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import gguf
import numpy as np

from tests.support.gguf_factory import EMBER, Entry, Tensor, cached_file, metadata_of, reader_of, write

N_LAYERS, WIDTH, N_HEADS, N_KV_HEADS, HEAD_WIDTH, N_FEED, N_VOCAB = 6, 384, 6, 3, 64, 1024, 4096
_N_EXPERTS, _EXPERT_WIDTH = 2, 64
_F32 = gguf.GGMLQuantizationType.F32
# How far the most likely token of a counter is ahead: about 4 of 5 samples at temperature 1 are the next number.
_COUNTER_SCALE = 0.5
Table = Mapping[int, int]
Kind = Literal["random", "table", "counter"]


def mtp_ember(path: Path, table: Table | None = None, left_out: str = "") -> Path:
    """Ember with an MTP layer that proposes ``table[token]`` after each token, or anything where there is no table.

    Of the MTP layer the tensor ``left_out`` is missing.
    """
    tensors = [_as_glm(tensor) for tensor in reader_of(EMBER).tensors]
    head = _mtp_layer(N_LAYERS, _random_projection() if table is None else _token_projection(table), table is None)
    head = [tensor for tensor in head if not left_out or not tensor.name.endswith(left_out)]
    return write(path, _glm_metadata(N_LAYERS + 1), tensors + head)


def mtp_alone(path: Path) -> Path:
    """The MTP layer and the tables of Ember in a file of its own, without the layers that answer."""
    tensors = [_as_glm(tensor) for tensor in reader_of(EMBER).tensors if not tensor.name.startswith("blk.")]
    return write(path, _glm_metadata(N_LAYERS + 1), tensors + _mtp_layer(N_LAYERS, _random_projection(), True))


def mtp_counter(path: Path, n_layers: int = 1) -> Path:
    """A model that counts, with an MTP layer that counts as well: always right."""
    identity = np.concatenate([np.eye(WIDTH), np.zeros((WIDTH, WIDTH))], axis=1).astype(np.float32)
    layers = [tensor for layer in range(n_layers) for tensor in _dense_layer(layer, is_silent=True)]
    tensors = [*_counter_tables(1), *layers, *_mtp_layer(n_layers, identity, is_noisy=False)]
    return write(path, _glm_metadata(n_layers + 1), tensors)


def cached_mtp_counter(n_layers: int = 1) -> Path:
    """The counter with a head in the project's cache folder, made when it is not there yet."""
    return cached_file(f"mtp-counter-{n_layers}.gguf", lambda path: mtp_counter(path, n_layers))


def counter(path: Path, n_layers: int = 4, step: int = 1) -> Path:
    """The model that counts in steps, as a llama without a head; with step 0 it says the same for ever."""
    layers = [
        replace(tensor, name=tensor.name.replace("post_attention_norm", "ffn_norm"))
        for layer in range(n_layers)
        for tensor in _dense_layer(layer, is_silent=True)
    ]
    changed = {"llama.block_count": n_layers, "general.file_type": 0}
    entries = [replace(entry, value=changed.get(entry.key, entry.value)) for entry in metadata_of(EMBER)]
    return write(path, entries, [*_counter_tables(step), *layers])


def eagle_head(
    path: Path,
    kind: Kind = "random",
    table: Table | None = None,
    *,
    layers: tuple[int, ...] = (0, 1, 3),
    target_width: int = WIDTH,
    has_tables: bool = False,
    n_vocab: int | None = None,
    step: int = 1,
    ids: Sequence[int] | None = None,
    left_out: str = "",
    changed: Mapping[str, Any] | None = None,
) -> Path:
    """An EAGLE-3 head for Ember or the counter.

    A "random" one knows nothing. "table" proposes ``table[token]`` two tokens later. "counter" is right with its first
    token for the model that counts in steps of ``step``, and with all of them where that is 0. Without ``has_tables``
    it uses the target's embeddings and output. ``ids`` are the tokens that it knows how to say (its d2t table).
    The tensor ``left_out`` is missing, and metadata is ``changed``, by key without the prefix.
    """
    fc = np.zeros((WIDTH, len(layers) * target_width), np.float32)
    if kind == "table":
        fc[:, :WIDTH] = _table_map(table or {}, _embeddings())
    elif kind == "counter":
        fc[:, :WIDTH] = np.eye(WIDTH)
    else:
        fc[:] = _noise(7, fc.shape, 0.05)
    tensors = [_tensor("fc.weight", fc), _ones("output_norm.weight")]
    if kind == "table":
        tensors[1] = _tensor("output_norm.weight", _weights_of("output_norm.weight"))
    if kind == "counter":
        tensors += _counter_tables(2 * step)[:2]
    elif has_tables:
        tensors += [_copied("token_embd.weight"), replace(_copied("token_embd.weight"), name="output.weight")]
    if ids is not None:
        tensors = [_rows_of(tensor, len(ids)) if tensor.name == "output.weight" else tensor for tensor in tensors]
        tensors.append(_ids(ids))
    tensors += _eagle_layer(is_silent=kind != "random")
    tensors = [tensor for tensor in tensors if tensor.name != left_out]
    return write(path, _eagle_metadata(layers, target_width, n_vocab, changed or {}), tensors)


# -- tensors ----------------------------------------------------------------------------------------------------


def _tensor(name: str, weights: np.ndarray) -> Tensor:
    weights = np.ascontiguousarray(weights, np.float32)
    return Tensor(name, _F32, weights.shape[::-1], lambda: weights)


def _small(name: str, weights: np.ndarray) -> Tensor:
    """A matrix in 8 bits: what is silent or knows nothing needs no more."""
    type_ = gguf.GGMLQuantizationType.Q8_0
    return Tensor(name, type_, weights.shape[::-1], lambda: gguf.quants.quantize(weights, type_))


def _ids(ids: Sequence[int]) -> Tensor:
    """Which token of the target each row of the output stands for."""
    return Tensor("d2t", gguf.GGMLQuantizationType.I64, (len(ids),), lambda: np.array(ids, np.int64))


def _rows_of(tensor: Tensor, n_rows: int) -> Tensor:
    """The first rows of a matrix."""
    return replace(tensor, shape=(tensor.shape[0], n_rows), data=lambda: tensor.data()[:n_rows])


def _ones(name: str, size: int = WIDTH) -> Tensor:
    return _tensor(name, np.ones(size))


def _noise(seed: int, shape: tuple[int, ...], scale: float) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def _source(name: str) -> gguf.ReaderTensor:
    return next(tensor for tensor in reader_of(EMBER).tensors if tensor.name == name)


def _weights_of(name: str) -> np.ndarray:
    tensor = _source(name)
    return gguf.quants.dequantize(tensor.data, tensor.tensor_type)


def _copied(name: str) -> Tensor:
    tensor = _source(name)
    return Tensor(name, tensor.tensor_type, tuple(int(n) for n in tensor.shape), lambda: tensor.data)


@functools.cache
def _embeddings() -> np.ndarray:
    return _weights_of("token_embd.weight")


def _as_glm(tensor: gguf.ReaderTensor) -> Tensor:
    """One of Ember's tensors under its name in GLM-4.5, with queries and keys in the order of its rotation."""
    made = _copied(tensor.name)
    if re.search(r"attn_[qk]\.weight", tensor.name):
        return replace(made, data=lambda: _half_split(tensor.data))
    return replace(made, name=made.name.replace("ffn_norm", "post_attention_norm"))


def _half_split(rows: np.ndarray) -> np.ndarray:
    """Rows of each head from pairs that lie side by side to pairs that lie half a head apart."""
    heads = rows.reshape(-1, HEAD_WIDTH // 2, 2, rows.shape[-1])
    return np.ascontiguousarray(heads.transpose(0, 2, 1, 3)).reshape(rows.shape)


def _dense_layer(layer: int, *, is_silent: bool) -> list[Tensor]:
    """A layer with the sizes of Ember's; a silent one passes its input on."""
    loud = 0.0 if is_silent else 0.05
    shapes = {
        "attn_q": (N_HEADS * HEAD_WIDTH, WIDTH),
        "attn_k": (N_KV_HEADS * HEAD_WIDTH, WIDTH),
        "attn_v": (N_KV_HEADS * HEAD_WIDTH, WIDTH),
        "attn_output": (WIDTH, N_HEADS * HEAD_WIDTH),
        "ffn_gate": (N_FEED, WIDTH),
        "ffn_up": (N_FEED, WIDTH),
        "ffn_down": (WIDTH, N_FEED),
    }
    return [
        _ones(f"blk.{layer}.attn_norm.weight"),
        _ones(f"blk.{layer}.post_attention_norm.weight"),
        *(
            _small(f"blk.{layer}.{name}.weight", _noise(layer, shape, loud if name in _LAST else 0.05))
            for name, shape in shapes.items()
        ),
    ]


_LAST = ("attn_output", "ffn_down")


def _mtp_layer(layer: int, projection: np.ndarray, is_noisy: bool) -> list[Tensor]:
    """A prediction layer: its projection of (token, hidden state), and a layer of experts that may be silent."""
    loud = 0.05 if is_noisy else 0.0
    attention = [tensor for tensor in _dense_layer(layer, is_silent=not is_noisy) if "ffn" not in tensor.name]
    experts = {"gate": (_EXPERT_WIDTH, WIDTH), "up": (_EXPERT_WIDTH, WIDTH), "down": (WIDTH, _EXPERT_WIDTH)}
    tensors = [
        _tensor(f"blk.{layer}.ffn_gate_inp.weight", _noise(layer, (_N_EXPERTS, WIDTH), 1.0)),
        _tensor(f"blk.{layer}.exp_probs_b.bias", np.zeros(_N_EXPERTS)),
        _tensor(f"blk.{layer}.nextn.eh_proj.weight", projection),
        _ones(f"blk.{layer}.nextn.enorm.weight"),
        _ones(f"blk.{layer}.nextn.hnorm.weight"),
    ]
    for name, shape in experts.items():
        scale = loud if name == "down" else 0.05
        tensors.append(_tensor(f"blk.{layer}.ffn_{name}_exps.weight", _noise(layer, (_N_EXPERTS, *shape), scale)))
        tensors.append(_tensor(f"blk.{layer}.ffn_{name}_shexp.weight", _noise(layer, shape, scale)))
    return attention + tensors


def _random_projection() -> np.ndarray:
    return _noise(3, (WIDTH, 2 * WIDTH), 0.05)


def _token_projection(table: Table) -> np.ndarray:
    """Looks at the token alone: whatever was hidden, ``table[token]`` is what comes next."""
    return np.concatenate([_table_map(table, _normalised(_embeddings())), np.zeros((WIDTH, WIDTH))], axis=1)


def _table_map(table: Table, inputs: np.ndarray) -> np.ndarray:
    """The least-squares map from each token's input to what Ember's output reads as ``table[token]``."""
    tokens = list(table)[: WIDTH - 32]
    outputs = _normalised(_embeddings()[[table[token] for token in tokens]] / _weights_of("output_norm.weight"))
    solution, *_ = np.linalg.lstsq(inputs[tokens], outputs, rcond=None)
    return solution.T.astype(np.float32)


def _normalised(rows: np.ndarray) -> np.ndarray:
    return rows / np.sqrt((rows**2).mean(axis=-1, keepdims=True) + 1e-5)


def _counter_tables(ahead: int) -> list[Tensor]:
    """Embeddings on the unit sphere, and an output that reads token ``x`` as ``x + ahead``."""
    rows = _noise(5, (N_VOCAB, WIDTH), 1.0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return [
        _tensor("token_embd.weight", rows),
        _tensor("output.weight", np.roll(rows, ahead, axis=0) * _COUNTER_SCALE),
        _ones("output_norm.weight"),
    ]


def _eagle_layer(*, is_silent: bool) -> list[Tensor]:
    loud = 0.0 if is_silent else 0.05
    shapes = {
        "attn_q": (N_HEADS * HEAD_WIDTH, 2 * WIDTH),
        "attn_k": (N_KV_HEADS * HEAD_WIDTH, 2 * WIDTH),
        "attn_v": (N_KV_HEADS * HEAD_WIDTH, 2 * WIDTH),
        "attn_output": (WIDTH, N_HEADS * HEAD_WIDTH),
        "ffn_gate": (N_FEED, WIDTH),
        "ffn_up": (N_FEED, WIDTH),
        "ffn_down": (WIDTH, N_FEED),
    }
    norms = [_ones(f"blk.0.{name}.weight") for name in ("attn_norm", "attn_norm_2", "ffn_norm")]
    return norms + [
        _small(f"blk.0.{name}.weight", _noise(11, shape, loud if name in _LAST else 0.05))
        for name, shape in shapes.items()
    ]


# -- metadata ---------------------------------------------------------------------------------------------------


def _renamed(
    architecture: str, changed: Mapping[str, Any], added: Mapping[str, Any], n_vocab: int | None = None
) -> list[Entry]:
    """Ember's metadata for another architecture; ``changed`` and ``added`` are by key without the prefix."""
    entries = []
    for entry in metadata_of(EMBER, n_vocab):
        value = changed.get(entry.key.removeprefix("llama."), entry.value)
        if entry.key == "general.architecture":
            value = architecture
        entries.append(replace(entry, key=re.sub(r"^llama\.", f"{architecture}.", entry.key), value=value))
    return entries + [_entry(f"{architecture}.{key}", value) for key, value in added.items()]


def _entry(key: str, value: Any) -> Entry:
    types: list[tuple[type, gguf.GGUFValueType]] = [
        (bool, gguf.GGUFValueType.BOOL),
        (int, gguf.GGUFValueType.UINT32),
        (float, gguf.GGUFValueType.FLOAT32),
    ]
    if isinstance(value, tuple):
        return Entry(key, list(value), gguf.GGUFValueType.ARRAY, gguf.GGUFValueType.UINT32)
    return Entry(key, value, next(kind for type_, kind in types if isinstance(value, type_)))


def _glm_metadata(n_blocks: int) -> list[Entry]:
    added = {
        "nextn_predict_layers": 1,
        "expert_count": _N_EXPERTS,
        "expert_used_count": 1,
        "expert_feed_forward_length": _EXPERT_WIDTH,
        "expert_shared_count": 1,
        "leading_dense_block_count": n_blocks - 1,
        "expert_weights_norm": True,
    }
    return _renamed("glm4moe", {"block_count": n_blocks}, added)


def _eagle_metadata(
    layers: tuple[int, ...], target_width: int, n_vocab: int | None, changed: Mapping[str, Any]
) -> list[Entry]:
    added = {"target_layers": layers, "target_hidden_size": target_width}
    entries = _renamed("eagle3", {"block_count": 1}, added, n_vocab)
    kept = [entry for entry in entries if entry.key.removeprefix("eagle3.") not in changed]
    return kept + [_entry(f"eagle3.{key}", value) for key, value in changed.items()]
