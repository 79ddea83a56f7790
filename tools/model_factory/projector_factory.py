"""Makes projectors (mmproj files) for Ember with random weights, and Ember as a Qwen2-VL model.

What Ember says of an image means nothing, but depends on each pixel. Each kind needs something else of an engine: the
rows of "gemma3" attend to each other, those of "qwen2vl_merger" have positions in two dimensions, and an image for
"internvl" is cut into tiles.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import gguf
import numpy as np

from tools.model_factory.gguf_factory import EMBER, MetadataEntry, Tensor, cached_file, metadata_of, reader_of, write
from tools.model_factory.head_factory import WIDTH, half_split

ProjectorKind = Literal["gemma3", "qwen2vl_merger", "internvl"]
IMAGE_SIZE = 64
"""Width and height (pixels) of the images that the projectors see; "qwen2vl_merger" sees them in their own size."""
_PATCH, _EMBD, _FEED, _HEADS, _LAYERS, _MERGE = 8, 32, 64, 2, 2, 2
_F32, _F16 = gguf.GGMLQuantizationType.F32, gguf.GGMLQuantizationType.F16
_VALUE_TYPES = {
    str: gguf.GGUFValueType.STRING,
    bool: gguf.GGUFValueType.BOOL,
    int: gguf.GGUFValueType.UINT32,
    float: gguf.GGUFValueType.FLOAT32,
}


def projector(kind: ProjectorKind = "gemma3", width: int = WIDTH) -> Path:
    """Return the projector of a kind in the project's cache folder, for a model of this ``width`` (``n_embd``)."""
    return cached_file(f"mmproj-{kind}-{width}.gguf", lambda path: _make(path, kind, width))


def mrope_ember() -> Path:
    """Return Ember as a model whose positions have several dimensions (M-RoPE); its texts are Ember's."""
    return cached_file("ember-qwen2vl.gguf", _make_mrope_ember)


def _make(path: Path, kind: ProjectorKind, width: int) -> Path:
    random = np.random.default_rng(1)
    is_qwen = kind == "qwen2vl_merger"

    def tensor(name: str, *shape: int, scale: float = 0.0, type_: Any = _F32) -> Tensor:
        """Return random weights with the inner dimension last; a ``scale`` of 0 keeps the norm of the input."""
        n_inner = int(np.prod(shape[1:])) if len(shape) > 1 else shape[0]
        values = random.standard_normal(shape) * (scale or n_inner**-0.5)
        data = values.astype(np.float16 if type_ is _F16 else np.float32)
        return Tensor(name, type_, shape[::-1], lambda: data)

    def linear(name: str, n_out: int, n_in: int) -> list[Tensor]:
        return [tensor(f"{name}.weight", n_out, n_in), tensor(f"{name}.bias", n_out, scale=0.1)]

    def ones(name: str, size: int = _EMBD) -> Tensor:
        return Tensor(name, _F32, (size,), lambda: np.ones(size, np.float32))

    n_patches = (IMAGE_SIZE // _PATCH) ** 2
    tensors = [tensor("v.patch_embd.weight", _EMBD, 3, _PATCH, _PATCH, type_=_F16)]
    if is_qwen:
        tensors.append(tensor("v.patch_embd.weight.1", _EMBD, 3, _PATCH, _PATCH, type_=_F16))
    else:
        tensors += [
            tensor("v.patch_embd.bias", _EMBD, scale=0.1),
            tensor("v.position_embd.weight", n_patches + (kind == "internvl"), _EMBD, scale=0.3),
        ]
    if kind == "internvl":
        tensors.append(tensor("v.class_embd", _EMBD))
    for layer in range(_LAYERS):
        block = f"v.blk.{layer}"
        for norm in ("ln1", "ln2"):
            tensors += [ones(f"{block}.{norm}.weight"), tensor(f"{block}.{norm}.bias", _EMBD, scale=0.1)]
        for part in ("attn_q", "attn_k", "attn_v", "attn_out"):
            tensors += [
                tensor(f"{block}.{part}.weight", _EMBD, _EMBD),
                tensor(f"{block}.{part}.bias", _EMBD, scale=0.1),
            ]
        tensors += [*linear(f"{block}.ffn_up", _FEED, _EMBD), *linear(f"{block}.ffn_down", _EMBD, _FEED)]
    tensors += [ones("v.post_ln.weight"), tensor("v.post_ln.bias", _EMBD, scale=0.1)]
    n_merged = _EMBD * _MERGE**2
    if kind == "gemma3":
        tensors += [tensor("mm.input_projection.weight", _EMBD, width), ones("mm.soft_emb_norm.weight")]
    elif kind == "internvl":
        tensors += [ones("mm.model.mlp.0.weight", n_merged), tensor("mm.model.mlp.0.bias", n_merged, scale=0.1)]
        tensors += [*linear("mm.model.mlp.1", n_merged, n_merged), *linear("mm.model.mlp.3", width, n_merged)]
    else:
        tensors += [*linear("mm.0", n_merged, n_merged), *linear("mm.2", width, n_merged)]
    return write(path, _metadata(kind, width), tensors)


def _metadata(kind: ProjectorKind, width: int) -> list[MetadataEntry]:
    values: dict[str, Any] = {
        "general.architecture": "clip",
        "general.type": "mmproj",
        "clip.has_vision_encoder": True,
        "clip.projector_type": kind,
        "clip.use_gelu": True,
        "clip.vision.image_size": IMAGE_SIZE,
        "clip.vision.patch_size": _PATCH,
        "clip.vision.embedding_length": _EMBD,
        "clip.vision.feed_forward_length": _FEED,
        "clip.vision.block_count": _LAYERS,
        "clip.vision.attention.head_count": _HEADS,
        "clip.vision.attention.layer_norm_epsilon": 1e-6,
        "clip.vision.projection_dim": width,
        "clip.vision.image_mean": [0.5, 0.5, 0.5],
        "clip.vision.image_std": [0.5, 0.5, 0.5],
        "clip.vision.projector.scale_factor": _MERGE,
        "clip.vision.spatial_merge_size": _MERGE,
        "clip.vision.preproc_max_tiles": 4,
    }
    return [_entry(key, value) for key, value in values.items()]


def _entry(key: str, value: Any) -> MetadataEntry:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return MetadataEntry(key, list(value), gguf.GGUFValueType.ARRAY, _VALUE_TYPES[type(value[0])])
    return MetadataEntry(key, value, _VALUE_TYPES[type(value)])


def _make_mrope_ember(path: Path) -> Path:
    entries = [
        replace(
            entry,
            key=re.sub(r"^llama\.", "qwen2vl.", entry.key),
            value="qwen2vl" if entry.key == "general.architecture" else entry.value,
        )
        for entry in metadata_of(EMBER)
    ]
    sections = MetadataEntry(
        "qwen2vl.rope.dimension_sections", [8, 12, 12, 0], gguf.GGUFValueType.ARRAY, gguf.GGUFValueType.INT32
    )
    return write(path, [*entries, sections], [_as_qwen(tensor) for tensor in reader_of(EMBER).tensors])


def _as_qwen(tensor: gguf.ReaderTensor) -> Tensor:
    shape = tuple(int(n) for n in tensor.shape)
    is_turned = re.search(r"attn_[qk]\.weight", tensor.name)
    data = functools.partial(half_split if is_turned else np.asarray, tensor.data)
    return Tensor(tensor.name, tensor.tensor_type, shape, data)
