"""What a request waits for before it takes a slot, because waiting saves computing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from core.cache.segment import Blob, Segment
from core.slot import Slot


class Hold(Protocol):
    """A reason to wait, which ends by itself."""

    @property
    def is_over(self) -> bool:
        """True where there is nothing to wait for any more."""


class Following:
    """Another request is computing the beginning that this one has in common with it."""

    def __init__(self, leader: Slot, size: int) -> None:
        """Wait until ``leader`` holds ``size`` tokens, or has another request."""
        self._leader = leader
        self._tenancy = leader.n_tenants
        self._size = size

    @property
    def is_over(self) -> bool:
        """True where the leader is there, or left."""
        leader = self._leader
        return leader.is_free or leader.n_tenants != self._tenancy or leader.n_resident >= self._size


class Reading:
    """The disk is reading what the request begins with. ``blobs`` is what has come."""

    def __init__(self, segments: list[Segment], deadline: float, clock: Callable[[], float]) -> None:
        """Wait for ``segments`` until ``deadline``: by then computing would have been as fast."""
        self.blobs: dict[Segment, Blob] = {}
        self._left = set(segments)
        self._deadline = deadline
        self._clock = clock

    def arrived(self, segment: Segment, blob: Blob | None) -> None:
        """A segment was read; ``blob`` None: it is lost, and so is what comes behind it."""
        if segment in self._left:
            self._left.discard(segment)
            if blob is not None:
                self.blobs[segment] = blob

    @property
    def is_over(self) -> bool:
        """True where all has come, or the time is over."""
        return not self._left or self._clock() >= self._deadline
