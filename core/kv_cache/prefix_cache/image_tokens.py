"""Ids that stand for images among the token ids of a text. Pure.

A row of an image has no token, but slots, the prefix tree, RAM and disk know texts by their ids. So each row gets an
id that follows from the image's hash: negative, and so outside of every vocabulary. Two bits of an id say what the
cache must know of the row: whether an image begins with it, and whether it takes a position of its own. With M-RoPE
(Qwen2-VL, arXiv 2409.12191) the rows of an image take as many positions as its longer side has rows.
"""

from __future__ import annotations

import hashlib

import numpy as np

from core.kv_cache.prefix_cache.prefix_tree import TokenIds

# The sign bit makes an id negative; the two lowest bits are the flags.
_SIGN, _FIRST, _SHARES_POSITION = -(2**31), 1, 2


def image_ids(key: bytes, n_rows: int, n_positions: int) -> TokenIds:
    """Return the ids of ``n_rows`` rows that take ``n_positions`` positions; ``key`` identifies the image."""
    noise = np.frombuffer(hashlib.shake_128(key).digest(4 * n_rows), "<i4")
    ids = (noise & ~(_FIRST | _SHARES_POSITION)) | np.int32(_SIGN)
    ids[0] |= _FIRST
    ids[n_positions:] |= _SHARES_POSITION
    return ids.astype(np.int32)


def is_image(token: int) -> bool:
    """Return whether an id stands for a row of an image."""
    return token < 0


def shared_positions(ids: TokenIds) -> TokenIds:
    """Return the indices of the rows that take no position of their own, in ascending order."""
    return np.flatnonzero((ids < 0) & (ids & _SHARES_POSITION != 0)).astype(np.int32)


def whole_images(ids: TokenIds, size: int) -> int:
    """Return ``size``, or, if that would cut an image in two, the position where that image begins."""
    while 0 < size < len(ids) and ids[size] < 0 and not ids[size] & _FIRST:
        starts = np.flatnonzero((ids[:size] < 0) & (ids[:size] & _FIRST != 0))
        size = int(starts[-1]) if len(starts) else 0
    return size


def image_end(ids: TokenIds, start: int) -> int:
    """Return where the image ends that begins at ``start``."""
    behind = ids[start + 1 :]
    others = np.flatnonzero((behind >= 0) | (behind & _FIRST != 0))
    return start + 1 + int(others[0]) if len(others) else len(ids)
