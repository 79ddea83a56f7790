"""The content hashes that the Hub gives: SHA-256 for large files, git's own for small ones."""

from __future__ import annotations

import hashlib
from typing import Protocol


class Hasher(Protocol):
    """What hashlib's objects do."""

    def update(self, data: bytes, /) -> None:
        """Take more bytes."""

    def hexdigest(self) -> str:
        """The hash so far."""


def hasher(content: str, n_bytes: int) -> Hasher:
    """A hasher whose digest after ``n_bytes`` is to equal the hash in ``content`` ("sha256:..." or "git:...")."""
    if content.startswith("git:"):
        return hashlib.sha1(b"blob %d\0" % n_bytes, usedforsecurity=False)
    return hashlib.sha256()


def digest_of(content: str) -> str:
    """The hash itself."""
    return content.partition(":")[2]
