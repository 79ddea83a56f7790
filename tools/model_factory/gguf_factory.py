"""Makes model files from Ember: deeper, with experts, with more tokens, in other types; the text stays Ember's."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import gguf
import numpy as np

PROJECT = Path(__file__).resolve().parents[2]
STARTER = PROJECT / "models" / "starter"
EMBER = STARTER / "ember-q8_0.gguf"
EMBER_DRAFT = STARTER / "ember-draft-q8_0.gguf"
CACHE = PROJECT / ".cache" / "test-models"

_FILE_TYPES = {"F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q8_0": 7, "Q5_0": 8, "Q5_1": 9, "BF16": 32}
_FEED_FORWARD = re.compile(r"ffn_(gate|up|down)\.weight")
_SILENT = re.compile(r"(attn_output|ffn_down)\.weight")
_UNUSED_TOKEN = 5


@dataclass(frozen=True)
class Recipe:
    """What to make of a source model. ``tensor_type`` None keeps the source's types byte for byte.

    ``is_shuffled`` shuffles the weights of each matrix: the model is as fast as the source, and its output is noise.
    """

    n_layers: int | None = None
    tensor_type: str | None = None
    n_experts: int = 0
    n_experts_used: int = 0
    n_vocab: int | None = None
    is_shuffled: bool = False
    source: Path = EMBER

    @property
    def name(self) -> str:
        """A file name that contains all fields."""
        parts = [self.source.stem]
        parts += [f"{self.n_layers}-layers"] if self.n_layers else []
        parts += [f"{self.n_experts_used}-of-{self.n_experts}-experts"] if self.n_experts else []
        parts += [f"{self.n_vocab}-tokens"] if self.n_vocab else []
        parts += ["shuffled"] if self.is_shuffled else []
        return "-".join([*parts, (self.tensor_type or "q8_0").lower()]) + ".gguf"


def deep_ember(path: Path, n_layers: int, source: Path = EMBER, tensor_type: str | None = None) -> Path:
    """Write Ember with silent layers after its own: the same text at the cost of ``n_layers`` layers."""
    return make(path, Recipe(n_layers=n_layers, tensor_type=tensor_type, source=source))


def moe_ember(
    path: Path,
    n_experts: int,
    n_used: int,
    source: Path = EMBER,
    tensor_type: str | None = None,
    n_layers: int | None = None,
) -> Path:
    """Write Ember with every feed-forward network copied into ``n_experts`` experts behind a random router.

    The weights of the chosen experts add up to 1, so that equal experts give the dense result.
    """
    recipe = Recipe(n_layers, tensor_type, n_experts, n_used, source=source)
    return make(path, recipe)


def big_vocab_ember(path: Path, n_vocab: int = 150_000, source: Path = EMBER, n_layers: int | None = None) -> Path:
    """Write Ember with unused tokens up to ``n_vocab``, whose logits are always 0: greedy text is the same."""
    return make(path, Recipe(n_layers, n_vocab=n_vocab, source=source))


def cached(recipe: Recipe) -> Path:
    """Return the model of ``recipe`` in the project's cache folder; it is made on first use."""
    return cached_file(recipe.name, lambda path: make(path, recipe))


