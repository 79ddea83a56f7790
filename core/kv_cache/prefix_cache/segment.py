"""A stored piece of a text: the keys and values of some positions, in RAM, on disk, or both."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from core.kv_cache.prefix_cache.prefix_tree import PrefixNode, TokenIds

Blob = npt.NDArray[np.uint8]
"""What llama.cpp gave for the cells of a sequence; its own format."""

ID_BYTES = 16


@dataclass(eq=False, slots=True)
class Segment:
    """Positions [start, end) of one text; those before ``start`` are held by ``parent`` and what is above it.

    ``is_whole`` marks a running state: it stands for the whole text up to ``end`` and cannot be cut. ``blob`` is None
    where the piece is not in RAM; ``is_pending`` says that it is on its way to the disk.
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
        """True where what it holds can be had."""
        return self.blob is not None or self.is_on_disk

    @property
    def worth(self) -> float:
        """Tokens that it saved and will save for each byte, in the sense of Greedy-Dual-Size-Frequency."""
        return self.n_hits * (self.end - self.start) / self.n_bytes


def segment_id(parent: Segment | None, start: int, tokens: TokenIds, *, is_whole: bool) -> bytes:
    """Return the id of a piece: it follows from the tokens of the whole text up to its end, and where it begins."""
    digest = hashlib.blake2b(parent.id if parent is not None else b"", digest_size=ID_BYTES)
    digest.update(start.to_bytes(4, "little") + bytes([is_whole]))
    digest.update(np.ascontiguousarray(tokens, "<i4").tobytes())
    return digest.digest()
