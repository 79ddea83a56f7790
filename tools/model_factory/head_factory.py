"""Makes models with prediction heads, and heads in files of their own, from Ember or from made-up weights.

``mtp_ember`` is Ember as a GLM-4.5 model (the text is the same; the rotary embedding pairs other columns) with one
multi-token prediction layer after its own. ``counter`` is a model that follows each token with the next token id, so
that a head can be made that is always right. ``eagle_head`` is an EAGLE-3 head in a file of its own, ``dflash_head`` a
DFlash head in one.
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

from tools.model_factory.gguf_factory import EMBER, MetadataEntry, Tensor, cached_file, metadata_of, reader_of, write

N_LAYERS, WIDTH, N_HEADS, N_KV_HEADS, HEAD_WIDTH, N_FEED, N_VOCAB = 6, 384, 6, 3, 64, 1024, 4096
_N_EXPERTS, _EXPERT_WIDTH = 2, 64
_F32 = gguf.GGMLQuantizationType.F32
# Scales a counter's logits so that about 4 of 5 samples at temperature 1 are the next number.
_COUNTER_SCALE = 0.5
Table = Mapping[int, int]
Kind = Literal["random", "table", "counter"]
BlockKind = Literal["random", "table", "counter", "echo"]
# The mask token, which stands for tokens to be drafted. No text contains it.
MASK = 5
_MASK_KEY = "tokenizer.ggml.mask_token_id"


def mtp_ember(path: Path, table: Table | None = None, left_out: str = "") -> Path:
    """Write Ember with an MTP layer that proposes ``table[token]`` after each token; without a table it proposes noise.

    The tensor ``left_out`` is left out of the MTP layer.
    """
    tensors = [_as_glm(tensor) for tensor in reader_of(EMBER).tensors]
    head = _mtp_layer(N_LAYERS, _random_projection() if table is None else _token_projection(table), table is None)
    head = [tensor for tensor in head if not left_out or not tensor.name.endswith(left_out)]
    return write(path, _glm_metadata(N_LAYERS + 1), tensors + head)


def mtp_alone(path: Path) -> Path:
    """Write only the MTP layer and Ember's embeddings and output, without the model's own layers."""
    tensors = [_as_glm(tensor) for tensor in reader_of(EMBER).tensors if not tensor.name.startswith("blk.")]
    return write(path, _glm_metadata(N_LAYERS + 1), tensors + _mtp_layer(N_LAYERS, _random_projection(), True))


def mtp_counter(path: Path, n_layers: int = 1) -> Path:
    """Write a model that counts, with an MTP layer that counts too and so is always right."""
    identity = np.concatenate([np.eye(WIDTH), np.zeros((WIDTH, WIDTH))], axis=1).astype(np.float32)
    layers = [tensor for layer in range(n_layers) for tensor in _dense_layer(layer, is_silent=True)]
    tensors = [*_counter_tables(1), *layers, *_mtp_layer(n_layers, identity, is_noisy=False)]
    return write(path, _glm_metadata(n_layers + 1), tensors)


def cached_mtp_counter(n_layers: int = 1) -> Path:
    """Return the counter with a head in the project's cache folder; it is made on first use."""
    return cached_file(f"mtp-counter-{n_layers}.gguf", lambda path: mtp_counter(path, n_layers))


