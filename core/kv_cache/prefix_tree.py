"""A radix tree over token ids: finds the stored texts with the longest common prefix, and who holds it. Pure.

A row of an image has no token, but slots, the prefix tree, RAM and disk know texts by their ids. So each row gets an
id that follows from the image's hash: negative, and so outside of every vocabulary. Two bits of an id say what the
cache must know of the row: whether an image begins with it, and whether it takes a position of its own. With M-RoPE
(Qwen2-VL, arXiv 2409.12191) the rows of an image take as many positions as its longer side has rows.

Texts of different owners must not be found by each other: the time and the cached tokens of a request would tell what
others have sent. Such a text is known by another first id, which follows from its own first id and its salt.
"""

from __future__ import annotations

import hashlib
from typing import Protocol

import numpy as np
import numpy.typing as npt

TokenIds = npt.NDArray[np.int32]


class PrefixHolder(Protocol):
    """Something that holds positions [start, end) of one text; ``node`` is where that text ends in the tree."""

    start: int
    end: int
    node: PrefixNode | None


class PrefixNode:
    """An edge and its lower end: positions [start, end) of every text that passes through.

    ``places`` are the holders of some of these positions, ``n_ends`` how many of them end here.
    """

    __slots__ = ("children", "n_ends", "parent", "places", "start", "tokens")

    def __init__(self, parent: PrefixNode | None, start: int, tokens: TokenIds) -> None:
        self.parent = parent
        self.start = start
        self.tokens = tokens
        self.children: dict[int, PrefixNode] = {}
        self.places: dict[PrefixHolder, None] = {}
        self.n_ends = 0

    @property
    def end(self) -> int:
        """The number of tokens from the root to the lower end."""
        return self.start + len(self.tokens)


class PrefixMatch:
    """The longest known prefix of a text: its first ``size`` tokens, along the nodes of ``path``."""

    __slots__ = ("path", "size")

    def __init__(self, path: list[PrefixNode], size: int) -> None:
        self.path = path
        self.size = size

    def reaches(self) -> dict[PrefixHolder, int]:
        """Return the holders of a part of the text, each with the position up to which its text agrees."""
        reaches: dict[PrefixHolder, int] = {}
        for node in self.path:
            end = min(node.end, self.size)
            for place in node.places:
                if place.start < end:
                    reaches[place] = end
        return reaches

    def continuation(self, n_most: int) -> TokenIds | None:
        """Return up to ``n_most`` tokens that follow the common prefix in a stored text; None if none does."""
        if not self.path:
            return None
        # Where the prefix would end within an image, it was cut back, perhaps to an earlier node.
        last = next((node for node in self.path if self.size < node.end), self.path[-1])
        if self.size < last.end:
            return last.tokens[self.size - last.start :][:n_most]
        if last.n_ends or not last.children:
            return None
        return next(reversed(last.children.values())).tokens[:n_most]


