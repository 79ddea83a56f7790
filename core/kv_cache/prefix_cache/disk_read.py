"""A read from disk that a request waits for."""

from __future__ import annotations

from collections.abc import Callable

from core.kv_cache.prefix_cache.segment import Blob, Segment


class DiskReadWait:
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