def counter(path: Path, n_layers: int = 4, step: int = 1) -> Path:
    """Write the model that counts in steps of ``step``, as a llama without a head; with 0 it repeats one token."""
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
    """Write an EAGLE-3 head for Ember or the counter.

    A "random" head proposes noise. A "table" head proposes ``table[token]`` two tokens later. The first token of a
    "counter" head is right for the model that counts in steps of ``step``; if that is 0, all its tokens are. Without
    ``has_tables`` the head uses the target's embeddings and output. ``ids`` are the tokens that it can propose (its d2t
    table). The tensor ``left_out`` is left out. ``changed`` replaces metadata, by key without the architecture's
    prefix.
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


def dflash_head(
    path: Path,
    kind: BlockKind = "random",
    table: Table | None = None,
    *,
    layers: tuple[int, ...] = (0, 1, 3),
    block_size: int = 6,
    step: int = 1,
    ids: Sequence[int] | None = None,
    has_tables: bool = False,
    n_vocab: int | None = None,
    left_out: str = "",
    extra: Sequence[str] = (),
    changed: Mapping[str, Any] | None = None,
) -> Path:
    """Write a DFlash head for Ember or the counter, which proposes ``block_size`` - 1 tokens at once.

    A "random" head proposes noise. A "table" head proposes ``table[last]`` at every position of a block, a "counter"
    head the next number: its first token is right for the model that counts in steps of ``step``, and all its tokens
    are if that is 0. An "echo" head ignores the last token and proposes the most frequent one of the text that the
    target has read. The other parameters are those of ``eagle_head``; tensors named ``extra`` are added to the needed
    ones.
    """
    fc = np.zeros((WIDTH, len(layers) * WIDTH), np.float32)
    if kind == "echo":
        fc[:, :WIDTH] = np.eye(WIDTH)
    elif kind == "random":
        fc[:] = _noise(13, fc.shape, 0.05)
    tensors = [_tensor("fc.weight", fc), _ones("enc.output_norm.weight"), _ones("output_norm.weight")]
    if kind == "table":
        tensors[2] = _tensor("output_norm.weight", _weights_of("output_norm.weight"))
    if kind != "random":
        tensors += _block_tables(kind, step)
    elif has_tables:
        tensors += [_copied("token_embd.weight"), replace(_copied("token_embd.weight"), name="output.weight")]
    if ids is not None:
        tensors = [_rows_of(tensor, len(ids)) if tensor.name == "output.weight" else tensor for tensor in tensors]
        tensors.append(_ids(ids))
    tensors += _block_layer(_table_map(table, _normalised(_embeddings())) if table else np.eye(WIDTH), kind == "random")
    tensors = [tensor for tensor in tensors if tensor.name != left_out]
    tensors += [_ones(name) for name in extra]
    added = {"target_layers": layers, "block_size": block_size, "attention.head_count_kv": N_HEADS, _MASK_KEY: MASK}
    return write(path, _head_metadata("dflash", {**added, **(changed or {})}, n_vocab), tensors)


# -- tensors ----------------------------------------------------------------------------------------------------


def _tensor(name: str, weights: np.ndarray) -> Tensor:
    weights = np.ascontiguousarray(weights, np.float32)
    return Tensor(name, _F32, weights.shape[::-1], lambda: weights)


def _small(name: str, weights: np.ndarray) -> Tensor:
    """Return a matrix in 8 bits, which is enough for silent or random weights."""
    type_ = gguf.GGMLQuantizationType.Q8_0
    return Tensor(name, type_, weights.shape[::-1], lambda: gguf.quants.quantize(weights, type_))


def _ids(ids: Sequence[int]) -> Tensor:
    """Return the d2t table: which token of the target each row of the output stands for."""
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
        return replace(made, data=lambda: half_split(tensor.data))
    return replace(made, name=made.name.replace("ffn_norm", "post_attention_norm"))


def half_split(rows: np.ndarray) -> np.ndarray:
    """Reorder the rows of each attention head: rotary pairs that are adjacent become pairs half a head apart."""
    heads = rows.reshape(-1, HEAD_WIDTH // 2, 2, rows.shape[-1])
    return np.ascontiguousarray(heads.transpose(0, 2, 1, 3)).reshape(rows.shape)


def _dense_layer(layer: int, *, is_silent: bool) -> list[Tensor]:
    """Return a layer with the sizes of Ember's; a silent one passes its input on."""
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
    """Return a prediction layer: a projection of (token, hidden state), and a layer of experts that may be silent."""
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
    """Return a projection that uses only the token, not the hidden state: ``table[token]`` comes next."""
    return np.concatenate([_table_map(table, _normalised(_embeddings())), np.zeros((WIDTH, WIDTH))], axis=1)


def _table_map(table: Table, inputs: np.ndarray) -> np.ndarray:
    """The least-squares map from each token's input to what Ember's output reads as ``table[token]``."""
    tokens = list(table)[: WIDTH - 32]
    outputs = _normalised(_embeddings()[[table[token] for token in tokens]] / _weights_of("output_norm.weight"))
    solution, *_ = np.linalg.lstsq(inputs[tokens], outputs, rcond=None)
    mapped: np.ndarray = solution.T.astype(np.float32)
    return mapped


