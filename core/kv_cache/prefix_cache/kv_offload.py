"""What sequences hold, kept outside the device piece by piece, and brought back."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from core.kv_cache.prefix_cache.disk_read import DiskReadWait
from core.kv_cache.prefix_cache.kv_transfer import KvTransfer
from core.kv_cache.prefix_cache.prefix_tree import PrefixMatch, TokenIds
from core.kv_cache.prefix_cache.segment import Blob, Segment
from core.kv_cache.prefix_cache.segment_store import SegmentLink, SegmentStore

# Fewer tokens are not worth a piece of their own.
LEAST_SAVED = 16


class KvOffload:
    """Moves pieces of texts between the sequences of a context and a ``store``."""

    def __init__(
        self,
        store: SegmentStore,
        transfer: KvTransfer,
        *,
        piece_size: int,
        is_whole: bool,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """A piece has at most ``piece_size`` tokens.

        ``is_whole`` is for what can only be kept as a whole: running states, and what is in sight of a window.
        """
        self.tree = store.tree
        self.store = store
        self._transfer = transfer
        self._piece_size = piece_size
        self._is_whole = is_whole
        self._clock = clock
        self._readings: list[DiskReadWait] = []
        store.on_read = self._on_read

    def links(self, match: PrefixMatch, start: int) -> list[SegmentLink]:
        """Return the pieces that lead a text on from its first ``start`` tokens, as far as they go."""
        return self.store.chain(match, start)

    def loads(self, links: list[SegmentLink], read: Mapping[Segment, Blob]) -> list[tuple[SegmentLink, Blob]]:
        """Return the links whose bytes are here, in RAM or among those just ``read``, up to the first whose are not."""
        loads = []
        for link in links:
            blob = link.segment.blob if link.segment.blob is not None else read.get(link.segment)
            if blob is None:
                break
            loads.append((link, blob))
        return loads

    def read(self, segments: list[Segment], deadline: float) -> DiskReadWait:
        """Ask the disk for ``segments``, which nobody waits for beyond ``deadline``."""
        reading = DiskReadWait(segments, deadline, self._clock)
        self._readings = [one for one in self._readings if not one.is_over] + [reading]
        for segment in segments:
            self.store.read(segment)
        return reading

    def save_piece(self, sequence: int, text: TokenIds) -> bool:
        """Keep the next piece of the text that a sequence holds; False where all is kept, or nothing more can be."""
        if len(text) < LEAST_SAVED:
            return False
        links = self.store.chain(self.tree.match(text), 0)
        n_saved = links[-1].end if links else 0
        if len(text) - n_saved < LEAST_SAVED:
            return False
        if self._is_whole:
            blob = self._transfer.save_whole(sequence, len(text))
            return blob is not None and self.store.add(text, 0, None, blob, is_whole=True)
        end = min(n_saved + self._piece_size, len(text))
        blob = self._transfer.save(sequence, n_saved, end)
        parent = links[-1].segment if links else None
        return blob is not None and self.store.add(text[:end], n_saved, parent, blob)

    def load(self, link: SegmentLink, blob: Blob, sequence: int, start: int) -> bool:
        """Let a sequence that holds ``start`` tokens go on to the link's end; False where cells have no room."""
        if link.segment.is_whole:
            return self._transfer.load_whole(blob, sequence, link.end)
        return self._transfer.load(blob, sequence, start, link.end)

    def seconds_to_load(self, n_tokens: int) -> float:
        """Return what bringing back so many tokens takes lately."""
        return n_tokens * self._transfer.load_seconds

    def seconds_to_move(self, n_tokens: int) -> float:
        """Return what it takes to save so many tokens and to bring them back."""
        return n_tokens * (self._transfer.save_seconds + self._transfer.load_seconds)

    def _on_read(self, segment: Segment, blob: Blob | None) -> None:
        for reading in self._readings:
            reading.arrived(segment, blob)
