"""Model files that are wrong, each in one way, with the error and the words a user must be told."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import gguf

from models.gguf.errors import BadGguf, GgufError, NotGguf, TruncatedGguf, UnreadableFile
from models.gguf.header import read_header
from tools.model_factory.gguf_factory import EMBER, MetadataEntry, Tensor, metadata_of, write

Writer = Callable[[Path], object]
_U8, _U32, _F32, _BOOL, _STRING, _ARRAY, _U64 = 0, 4, 6, 7, 8, 9, 10


@dataclass(frozen=True)
class Broken:
    """One broken file: how to write it, which error the reader raises and what its sentence contains."""

    name: str
    write: Writer
    error: type[GgufError]
    says: str


@dataclass(frozen=True)
class Unusable:
    """A file with a sound header that cannot be used as a model, and what its problem contains."""

    name: str
    write: Writer
    says: str


def string(text: str | bytes) -> bytes:
    raw = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(raw)) + raw


def entry(key: str, kind: int, value: bytes) -> bytes:
    return string(key) + struct.pack("<I", kind) + value


def array(key: str, kind: int, count: int, items: bytes = b"") -> bytes:
    return entry(key, _ARRAY, struct.pack("<IQ", kind, count) + items)


def tensor(name: str, shape: tuple[int, ...], kind: int = 0, offset: int = 0) -> bytes:
    return string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


def header(
    entries: tuple[bytes, ...] = (),
    tensors: tuple[bytes, ...] = (),
    *,
    n_entries: int | None = None,
    n_tensors: int | None = None,
    version: int = 3,
    tail: int = 4096,
) -> bytes:
    """A raw header whose counts may lie, followed by ``tail`` zero bytes."""
    counts = len(tensors) if n_tensors is None else n_tensors, len(entries) if n_entries is None else n_entries
    return b"GGUF" + struct.pack("<IQQ", version, *counts) + b"".join((*entries, *tensors)) + bytes(tail)


def number(key: str, value: int) -> bytes:
    """An entry of type UINT32."""
    return entry(key, _U32, struct.pack("<I", value))


def _bytes(content: bytes) -> Writer:
    return lambda path: path.write_bytes(content)


def _cut(n_bytes: int) -> Writer:
    return lambda path: path.write_bytes(EMBER.read_bytes()[:n_bytes])


def _sparse(content: bytes, n_bytes: int) -> Writer:
    def write_file(path: Path) -> None:
        path.write_bytes(content)
        with open(path, "r+b") as file:
            file.truncate(n_bytes)

    return write_file


def giant(path: Path, n_layers: int = 80) -> Path:
    """A model of about 1 TB whose header is consistent and whose weights are a hole in the file."""
    n_embd, n_ff, n_heads, n_kv, n_vocab = 16_384, 53_248, 128, 8, 4_096
    changes = {"embedding_length": n_embd, "block_count": n_layers, "feed_forward_length": n_ff}
    changes |= {"attention.head_count": n_heads, "attention.head_count_kv": n_kv, "rope.dimension_count": 128}
    changed = {f"llama.{key}": value for key, value in changes.items()} | {"general.file_type": 0}
    entries = [MetadataEntry(e.key, changed.get(e.key, e.value), e.type, e.item_type) for e in metadata_of(EMBER)]
    shapes: dict[str, tuple[int, ...]] = {"token_embd": (n_embd, n_vocab), "output_norm": (n_embd,)}
    for layer in range(n_layers):
        block = {"attn_norm": (n_embd,), "ffn_norm": (n_embd,)}
        block |= {"attn_q": (n_embd, n_embd), "attn_output": (n_embd, n_embd)}
        block |= {"attn_k": (n_embd, n_kv * 128), "attn_v": (n_embd, n_kv * 128)}
        block |= {"ffn_gate": (n_embd, n_ff), "ffn_up": (n_embd, n_ff), "ffn_down": (n_ff, n_embd)}
        shapes |= {f"blk.{layer}.{name}": shape for name, shape in block.items()}
    float32 = gguf.GGMLQuantizationType.F32
    tensors = [Tensor(f"{name}.weight", float32, shape, bytes) for name, shape in shapes.items()]
    return write(path, entries, tensors, with_data=False)


def _ember_with(**changes: object) -> Writer:
    """Ember's header with entries changed, or left out where the value is None; dots are written as __."""
    named = {key.replace("__", "."): value for key, value in changes.items()}

    def write_file(path: Path) -> None:
        entries = [e for e in metadata_of(EMBER) if named.get(e.key, e) is not None]
        entries = [MetadataEntry(e.key, named.get(e.key, e.value), e.type, e.item_type) for e in entries]
        known = {e.key for e in entries}
        extra = [key for key, value in named.items() if value is not None and key not in known]
        entries += [MetadataEntry(key, named[key], gguf.GGUFValueType.STRING) for key in extra]
        write(path, entries, _ember_tensors(), with_data=False)

    return write_file