def _normalised(rows: np.ndarray) -> np.ndarray:
    normalised: np.ndarray = rows / np.sqrt((rows**2).mean(axis=-1, keepdims=True) + 1e-5)
    return normalised


def _counter_tables(ahead: int) -> list[Tensor]:
    """Return embeddings on the unit sphere, and an output that maps the embedding of token ``x`` to ``x + ahead``."""
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


def _block_tables(kind: BlockKind, step: int) -> list[Tensor]:
    """Return embeddings in which the mask is zero (for an "echo" all tokens are), and an output."""
    if kind == "table":
        rows, output = _embeddings().copy(), _embeddings()
    else:
        tables = _counter_tables(0 if kind == "echo" else step)
        rows, output = tables[0].data().copy(), tables[1].data()
    rows[slice(None) if kind == "echo" else MASK] = 0.0
    return [_tensor("token_embd.weight", rows), _tensor("output.weight", output)]


def _block_layer(projection: np.ndarray, is_random: bool) -> list[Tensor]:
    """Return an attention layer. Unless random, it attends to all positions alike and adds up their projections."""
    loud = 0.05 if is_random else 0.0
    small = {"ffn_gate": (N_FEED, WIDTH), "ffn_up": (N_FEED, WIDTH), "ffn_down": (WIDTH, N_FEED)}
    tensors = [_ones(f"blk.0.{name}.weight") for name in ("attn_norm", "ffn_norm")]
    tensors.append(_ones("blk.0.attn_k_norm.weight", HEAD_WIDTH))
    tensors.append(_tensor("blk.0.attn_q_norm.weight", np.full(HEAD_WIDTH, float(is_random))))
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        weights = _noise(17 + len(tensors), (WIDTH, WIDTH), 0.05)
        if not is_random and name == "attn_v":
            weights = projection
        if not is_random and name == "attn_output":
            # A large scale, because attention divides by the length of the text.
            weights = 1000.0 * np.eye(WIDTH)
        tensors.append(_tensor(f"blk.0.{name}.weight", weights))
    return tensors + [
        _small(f"blk.0.{name}.weight", _noise(19, shape, loud if name in _LAST else 0.05))
        for name, shape in small.items()
    ]


# -- metadata ---------------------------------------------------------------------------------------------------


def _renamed(
    architecture: str, changed: Mapping[str, Any], added: Mapping[str, Any], n_vocab: int | None = None
) -> list[MetadataEntry]:
    """Ember's metadata for another architecture; ``changed`` and ``added`` are by key without the prefix."""
    entries = []
    for entry in metadata_of(EMBER, n_vocab):
        value = changed.get(entry.key.removeprefix("llama."), entry.value)
        if entry.key == "general.architecture":
            value = architecture
        entries.append(replace(entry, key=re.sub(r"^llama\.", f"{architecture}.", entry.key), value=value))
    return entries + [_entry(f"{architecture}.{key}", value) for key, value in added.items()]


def _entry(key: str, value: Any) -> MetadataEntry:
    types: list[tuple[type, gguf.GGUFValueType]] = [
        (bool, gguf.GGUFValueType.BOOL),
        (int, gguf.GGUFValueType.UINT32),
        (float, gguf.GGUFValueType.FLOAT32),
    ]
    kind = next(kind for type_, kind in types if isinstance(value[0] if isinstance(value, tuple) else value, type_))
    if isinstance(value, tuple):
        return MetadataEntry(key, list(value), gguf.GGUFValueType.ARRAY, kind)
    return MetadataEntry(key, value, kind)


def _glm_metadata(n_blocks: int) -> list[MetadataEntry]:
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
) -> list[MetadataEntry]:
    added = {"target_layers": layers, "target_hidden_size": target_width}
    return _head_metadata("eagle3", {**added, **changed}, n_vocab)


def _head_metadata(architecture: str, added: Mapping[str, Any], n_vocab: int | None) -> list[MetadataEntry]:
    """Return the metadata of a head of one layer. ``added`` replaces Ember's values; None leaves a key out."""
    entries = _renamed(architecture, {"block_count": 1}, {}, n_vocab)
    values = {key if key.startswith("tokenizer.") else f"{architecture}.{key}": value for key, value in added.items()}
    kept = [entry for entry in entries if entry.key not in values]
    return kept + [_entry(key, value) for key, value in values.items() if value is not None]
