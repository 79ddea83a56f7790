"""Makes Ember as large as the models that people run on a GPU: its text stays nearly Ember's, at their cost.

Ember's weights are one corner of each matrix. Where the rest meets zeros in any case it is noise, elsewhere it is zero.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, replace
from pathlib import Path

import gguf
import numpy as np

from tools.model_factory.gguf_factory import (
    EMBER,
    EMBER_DRAFT,
    MetadataEntry,
    Tensor,
    cached_file,
    metadata_of,
    reader_of,
    write,
)

_TYPE = gguf.GGMLQuantizationType.Q4_0
_BLOCK, _BLOCK_BYTES = gguf.GGML_QUANT_SIZES[_TYPE]
_HEAD_SIZE = 64
# Blocks of noise, of which a matrix takes as many copies as it needs.
_N_NOISE = 1 << 20


@dataclass(frozen=True)
class WideShape:
    """The sizes of a model: hidden size, layers, feed-forward size, heads, heads of keys and values, vocabulary.

    At least as many heads share keys and values as in ``source``, whose text it has.
    """

    n_embd: int
    n_layers: int
    n_ff: int
    n_heads: int
    n_kv_heads: int
    n_vocab: int
    source: Path = EMBER


# As Llama 3.2 1B and Llama 3.1 8B, but for heads of 64 values, as Ember has them, and a draft model for them.
SHAPES = {
    "1b": WideShape(2048, 16, 8192, 32, 8, 128_256),
    "8b": WideShape(4096, 32, 14_336, 64, 16, 128_256),
}
DRAFT_SHAPE = WideShape(1024, 12, 4096, 16, 4, 128_256, EMBER_DRAFT)


def wide_ember(name: str) -> Path:
    """Return Ember in a shape of ``SHAPES``, in Q4_0; it is made on first use."""
    return cached_file(f"ember-{name}-q4_0.gguf", lambda path: make_wide(path, SHAPES[name]))


def wide_draft() -> Path:
    """Return Ember-draft as large as a draft model for them; it is made on first use."""
    return cached_file("ember-wide-draft-q4_0.gguf", lambda path: make_wide(path, DRAFT_SHAPE))


def make_wide(path: Path, shape: WideShape) -> Path:
    """Write a shape's source in that shape."""
    reader = reader_of(shape.source)
    own = {tensor.name: tensor for tensor in reader.tensors}
    width = int(own["output_norm.weight"].shape[0])
    tensors = [
        _norm("output_norm.weight", own["output_norm.weight"], width, shape),
        _matrix("token_embd.weight", own["token_embd.weight"], (shape.n_embd, shape.n_vocab), shape),
    ]
    n_own = sum(bool(re.fullmatch(r"blk\.\d+\.attn_q\.weight", name)) for name in own)
    for layer in range(shape.n_layers):
        for part, size in _sizes(shape).items():
            tensor = own[f"blk.{layer % n_own}.{part}.weight"]
            name = f"blk.{layer}.{part}.weight"
            if size is None:
                tensors.append(_norm(name, tensor, width, shape))
            elif layer >= n_own and part in ("attn_output", "ffn_down"):
                tensors.append(_silent(name, size))
            else:
                tensors.append(_matrix(name, tensor, size, shape))
    return write(path, _metadata(shape, width), tensors)


def _sizes(shape: WideShape) -> dict[str, tuple[int, int] | None]:
    """Return what a layer has: columns and rows of its matrices, None for norms."""
    n_embd, n_kv = shape.n_embd, shape.n_kv_heads * _HEAD_SIZE
    return {
        "attn_norm": None,
        "attn_q": (n_embd, shape.n_heads * _HEAD_SIZE),
        "attn_k": (n_embd, n_kv),
        "attn_v": (n_embd, n_kv),
        "attn_output": (shape.n_heads * _HEAD_SIZE, n_embd),
        "ffn_norm": None,
        "ffn_gate": (n_embd, shape.n_ff),
        "ffn_up": (n_embd, shape.n_ff),
        "ffn_down": (shape.n_ff, n_embd),
    }