class PrefixTree:
    """Texts by common prefix. Edges are as long as possible: at each node the tree branches or a holder ends."""

    def __init__(self) -> None:
        self.root = PrefixNode(None, 0, np.empty(0, np.int32))

    def match(self, tokens: TokenIds) -> PrefixMatch:
        """Return the longest known prefix of ``tokens``, in time proportional to its length."""
        node, size, path = self.root, 0, []
        while size < len(tokens):
            child = node.children.get(int(tokens[size]))
            if child is None:
                break
            size += common_prefix(child.tokens, tokens[size:])
            path.append(child)
            node = child
            if size < child.end:
                break
        return PrefixMatch(path, size)

    def insert(self, place: PrefixHolder, tokens: TokenIds, below: PrefixNode | None = None) -> None:
        """Add ``place``, a new holder of the positions from ``place.start`` to the end of ``tokens``.

        Where the tokens before them end at the node ``below``, only those behind it are given.
        """
        node = self._grow(below or self.root, tokens)
        place.node, place.end = node, node.end
        node.n_ends += 1
        while node.parent is not None and node.end > place.start:
            node.places[place] = None
            node = node.parent

    def extend(self, place: PrefixHolder, tokens: TokenIds) -> None:
        """Extend the text of ``place`` to ``tokens``, which begin with its text so far."""
        old = place.node
        assert old is not None
        if len(tokens) == place.end:
            return
        node = self._grow(old, tokens[old.end :])
        place.node, place.end = node, len(tokens)
        node.n_ends += 1
        old.n_ends -= 1
        while node is not old:
            node.places[place] = None
            assert node.parent is not None
            node = node.parent
        self._tidy(old)

    def remove(self, place: PrefixHolder) -> None:
        """Remove a holder, and the texts that only it held."""
        node = place.node
        assert node is not None
        place.node = None
        node.n_ends -= 1
        above: PrefixNode | None = node
        while above is not None and above.parent is not None and above.end > place.start:
            del above.places[place]
            above = above.parent
        self._tidy(node)

    def _grow(self, node: PrefixNode, tokens: TokenIds) -> PrefixNode:
        """Return the node at the end of ``tokens`` below ``node``; missing nodes are made."""
        while len(tokens):
            child = node.children.get(int(tokens[0]))
            if child is None:
                child = PrefixNode(node, node.end, tokens.copy())
                node.children[int(tokens[0])] = child
                return child
            size = common_prefix(child.tokens, tokens)
            if size < len(child.tokens):
                child = self._split(child, size)
            node, tokens = child, tokens[size:]
        return node

    def _split(self, node: PrefixNode, size: int) -> PrefixNode:
        """Cut an edge after ``size`` tokens; return the upper part. Holders keep their lower node."""
        assert node.parent is not None
        upper = PrefixNode(node.parent, node.start, node.tokens[:size])
        node.parent.children[int(upper.tokens[0])] = upper
        node.tokens = node.tokens[size:]
        node.start += size
        node.parent = upper
        upper.children[int(node.tokens[0])] = node
        upper.places = {place: None for place in node.places if place.start < upper.end}
        return upper

    def _tidy(self, node: PrefixNode) -> None:
        """Drop unused nodes, and join edges at nodes without an end or a branch."""
        while node.parent is not None and not node.n_ends and not node.children:
            del node.parent.children[int(node.tokens[0])]
            node = node.parent
        if node.parent is not None and not node.n_ends and len(node.children) == 1:
            (child,) = node.children.values()
            child.tokens = np.concatenate((node.tokens, child.tokens))
            child.start = node.start
            child.parent = node.parent
            node.parent.children[int(child.tokens[0])] = child


def common_prefix(some: TokenIds, other: TokenIds) -> int:
    """Return how many tokens at the start are equal."""
    size = min(len(some), len(other))
    differs = some[:size] != other[:size]
    first = int(differs.argmax()) if size else 0
    return first if size and differs[first] else size


# The sign bit makes an id negative; the two lowest bits are the flags.
_SIGN, _FIRST, _SHARES_POSITION = -(2**31), 1, 2


def image_ids(key: bytes, n_rows: int, n_positions: int) -> TokenIds:
    """Return the ids of ``n_rows`` rows that take ``n_positions`` positions; ``key`` identifies the image."""
    noise = np.frombuffer(hashlib.shake_128(key).digest(4 * n_rows), "<i4")
    ids = (noise & ~(_FIRST | _SHARES_POSITION)) | np.int32(_SIGN)
    ids[0] |= _FIRST
    ids[n_positions:] |= _SHARES_POSITION
    return ids.astype(np.int32)


def salted_id(first: int, salt: str) -> int:
    """Return the id by which the first id of a text with this salt is known; no image's row is first with it."""
    (noise,) = np.frombuffer(hashlib.shake_128(f"{first} {salt}".encode()).digest(4), "<i4")
    return int((noise & ~(_FIRST | _SHARES_POSITION)) | np.int32(_SIGN))


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