def _ember_tensors() -> list[Tensor]:
    found = read_header(EMBER).tensors
    return [Tensor(t.name, gguf.GGMLQuantizationType(t.type.id), t.shape, bytes) for t in found]


def _without_tokenizer(path: Path) -> None:
    entries = [e for e in metadata_of(EMBER) if not e.key.startswith("tokenizer.")]
    write(path, entries, _ember_tensors(), with_data=False)


_BIG_ENDIAN = b"GGUF" + struct.pack(">IQQ", 3, 1, 1) + bytes(64)
_N_EMBER = EMBER.stat().st_size
_HUGE = 1 << 62

BROKEN = (
    Broken("nothing", lambda path: None, UnreadableFile, "There is no file"),
    Broken("folder", lambda path: path.mkdir(), UnreadableFile, "is a folder"),
    Broken("empty", _bytes(b""), NotGguf, "is empty"),
    Broken("text", _bytes(b"Once upon a time, there was a fox.\n" * 50), NotGguf, "begins with the letters GGUF"),
    Broken("two bytes", _bytes(b"GG"), NotGguf, "is not a GGUF model"),
    Broken("web page", _bytes(b"\n<!DOCTYPE html><title>404</title>"), NotGguf, "web page"),
    Broken("lfs pointer", _bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n"), NotGguf, "Git LFS"),
    Broken("offload", _bytes(b"PK\x03\x04" + bytes(100)), NotGguf, "PyTorch"),
    Broken("old format", _bytes(b"tjgg" + bytes(100)), NotGguf, "older GGJT"),
    Broken("version 1", _bytes(header(version=1)), BadGguf, "version 1, which is no longer in use"),
    Broken("garbage", _bytes(b"GGUFgarbage"), BadGguf, "no version of the format. The file is damaged: download"),
    Broken("version 4", _bytes(header(version=4)), BadGguf, "only versions 2 and 3"),
    Broken("big-endian", _bytes(_BIG_ENDIAN), BadGguf, "big-endian"),
    *(
        Broken(f"cut to {n:,} bytes", _cut(n), TruncatedGguf, f"it has {n:,} bytes, and at least")
        for n in (4, 7, 8, 20, 24, 30, 100, 900, 54_000, 130_000, 140_000, 1_000_000, _N_EMBER - 1)
    ),
    Broken("many tensors", _bytes(header(n_tensors=_HUGE)), BadGguf, "announces 4,611,686,018,427,387,904 tensors"),
    Broken("many entries", _bytes(header(n_entries=_HUGE)), BadGguf, "metadata entries"),
    Broken("more tensors than bytes", _bytes(header(n_tensors=16_000)), TruncatedGguf, "is incomplete"),
    Broken("more entries than bytes", _bytes(header(n_entries=16_000)), TruncatedGguf, "is incomplete"),
    Broken("long key", _bytes(header((struct.pack("<Q", _HUGE),))), BadGguf, "metadata key has"),
    Broken("empty key", _bytes(header((entry("", _U8, b"\0"),))), BadGguf, "key is empty"),
    Broken("key not text", _bytes(header((string(b"\xff\xfe") + bytes(5),))), BadGguf, "not valid UTF-8"),
    Broken("same key twice", _bytes(header((entry("a", _U8, b"\0"),) * 2)), BadGguf, "'a' twice"),
    Broken("unknown value type", _bytes(header((entry("a", 99, b"\0" * 8),))), BadGguf, "unknown type 99"),
    Broken("huge text", _bytes(header((entry("a", _STRING, struct.pack("<Q", _HUGE)),))), BadGguf, "'a'"),
    Broken(
        "text beyond the end", _bytes(header((entry("a", _STRING, struct.pack("<Q", 10**6)),))), TruncatedGguf, "least"
    ),
    Broken("huge array", _bytes(header((array("a", _F32, _HUGE),))), BadGguf, "items"),
    Broken("array beyond the end", _bytes(header((array("a", _F32, 10**6),))), TruncatedGguf, "least"),
    Broken("huge string array", _bytes(header((array("a", _STRING, _HUGE),))), BadGguf, "strings"),
    Broken("string array beyond the end", _bytes(header((array("a", _STRING, 10**6),))), TruncatedGguf, "least"),
    Broken(
        "huge string in an array",
        _bytes(header((array("a", _STRING, 2, string("b") + struct.pack("<Q", _HUGE)),))),
        BadGguf,
        "longer than any file",
    ),
    Broken("array of arrays", _bytes(header((array("a", _ARRAY, 1, bytes(64)),))), BadGguf, "array of arrays"),
    Broken("array of unknown type", _bytes(header((array("a", 50, 1),))), BadGguf, "unknown type 50"),
    Broken("many strings in a hole", _sparse(header((array("a", _STRING, 1 << 40),)), 1 << 43), BadGguf, "strings"),
    Broken("entries in a hole", _sparse(header(n_entries=16_000), 1 << 40), BadGguf, "key is empty"),
    Broken("alignment 0", _bytes(header((number("general.alignment", 0),))), BadGguf, "alignment"),
    Broken("alignment 3", _bytes(header((number("general.alignment", 3),))), BadGguf, "power of two"),
    Broken(
        "alignment text", _bytes(header((entry("general.alignment", _STRING, string("32")),))), BadGguf, "alignment"
    ),
    Broken("long tensor name", _bytes(header((), (tensor("a" * 64, (32,)),))), BadGguf, "64 bytes"),
    Broken("same tensor twice", _bytes(header((), (tensor("a", (8,)), tensor("a", (8,), 0, 32)))), BadGguf, "twice"),
    Broken("five dimensions", _bytes(header((), (tensor("a", (1,) * 5),))), BadGguf, "5 dimensions"),
    Broken("overflowing shape", _bytes(header((), (tensor("a", (1 << 32, 1 << 32)),))), BadGguf, "elements"),
    Broken("negative length", _bytes(header((), (tensor("a", (1 << 63, 0)),))), BadGguf, "elements"),
    Broken("broken block", _bytes(header((), (tensor("a", (33,), 8),))), BadGguf, "whole blocks of Q8_0"),
    Broken("unknown tensor type", _bytes(header((), (tensor("a", (32,), 77),))), BadGguf, "unknown type 77"),
    Broken("removed tensor type", _bytes(header((), (tensor("a", (32,), 31),))), BadGguf, "no longer reads"),
    Broken("tensor elsewhere", _bytes(header((), (tensor("a", (8,), 0, 1 << 60),))), BadGguf, "and not at 0"),
    Broken(
        "tensors overlap", _bytes(header((), (tensor("a", (64,)), tensor("b", (8,), 0, 32)))), BadGguf, "not at 256"
    ),
    Broken("tensor beyond the end", _bytes(header((), (tensor("a", (1 << 40,)),))), TruncatedGguf, "4,398,0"),
)

UNUSABLE = (
    Unusable("no tokenizer", _without_tokenizer, "no tokenizer"),
    Unusable("unknown architecture", _ember_with(general__architecture="quokka9"), "'quokka9' is unknown"),
    Unusable("projector", _ember_with(general__architecture="clip"), "see or hear"),
    Unusable("encoder alone", _ember_with(general__architecture="t5encoder"), "encoder"),
    Unusable("adapter", _ember_with(general__type="adapter"), "LoRA"),
    Unusable("no context length", _ember_with(llama__context_length=None), "llama.context_length"),
    Unusable("no architecture", _bytes(header((entry("general.name", _STRING, string("x")),))), "which architecture"),
    Unusable("part of three", _bytes(header((number("split.count", 3),))), "one of 3 parts"),
    Unusable("a million layers", _ember_with(llama__block_count=1_000_000), "block_count is 1,000,000"),
)