def _norm(name: str, tensor: gguf.ReaderTensor, width: int, shape: WideShape) -> Tensor:
    """The mean square of a hidden state falls with the zeros added to it: what it is scaled by makes up for that."""
    weights = np.zeros(shape.n_embd, np.float32)
    weights[:width] = np.asarray(tensor.data) * np.sqrt(width / shape.n_embd)
    return Tensor(name, gguf.GGMLQuantizationType.F32, (shape.n_embd,), lambda: weights)


def _matrix(name: str, tensor: gguf.ReaderTensor, size: tuple[int, int], shape: WideShape) -> Tensor:
    (n_columns, n_rows), part = size, name.split(".")[-2]

    def data() -> np.ndarray:
        own = gguf.quants.quantize(gguf.quants.dequantize(tensor.data, tensor.tensor_type), _TYPE)
        own = own.reshape(len(own), -1, _BLOCK_BYTES)
        blocks = np.zeros((n_rows, n_columns // _BLOCK, _BLOCK_BYTES), np.uint8)
        if part == "attn_output":
            # Heads that share keys and values with Ember's own say something too: nothing may listen to them.
            for place, column in _heads(own.shape[1] * _BLOCK // _HEAD_SIZE, shape, _BLOCK):
                blocks[: len(own), column] = own[:, place]
        elif part == "attn_q":
            _fill(blocks[:, own.shape[1] :])
            for place, row in _heads(len(own) // _HEAD_SIZE, shape, 1):
                blocks[row, : own.shape[1]] = own[place]
        else:
            if part != "token_embd":
                _fill(blocks[:, own.shape[1] :])
            blocks[: len(own), : own.shape[1]] = own
        return blocks

    return Tensor(name, _TYPE, size, data)


def _heads(n_heads: int, shape: WideShape, unit: int) -> list[tuple[slice, slice]]:
    """Return where the values of each head of the source are, and where they go, in blocks of ``unit`` values."""
    n, group = _HEAD_SIZE // unit, shape.n_heads // shape.n_kv_heads
    own_group = n_heads // int(reader_of(shape.source).fields["llama.attention.head_count_kv"].contents())
    places = [head // own_group * group + head % own_group for head in range(n_heads)]
    return [(slice(head * n, head * n + n), slice(to * n, to * n + n)) for head, to in enumerate(places)]


def _silent(name: str, size: tuple[int, int]) -> Tensor:
    return Tensor(name, _TYPE, size, lambda: np.zeros((size[1], size[0] // _BLOCK * _BLOCK_BYTES), np.uint8))


def _fill(blocks: np.ndarray) -> None:
    """Fill blocks with noise of about the size of weights."""
    noise = _noise()
    n_rows = max(1, _N_NOISE // max(1, blocks.shape[1]))
    for first in range(0, len(blocks), n_rows):
        part = blocks[first : first + n_rows]
        part[:] = noise[: part.shape[0] * part.shape[1]].reshape(part.shape)


@functools.cache
def _noise() -> np.ndarray:
    blocks = np.random.default_rng(1).integers(0, 256, (_N_NOISE, _BLOCK_BYTES), np.uint8)
    blocks[:, :2] = np.frombuffer(np.float16(0.005).tobytes(), np.uint8)
    return blocks


def _metadata(shape: WideShape, width: int) -> list[MetadataEntry]:
    entries = metadata_of(shape.source, shape.n_vocab)
    values = {entry.key: entry.value for entry in entries}
    epsilon = "llama.attention.layer_norm_rms_epsilon"
    values |= {
        "general.file_type": 2,
        "llama.embedding_length": shape.n_embd,
        "llama.block_count": shape.n_layers,
        "llama.feed_forward_length": shape.n_ff,
        "llama.attention.head_count": shape.n_heads,
        "llama.attention.head_count_kv": shape.n_kv_heads,
        epsilon: values[epsilon] * width / shape.n_embd,
    }
    return [replace(entry, value=values[entry.key]) for entry in entries]
