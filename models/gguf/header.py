"""Reads the header of a GGUF file: metadata and tensor infos, never the weights.

The header is not trusted: every count and length is checked against the file and against limits far above
any real model before anything is kept, so that a hostile file costs little time and memory.
Long arrays and texts stay in the file until they are asked for.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from models.formatting.safe_text import shortened
from models.formatting.sentence import Sentence, with_facts
from models.gguf.byte_source import ByteSource, FileSource
from models.gguf.errors import BadGguf, NotGguf, TruncatedGguf
from models.gguf.tensor_types import BY_ID, REMOVED, GgmlType, odd_rows

# Versions of the format that llama.cpp reads, and limits far above any real model (GGML_MAX_NAME, GGML_MAX_DIMS).
VERSIONS = (2, 3)
MAX_METADATA = 16_384
MAX_TENSORS = 16_384
MAX_KEY_BYTES = 65_535
MAX_TENSOR_NAME_BYTES = 63
MAX_DIMENSIONS = 4
MAX_TEXT_BYTES = 1 << 30
# Chat templates and licences, the longest texts that are read, have some 100 KB.
MAX_TEXT_BYTES_READ = 4 << 20
# Tokens are read as texts to compare them; the largest vocabularies have some 260,000 in 5 MB.
MAX_STRINGS_READ = 1 << 20
MAX_STRING_BYTES_READ = 24 << 20
MAX_ARRAY_ITEMS = 1 << 30
# Real vocabularies have up to about 800,000 strings (tokens and merges) in 20 MB.
MAX_STRINGS = 1 << 21
MAX_BYTES_READ = 128 << 20
# Longer values stay in the file, and are read when they are asked for.
KEPT_TEXT_BYTES = 256 << 10
KEPT_NUMBERS = 1_024
KEPT_STRINGS = 64
KEPT_BYTES = 4 << 20
MAX_NAME_BYTES_TOGETHER = 16 << 20
DEFAULT_ALIGNMENT = 32
WINDOW_BYTES = 256 << 10

_STRING, _ARRAY = 8, 9
_NUMBER_FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
# A newer format has the next number; letters, read as a number, are far beyond it.
_MOST_LIKELY_VERSION = 100
_SMALLEST_METADATA, _SMALLEST_TENSOR = 8 + 1 + 4 + 1, 8 + 4 + 4 + 8
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")

Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True)
class StoredArray:
    """An array left in the file: ``item`` is its struct format ("s" for strings), ``n_bytes`` its extent."""

    item: str
    count: int
    offset: int
    n_bytes: int


@dataclass(frozen=True, slots=True)
class StoredText:
    """A long text left in the file."""

    offset: int
    n_bytes: int


MetadataValue = Scalar | tuple[Scalar, ...] | StoredArray | StoredText


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One tensor: ``shape`` in ggml's order (row length first), ``offset`` from the start of the data section."""

    name: str
    shape: tuple[int, ...]
    type: GgmlType
    offset: int
    n_bytes: int

    @property
    def n_elements(self) -> int:
        """Product of the dimensions."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True, eq=False)
class GgufHeader:
    """A checked header. Values too long to keep are read again from ``source`` when asked for."""

    version: int
    metadata: Mapping[str, MetadataValue]
    tensors: tuple[TensorInfo, ...]
    data_offset: int
    file_bytes: int
    source: ByteSource

    def text(self, key: str) -> str | None:
        """The text under ``key``, or None if there is none; raises BadGguf for one that no real model has."""
        value = self.metadata.get(key)
        if isinstance(value, StoredText):
            if value.n_bytes > MAX_TEXT_BYTES_READ:
                raise BadGguf(
                    self.source.name,
                    Sentence(
                        "the text {key} in its metadata has {n_bytes:,} bytes", key=_quoted(key), n_bytes=value.n_bytes
                    ),
                )
            return _read_range(self.source, value.offset, value.n_bytes).decode("utf-8", "replace")
        return value if isinstance(value, str) else None

    def integer(self, key: str) -> int | None:
        """The whole number under ``key``, or None if there is none."""
        value = self.metadata.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def integers(self, key: str) -> tuple[int, ...] | None:
        """The array of whole numbers (or flags) under ``key``, or None if there is none."""
        value = self.metadata.get(key)
        if isinstance(value, StoredArray) and value.item not in "sfd":
            raw = _read_range(self.source, value.offset, value.n_bytes)
            return struct.unpack(f"<{value.count}{value.item}", raw)
        if isinstance(value, tuple) and all(isinstance(item, int) for item in value):
            return tuple(int(item) for item in value)
        return None

    def count(self, key: str) -> int | None:
        """Number of items of the array under ``key``, or None if there is none."""
        value = self.metadata.get(key)
        if isinstance(value, StoredArray):
            return value.count
        return len(value) if isinstance(value, tuple) else None

    def count_strings(self, key: str) -> int:
        """Number of texts in the array under ``key``, 0 if there is none; reads none of them."""
        value = self.metadata.get(key)
        if isinstance(value, StoredArray):
            return value.count if value.item == "s" else 0
        return len(self.strings(key) or ())

    def strings(self, key: str) -> tuple[str, ...] | None:
        """The array of strings under ``key``, or None if there is none; bytes that are no UTF-8 are replaced.

        Raises BadGguf for more than any real vocabulary has.
        """
        value = self.metadata.get(key)
        if isinstance(value, StoredArray) and value.item == "s":
            if value.count > MAX_STRINGS_READ or value.n_bytes > MAX_STRING_BYTES_READ:
                what = Sentence(
                    "the array {key} in its metadata has {count:,} texts in {n_bytes:,} bytes",
                    key=_quoted(key),
                    count=value.count,
                    n_bytes=value.n_bytes,
                )
                raise BadGguf(self.source.name, what)
            raw = _read_range(self.source, value.offset, value.n_bytes)
            return tuple(text.decode("utf-8", "replace") for text in _split_strings(raw, value.count))
        if isinstance(value, tuple) and all(isinstance(item, str) for item in value):
            return tuple(str(item) for item in value)
        return None

    def digest(self, key: str) -> str | None:
        """SHA-256 over the array under ``key`` as it is stored: equal digests mean equal arrays."""
        value = self.metadata.get(key)
        if isinstance(value, StoredArray):
            hashed = hashlib.sha256()
            for start in range(value.offset, value.offset + value.n_bytes, WINDOW_BYTES):
                hashed.update(self.source.read_at(start, min(WINDOW_BYTES, value.offset + value.n_bytes - start)))
            return hashed.hexdigest()
        if isinstance(value, tuple):
            return hashlib.sha256(repr(value).encode()).hexdigest()
        return None


def read_header(path: Path) -> GgufHeader:
    """Read the header of the GGUF file at ``path``; raises GgufError with a sentence for the user."""
    return read_header_from(FileSource.open(Path(path)))


def read_header_from(source: ByteSource) -> GgufHeader:
    """Read a header from any source of bytes; raises GgufError with a sentence for the user."""
    return _HeaderReader(source).header()


class _Cursor:
    """A position in the source, a window of bytes around it, and a bound on the bytes read altogether."""

    def __init__(self, source: ByteSource) -> None:
        self.source, self.size = source, source.size
        self.position = 0
        self._window, self._start, self._n_read = b"", 0, 0

    @property
    def n_left(self) -> int:
        return self.size - self.position

    def bad(self, what: str, /, **facts: object) -> BadGguf:
        """The error, with ``facts`` for the holes of ``what``."""
        return BadGguf(self.source.name, with_facts(what, facts))

    def need(self, n_bytes: int) -> None:
        """Refuse if fewer than ``n_bytes`` are left."""
        if n_bytes > self.n_left:
            raise TruncatedGguf(self.source.name, self.position + n_bytes, self.size)

    def skip(self, n_bytes: int) -> None:
        self.need(n_bytes)
        self.position += n_bytes

    def take(self, n_bytes: int) -> bytes:
        self.need(n_bytes)
        at = self._at(n_bytes)
        self.position += n_bytes
        return self._window[at : at + n_bytes]

    def u32(self) -> int:
        value: int = _U32.unpack(self.take(4))[0]
        return value

    def u64(self) -> int:
        value: int = _U64.unpack(self.take(8))[0]
        return value

    def skip_strings(self, count: int) -> None:
        """Step over ``count`` strings without keeping any of them."""
        unpack: Callable[[bytes, int], tuple[int]] = _U64.unpack_from
        while count:
            self.need(8)
            at = self._at(8)
            window, last = self._window, len(self._window) - 8
            for left in range(count - 1, -1, -1):
                (n_bytes,) = unpack(window, at)
                at += 8 + n_bytes
                count = left
                if at > last:
                    break
            self._jump(self._start + at)

    def _jump(self, position: int) -> None:
        beyond = position - self.size
        if beyond > MAX_TEXT_BYTES:
            raise self.bad(Sentence("a text in its metadata is longer than any file"))
        if beyond > 0:
            raise TruncatedGguf(self.source.name, position, self.size)
        self.position = position

    def _at(self, n_bytes: int) -> int:
        """Move the window so that it holds the next ``n_bytes``, and return the index of the position in it."""
        at = self.position - self._start
        if at < 0 or at + n_bytes > len(self._window):
            self._fetch(max(n_bytes, WINDOW_BYTES))
            at = 0
        if at + n_bytes > len(self._window):
            raise TruncatedGguf(self.source.name, self.position + n_bytes, self._start + len(self._window))
        return at

    def _fetch(self, n_bytes: int) -> None:
        self._n_read += n_bytes
        if self._n_read > MAX_BYTES_READ:
            raise self.bad(
                "its header is longer than {most} MiB, more than any real model has", most=MAX_BYTES_READ >> 20
            )
        self._start = self.position
        self._window = self.source.read_at(self.position, min(n_bytes, self.n_left))


class _HeaderReader:
    """One pass over a header."""

    def __init__(self, source: ByteSource) -> None:
        self.cursor = _Cursor(source)
        self._n_strings = 0
        self._n_kept = 0
        self._n_name_bytes = 0

    def header(self) -> GgufHeader:
        cursor = self.cursor
        version = self._version()
        n_tensors = self._count("tensors", MAX_TENSORS)
        n_metadata = self._count("metadata entries", MAX_METADATA)
        cursor.need(n_metadata * _SMALLEST_METADATA + n_tensors * _SMALLEST_TENSOR)
        metadata = self._metadata(n_metadata)
        alignment = self._alignment(metadata)
        tensors = self._tensors(n_tensors, alignment)
        data_offset = _padded(cursor.position, alignment)
        if tensors and data_offset + tensors[-1].offset + tensors[-1].n_bytes > cursor.size:
            needed = data_offset + tensors[-1].offset + tensors[-1].n_bytes
            raise TruncatedGguf(cursor.source.name, needed, cursor.size)
        return GgufHeader(version, MappingProxyType(metadata), tensors, data_offset, cursor.size, cursor.source)

    def _version(self) -> int:
        cursor = self.cursor
        start = cursor.take(min(64, cursor.size))
        if start[:4] != b"GGUF":
            raise NotGguf(_not_gguf(cursor.source.name, start))
        cursor.position = 4
        version = cursor.u32()
        name = cursor.source.name
        if version & 0xFFFF == 0:
            advice = Sentence("Get the file for little-endian machines, or convert it with gguf_convert_endian.py.")
            raise BadGguf(name, Sentence("it was written for big-endian machines"), advice)
        if version < min(VERSIONS):
            advice = Sentence("Get a newer file of this model, or convert it again with a current llama.cpp.")
            raise BadGguf(
                name, Sentence("it is GGUF version {version}, which is no longer in use", version=version), advice
            )
        if version > _MOST_LIKELY_VERSION:
            raise BadGguf(name, Sentence("what follows the letters GGUF is no version of the format"))
        if version > max(VERSIONS):
            advice = Sentence("Update Slipstream, or get the file in version 3.")
            raise BadGguf(
                name,
                Sentence("it is GGUF version {version}, and only versions 2 and 3 are known", version=version),
                advice,
            )
        return version

    def _count(self, what: str, limit: int) -> int:
        count = self.cursor.u64()
        if count > limit:
            raise self.cursor.bad(
                "it announces {count:,} {what}, and no model has more than {limit:,}",
                count=count,
                what=what,
                limit=limit,
            )
        return count

    def _metadata(self, count: int) -> dict[str, MetadataValue]:
        metadata: dict[str, MetadataValue] = {}
        for _ in range(count):
            key = self._name("metadata key", MAX_KEY_BYTES)
            if not key:
                raise self.cursor.bad(Sentence("a metadata key is empty"))
            if key in metadata:
                raise self.cursor.bad("its metadata has the key {key} twice", key=_quoted(key))
            metadata[key] = self._value(key)
        return metadata

    def _name(self, what: str, limit: int) -> str:
        n_bytes = self.cursor.u64()
        if n_bytes > limit:
            raise self.cursor.bad(
                "a {what} has {n_bytes:,} bytes, more than the {limit:,} allowed",
                what=what,
                n_bytes=n_bytes,
                limit=limit,
            )
        self._n_name_bytes += n_bytes
        if self._n_name_bytes > MAX_NAME_BYTES_TOGETHER:
            raise self.cursor.bad(Sentence("the names in its header are longer than those of any real model"))
        try:
            return self.cursor.take(n_bytes).decode()
        except UnicodeDecodeError as error:
            raise self.cursor.bad("a {what} is not valid UTF-8", what=what) from error

    def _value(self, key: str) -> MetadataValue:
        kind = self.cursor.u32()
        if kind == _STRING:
            return self._text(key)
        if kind == _ARRAY:
            return self._array(key)
        if kind not in _NUMBER_FORMATS:
            raise self.cursor.bad("the metadata entry {key} has the unknown type {kind}", key=_quoted(key), kind=kind)
        number = struct.Struct("<" + _NUMBER_FORMATS[kind])
        value: int | float | bool = number.unpack(self.cursor.take(number.size))[0]
        return value

    def _text(self, key: str) -> str | StoredText:
        n_bytes = self.cursor.u64()
        if n_bytes > MAX_TEXT_BYTES:
            raise self.cursor.bad(
                "the text {key} in its metadata has {n_bytes:,} bytes", key=_quoted(key), n_bytes=n_bytes
            )
        self.cursor.need(n_bytes)
        if n_bytes > KEPT_TEXT_BYTES or not self._keep(n_bytes):
            stored = StoredText(self.cursor.position, n_bytes)
            self.cursor.skip(n_bytes)
            return stored
        return self.cursor.take(n_bytes).decode("utf-8", "replace")

    def _array(self, key: str) -> MetadataValue:
        cursor = self.cursor
        kind, count = cursor.u32(), cursor.u64()
        if kind == _ARRAY:
            raise cursor.bad(
                "the metadata entry {key} is an array of arrays, which llama.cpp does not read", key=_quoted(key)
            )
        if kind == _STRING:
            return self._string_array(key, count)
        if kind not in _NUMBER_FORMATS:
            raise cursor.bad("the array {key} in its metadata has the unknown type {kind}", key=_quoted(key), kind=kind)
        if count > MAX_ARRAY_ITEMS:
            raise cursor.bad("the array {key} in its metadata announces {count:,} items", key=_quoted(key), count=count)
        item = _NUMBER_FORMATS[kind]
        n_bytes = count * struct.calcsize("<" + item)
        cursor.need(n_bytes)
        if count <= KEPT_NUMBERS and self._keep(n_bytes):
            return struct.unpack(f"<{count}{item}", cursor.take(n_bytes))
        stored = StoredArray(item, count, cursor.position, n_bytes)
        cursor.skip(n_bytes)
        return stored

    def _string_array(self, key: str, count: int) -> MetadataValue:
        cursor = self.cursor
        self._n_strings += count
        if self._n_strings > MAX_STRINGS:
            raise cursor.bad(
                "the array {key} in its metadata announces {count:,} strings", key=_quoted(key), count=count
            )
        cursor.need(count * 8)
        offset = cursor.position
        cursor.skip_strings(count)
        n_bytes = cursor.position - offset
        if count > KEPT_STRINGS or n_bytes > KEPT_TEXT_BYTES or not self._keep(n_bytes):
            return StoredArray("s", count, offset, n_bytes)
        cursor.position = offset
        return tuple(text.decode("utf-8", "replace") for text in _split_strings(cursor.take(n_bytes), count))

    def _keep(self, n_bytes: int) -> bool:
        """Whether the values kept so far leave room for ``n_bytes`` more, which are then counted."""
        if self._n_kept + n_bytes > KEPT_BYTES:
            return False
        self._n_kept += n_bytes
        return True

    def _alignment(self, metadata: Mapping[str, MetadataValue]) -> int:
        alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
        if not isinstance(alignment, int) or alignment <= 0 or alignment & (alignment - 1):
            raise self.cursor.bad(
                "its alignment is {value} and must be a power of two", value=repr(str(alignment)[:40])
            )
        return alignment

    def _tensors(self, count: int, alignment: int) -> tuple[TensorInfo, ...]:
        tensors: dict[str, TensorInfo] = {}
        expected = 0
        for _ in range(count):
            tensor = self._tensor()
            if tensor.name in tensors:
                raise self.cursor.bad("it has the tensor {name} twice", name=_quoted(tensor.name))
            if tensor.offset != expected:
                where = Sentence(
                    "starts at {offset:,} and not at {expected:,}, where the one before it ends",
                    offset=tensor.offset,
                    expected=expected,
                )
                raise self.cursor.bad("its tensor {name} {where}", name=_quoted(tensor.name), where=where)
            expected = _padded(tensor.offset + tensor.n_bytes, alignment)
            tensors[tensor.name] = tensor
        return tuple(tensors.values())

    def _tensor(self) -> TensorInfo:
        cursor = self.cursor
        name = self._name("tensor name", MAX_TENSOR_NAME_BYTES)
        n_dimensions = cursor.u32()
        if n_dimensions > MAX_DIMENSIONS:
            raise cursor.bad(
                "its tensor {name} has {n_dimensions:,} dimensions, more than {max_dimensions}",
                name=_quoted(name),
                n_dimensions=n_dimensions,
                max_dimensions=MAX_DIMENSIONS,
            )
        shape = tuple(cursor.u64() for _ in range(n_dimensions))
        type_ = self._tensor_type(name)
        n_elements = math.prod(shape)
        if max(shape, default=1) >= 1 << 63 or n_elements >= 1 << 63:
            raise cursor.bad("its tensor {name} has more elements than can be counted", name=_quoted(name))
        if (shape[0] if shape else 1) % type_.block_size:
            raise cursor.bad(odd_rows(Sentence("its tensor {name}", name=_quoted(name)), type_.name))
        return TensorInfo(name, shape, type_, cursor.u64(), type_.bytes_for(n_elements))

    def _tensor_type(self, name: str) -> GgmlType:
        id_ = self.cursor.u32()
        if id_ in BY_ID:
            return BY_ID[id_]
        if id_ in REMOVED:
            what = Sentence(
                "its tensor {name} has a type ({id_}) that llama.cpp no longer reads", name=_quoted(name), id_=id_
            )
            raise BadGguf(
                self.cursor.source.name, what, Sentence("Get a newer file of this model, for example in Q4_0.")
            )
        what = Sentence("its tensor {name} has the unknown type {id_}", name=_quoted(name), id_=id_)
        raise BadGguf(self.cursor.source.name, what, Sentence("It is damaged, or made for a newer llama.cpp."))


def _not_gguf(name: str, start: bytes) -> str:
    if not start:
        return Sentence("{name} is empty. The download probably never began: download the file again.", name=name)
    for magic, what in _OTHER_KINDS.items():
        if start.lstrip().startswith(magic):
            return Sentence("{name} is not a GGUF model: {what}", name=name, what=what)
    return Sentence("{name} is not a GGUF model. Choose a file that begins with the letters GGUF.", name=name)


_OTHER_KINDS = {
    b"version https://git-lfs": Sentence("it is a Git LFS pointer to one. Fetch the file itself with `git lfs pull`."),
    b"<": Sentence("it is a web page, so the download went wrong. Download the file again."),
    b"lmgg": Sentence("it has the older GGML format. Get the model as GGUF."),
    b"tjgg": Sentence("it has the older GGJT format. Get the model as GGUF."),
    b"PK\x03\x04": Sentence("it is an archive or a PyTorch checkpoint. Get the model as GGUF."),
}


def _read_range(source: ByteSource, offset: int, n_bytes: int) -> bytes:
    if n_bytes > MAX_BYTES_READ:
        raise BadGguf(source.name, Sentence("a value in its metadata has {n_bytes:,} bytes", n_bytes=n_bytes))
    raw = source.read_at(offset, n_bytes)
    if len(raw) < n_bytes:
        raise TruncatedGguf(source.name, offset + n_bytes, offset + len(raw))
    return raw


def _split_strings(raw: bytes, count: int) -> Iterator[bytes]:
    at = 0
    for _ in range(count):
        end = at + 8 + _U64.unpack_from(raw, at)[0]
        yield raw[at + 8 : end]
        at = end


def _quoted(name: str) -> str:
    """A name from a file, short and printable enough for a sentence."""
    return repr(shortened(name, 60))


def _padded(n_bytes: int, alignment: int) -> int:
    return (n_bytes + alignment - 1) // alignment * alignment