def cached_file(name: str, make_file: Callable[[Path], Path]) -> Path:
    """Return the file ``name`` in the project's cache folder; ``make_file`` makes it on first use."""
    folder = CACHE / _cache_key()
    path = folder / name
    if not path.exists():
        for old in CACHE.glob("*"):
            if old != folder:
                shutil.rmtree(old, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        handle, partial = tempfile.mkstemp(dir=folder, suffix=".partial")
        os.close(handle)
        os.replace(make_file(Path(partial)), path)
    return path


def make(path: Path, recipe: Recipe) -> Path:
    """Write the model of ``recipe`` to ``path``, tensor by tensor, so that it needs little memory."""
    reader = reader_of(recipe.source)
    tensors = list(tensors_of(reader, recipe))
    write(path, _metadata(recipe), tensors)
    return path


@dataclass(frozen=True)
class Tensor:
    """One tensor to write. ``data`` makes its bytes, which are repeated ``copies`` times on a new last axis."""

    name: str
    type: gguf.GGMLQuantizationType
    shape: tuple[int, ...]
    data: Callable[[], np.ndarray]
    copies: int = 1

    @property
    def n_bytes(self) -> int:
        block, block_bytes = gguf.GGML_QUANT_SIZES[self.type]
        return int(np.prod(self.shape, dtype=object)) * self.copies // block * block_bytes


@dataclass(frozen=True)
class MetadataEntry:
    """One metadata entry to write."""

    key: str
    value: Any
    type: gguf.GGUFValueType
    item_type: gguf.GGUFValueType | None = None


def write(path: Path, entries: list[MetadataEntry], tensors: list[Tensor], with_data: bool = True) -> Path:
    """Write a GGUF file with the ``gguf`` package. Without data the file has the same length, but is sparse."""
    architecture = next(entry.value for entry in entries if entry.key == "general.architecture")
    writer = gguf.GGUFWriter(path, architecture)
    for entry in entries:
        if entry.key != "general.architecture":
            writer.add_key_value(entry.key, entry.value, entry.type, entry.item_type)
    for tensor in tensors:
        shape = tensor.shape[::-1] if tensor.copies == 1 else (tensor.copies, *tensor.shape[::-1])
        writer.add_tensor_info(tensor.name, shape, np.dtype(np.float32), tensor.n_bytes, tensor.type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    if with_data:
        _append_data(path, tensors)
    else:
        n_header = _padded(path.stat().st_size)
        os.truncate(path, n_header + sum(_padded(tensor.n_bytes) for tensor in tensors))
    return path


def metadata_of(source: Path, n_vocab: int | None = None) -> list[MetadataEntry]:
    """Return all metadata of a model, to be changed and written again; with ``n_vocab`` tokens if that is given."""
    return _metadata(Recipe(source=source, n_vocab=n_vocab))


@functools.cache
def reader_of(source: Path) -> gguf.GGUFReader:
    """The opened file of a model."""
    return gguf.GGUFReader(source)


def _append_data(path: Path, tensors: list[Tensor]) -> None:
    with open(path, "ab") as file:
        for tensor in tensors:
            file.write(bytes(_padded(file.tell()) - file.tell()))
            data = np.ascontiguousarray(tensor.data())
            assert data.nbytes * tensor.copies == tensor.n_bytes, tensor.name
            for _ in range(tensor.copies):
                file.write(data.data)
        file.write(bytes(_padded(file.tell()) - file.tell()))


def _padded(n_bytes: int) -> int:
    return -(-n_bytes // gguf.GGUF_DEFAULT_ALIGNMENT) * gguf.GGUF_DEFAULT_ALIGNMENT


@functools.cache
def _entries(source: Path) -> tuple[MetadataEntry, ...]:
    fields = reader_of(source).fields.values()
    return tuple(_entry(field) for field in fields if not field.name.startswith("GGUF."))


def _metadata(recipe: Recipe) -> list[MetadataEntry]:
    entries = list(_entries(recipe.source))
    prefix = next(entry.value for entry in entries if entry.key == "general.architecture")
    changed: dict[str, Any] = {}
    if recipe.n_layers:
        changed[f"{prefix}.block_count"] = recipe.n_layers
    if recipe.tensor_type:
        changed["general.file_type"] = _FILE_TYPES[recipe.tensor_type.upper()]
    if recipe.n_experts:
        counts = {"expert_count": recipe.n_experts, "expert_used_count": recipe.n_experts_used}
        entries += [MetadataEntry(f"{prefix}.{key}", n, gguf.GGUFValueType.UINT32) for key, n in counts.items()]
    if recipe.n_vocab:
        changed |= _longer_vocabulary(entries, f"{prefix}.vocab_size", recipe.n_vocab)
    return [replace(entry, value=changed.get(entry.key, entry.value)) for entry in entries]


def _longer_vocabulary(entries: list[MetadataEntry], size_key: str, n_vocab: int) -> dict[str, Any]:
    values = {entry.key: entry.value for entry in entries}
    tokens, types = values["tokenizer.ggml.tokens"], values["tokenizer.ggml.token_type"]
    filler = [f"<|unused_{i}|>" for i in range(len(tokens), n_vocab)]
    return {
        size_key: n_vocab,
        "tokenizer.ggml.tokens": tokens + filler,
        "tokenizer.ggml.token_type": types + [_UNUSED_TOKEN] * len(filler),
    }


def _entry(field: gguf.ReaderField) -> MetadataEntry:
    item_type = field.types[1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
    return MetadataEntry(field.name, field.contents(), field.types[0], item_type)


def tensors_of(reader: gguf.GGUFReader, recipe: Recipe) -> Iterator[Tensor]:
    """Yield the tensors of the model of ``recipe``."""
    blocks: dict[int, list[Tensor]] = {}
    for tensor in reader.tensors:
        match = re.match(r"blk\.(\d+)\.", tensor.name)
        made = _converted(tensor, recipe)
        if match:
            blocks.setdefault(int(match[1]), []).append(made)
        else:
            yield _with_longer_table(made, recipe)
    for layer in range(recipe.n_layers or len(blocks)):
        is_silent = layer >= len(blocks)
        for part in blocks[layer % len(blocks)]:
            yield _layer_tensor(part, layer, is_silent, recipe)
        if recipe.n_experts:
            yield _router(layer, int(blocks[0][0].shape[0]), recipe.n_experts)


def _with_longer_table(table: Tensor, recipe: Recipe) -> Tensor:
    n_vocab = recipe.n_vocab
    if n_vocab is None or table.name not in ("token_embd.weight", "output.weight"):
        return table

    def with_zero_rows() -> np.ndarray:
        rows = table.data()
        return np.concatenate([rows, np.zeros((n_vocab - len(rows), *rows.shape[1:]), rows.dtype)])

    return replace(table, shape=(table.shape[0], n_vocab), data=with_zero_rows)


def _layer_tensor(tensor: Tensor, layer: int, is_silent: bool, recipe: Recipe) -> Tensor:
    made = replace(tensor, name=re.sub(r"blk\.\d+", f"blk.{layer}", tensor.name))
    if is_silent and _SILENT.search(made.name):
        made = replace(made, data=functools.partial(np.zeros, made.n_bytes, np.uint8))
    if recipe.n_experts and _FEED_FORWARD.search(made.name):
        made = replace(made, name=made.name.replace(".weight", "_exps.weight"), copies=recipe.n_experts)
    return made


def _converted(tensor: gguf.ReaderTensor, recipe: Recipe) -> Tensor:
    shape = tuple(int(n) for n in tensor.shape)
    is_kept = recipe.tensor_type is None and not recipe.is_shuffled
    if is_kept or len(shape) == 1:
        return Tensor(tensor.name, tensor.tensor_type, shape, lambda: tensor.data)
    type_ = gguf.GGMLQuantizationType[recipe.tensor_type.upper()] if recipe.tensor_type else tensor.tensor_type

    @functools.cache
    def requantised() -> np.ndarray:
        weights = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        if recipe.is_shuffled:
            weights = np.random.default_rng(1).permuted(weights.ravel()).reshape(weights.shape)
        return gguf.quants.quantize(weights, type_)

    return Tensor(tensor.name, type_, shape, requantised)


def _router(layer: int, n_embd: int, n_experts: int) -> Tensor:
    def weights() -> np.ndarray:
        return np.random.default_rng(layer).standard_normal((n_experts, n_embd)).astype(np.float32)

    name = f"blk.{layer}.ffn_gate_inp.weight"
    return Tensor(name, gguf.GGMLQuantizationType.F32, (n_embd, n_experts), weights)


@functools.cache
def _cache_key() -> str:
    makers = sorted(Path(__file__).parent.glob("*_factory.py"))
    content = b"".join(path.read_bytes() for path in (*makers, EMBER, EMBER_DRAFT))
    return hashlib.sha256(content).hexdigest()[:16]
