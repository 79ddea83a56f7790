"""A segment: the keys and values of some positions of a text, in RAM, on disk, or both; and its file format."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass, field
from typing import BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from core.kv_cache.prefix_cache.prefix_tree import PrefixNode, TokenIds

Blob = npt.NDArray[np.uint8]
"""The cells of a sequence in llama.cpp's own format."""

# Bytes of an id: too many for two texts to share one by chance.
ID_BYTES = 16


@dataclass(eq=False, slots=True)
class Segment:
    """Positions [start, end) of one text; ``parent`` and its ancestors hold those before ``start``.

    ``is_whole`` marks a running state: it stands for the whole text up to ``end`` and cannot be cut. ``blob`` is None
    if the segment is not in RAM. ``is_pending`` is True while it waits to be written to disk.
    """

    id: bytes
    parent: Segment | None
    start: int
    end: int
    tokens: TokenIds
    n_bytes: int
    is_whole: bool = False
    blob: Blob | None = None
    is_on_disk: bool = False
    is_pending: bool = False
    n_hits: int = 1
    children: set[Segment] = field(default_factory=set)
    node: PrefixNode | None = None

    @property
    def is_readable(self) -> bool:
        """True if its bytes are in RAM or on disk."""
        return self.blob is not None or self.is_on_disk

    @property
    def worth(self) -> float:
        """Its worth in Greedy-Dual-Size-Frequency: tokens saved per byte, times its hits."""
        return self.n_hits * (self.end - self.start) / self.n_bytes


def segment_id(parent: Segment | None, start: int, tokens: TokenIds, *, is_whole: bool) -> bytes:
    """Return the id of a segment: a hash of its start and of all tokens of the text up to its end."""
    digest = hashlib.blake2b(parent.id if parent is not None else b"", digest_size=ID_BYTES)
    digest.update(start.to_bytes(4, "little") + bytes([is_whole]))
    digest.update(np.ascontiguousarray(tokens, "<i4").tobytes())
    return digest.digest()


# Magic, model key, id, parent's id (zeros: none), bytes of the blob, start, tokens, is a running state, blob's digest.
_HEAD = struct.Struct("<8s16s16s16sQIIB7x16s")
_MAGIC = b"SLIPKV1\n"
_NO_PARENT = bytes(ID_BYTES)
_DIGEST_BYTES = 16  # against damage by chance
# No context is longer. The limit keeps a damaged length from allocating gigabytes.
_MOST_TOKENS = 1 << 24


class NotASegmentFile(Exception):
    """The file is damaged, or belongs to another model."""


class SegmentHeader(NamedTuple):
    """The header of a segment's file; ``n_bytes`` is the size of the blob behind it."""

    id: bytes
    parent_id: bytes | None
    start: int
    tokens: TokenIds
    n_bytes: int
    is_whole: bool

    @property
    def end(self) -> int:
        """The position after the last token."""
        return self.start + len(self.tokens)


def digest_of(blob: Blob) -> bytes:
    """Return the checksum of a blob (BLAKE2b)."""
    return hashlib.blake2b(blob.data, digest_size=_DIGEST_BYTES).digest()


def pack_head(key: bytes, header: SegmentHeader, blob: Blob) -> bytes:
    """Return the bytes before the blob in a file of the model ``key``."""
    parent = header.parent_id or _NO_PARENT
    sizes = blob.nbytes, header.start, len(header.tokens), header.is_whole
    head = _HEAD.pack(_MAGIC, key, header.id, parent, *sizes, digest_of(blob))
    head += np.ascontiguousarray(header.tokens, "<i4").tobytes()
    return head + _digest(head)


def read_head(file: BinaryIO, key: bytes, n_file_bytes: int) -> tuple[SegmentHeader, bytes]:
    """Return a file's header and its blob's digest; the blob comes next. Raises NotASegmentFile and OSError."""
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size:
        raise NotASegmentFile
    magic, its_key, name, parent, n_bytes, start, n_tokens, is_whole, digest = _HEAD.unpack(head)
    if magic != _MAGIC or its_key != key or not 0 < n_tokens <= _MOST_TOKENS:
        raise NotASegmentFile
    if n_file_bytes != _HEAD.size + 4 * n_tokens + _DIGEST_BYTES + n_bytes:
        raise NotASegmentFile
    tokens = file.read(4 * n_tokens)
    if file.read(_DIGEST_BYTES) != _digest(head + tokens):
        raise NotASegmentFile
    ids = np.frombuffer(tokens, "<i4").astype(np.int32)
    return SegmentHeader(name, None if parent == _NO_PARENT else parent, start, ids, n_bytes, bool(is_whole)), digest


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest()
