"""The file of one stored piece: what it is, its tokens, a checksum of both, and llama.cpp's bytes."""

from __future__ import annotations

import hashlib
import struct
from typing import BinaryIO, NamedTuple

import numpy as np

from core.kv_cache.prefix_cache.prefix_tree import TokenIds
from core.kv_cache.prefix_cache.segment import ID_BYTES, Blob

# Magic, model key, id, parent's id (zeros: none), bytes of the blob, start, tokens, is a running state, blob's digest.
_HEAD = struct.Struct("<8s16s16s16sQIIB7x16s")
_MAGIC = b"SLIPKV1\n"
_NO_PARENT = bytes(ID_BYTES)
_DIGEST_BYTES = 16
# No context is longer: a damaged length must not ask for gigabytes.
_MOST_TOKENS = 1 << 24


class NotASegmentFile(Exception):
    """The file is not a whole piece of this model."""


class SegmentHeader(NamedTuple):
    """What a file says of itself; ``n_bytes`` is the size of the blob."""

    id: bytes
    parent_id: bytes | None
    start: int
    tokens: TokenIds
    n_bytes: int
    is_whole: bool

    @property
    def end(self) -> int:
        """The position behind the last."""
        return self.start + len(self.tokens)


def digest_of(blob: Blob) -> bytes:
    """Return the checksum of a blob (BLAKE2b)."""
    return hashlib.blake2b(blob.data, digest_size=_DIGEST_BYTES).digest()


def pack_head(key: bytes, piece: SegmentHeader, blob: Blob) -> bytes:
    """Return what comes before the blob in a file of the model ``key``."""
    parent = piece.parent_id or _NO_PARENT
    sizes = blob.nbytes, piece.start, len(piece.tokens), piece.is_whole
    head = _HEAD.pack(_MAGIC, key, piece.id, parent, *sizes, digest_of(blob))
    head += np.ascontiguousarray(piece.tokens, "<i4").tobytes()
    return head + _digest(head)


def read_head(file: BinaryIO, key: bytes, n_file_bytes: int) -> tuple[SegmentHeader, bytes]:
    """Return the piece of a file and its blob's digest; the blob comes next. Raises NotAPiece and OSError."""
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
