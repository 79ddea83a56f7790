"""Pieces of texts outside the device: in RAM, and on disk where there is a folder for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from core.kv_cache.prefix_cache.disk_tier import (
    DiskTier,
    FolderEmptied,
    FoundOnDisk,
    LostOnDisk,
    ReadFromDisk,
    WrittenToDisk,
)
from core.kv_cache.prefix_cache.greedy_dual import GreedyDual
from core.kv_cache.prefix_cache.prefix_tree import PrefixMatch, PrefixTree, TokenIds
from core.kv_cache.prefix_cache.segment import Blob, Segment, SegmentHeader, segment_id


class SegmentLink(NamedTuple):
    """A segment, and up to which position it serves a text."""

    segment: Segment
    end: int


class SegmentStore:
    """Segments by the texts that they are pieces of. No stored piece is unreachable: what a child needs stays.

    What RAM has no room for goes on to the disk. Both tiers give up first what saves least for its bytes, and of one
    text always the end before the beginning.
    """

    def __init__(self, tree: PrefixTree, *, ram_limit: int, disk: DiskTier | None = None) -> None:
        """Keep at most ``ram_limit`` bytes in RAM; ``tree`` may know other places too."""
        self.ram_limit = ram_limit
        self.n_ram_bytes = self.n_disk_bytes = 0
        self.tree = tree
        self._disk = disk
        self._segments: dict[bytes, Segment] = {}
        self._in_ram: GreedyDual[Segment] = GreedyDual()
        self._on_disk: GreedyDual[Segment] = GreedyDual()
        self._unwritten: dict[Segment, None] = {}
        self.on_read: Callable[[Segment, Blob | None], None] = lambda segment, blob: None

    def __len__(self) -> int:
        return len(self._segments)

    def chain(self, match: PrefixMatch, start: int) -> list[SegmentLink]:
        """Return the segments that lead a text from ``start`` tokens on as far as they go, in order.

        A running state is one link, from nothing.
        """
        spans = [(place, end) for place, end in match.reaches().items() if isinstance(place, Segment)]
        readable = [(place, end) for place, end in spans if place.is_readable]
        whole = [SegmentLink(place, end) for place, end in readable if place.is_whole and place.end <= end]
        if whole:
            best = max(whole, key=lambda link: link.segment.end)
            return [SegmentLink(best.segment, best.segment.end)] if best.segment.end > start else []
        pieces = sorted(((p, end) for p, end in readable if not p.is_whole), key=lambda span: span[0].start)
        links: list[SegmentLink] = []
        index = 0
        while index < len(pieces):
            best_link = None
            while index < len(pieces) and pieces[index][0].start <= start:
                place, end = pieces[index]
                if end > start and (best_link is None or end > best_link.end):
                    best_link = SegmentLink(place, end)
                index += 1
            if best_link is None:
                break
            links.append(best_link)
            start = best_link.end
        return links

    def add(self, text: TokenIds, start: int, parent: Segment | None, blob: Blob, *, is_whole: bool = False) -> bool:
        """Keep positions from ``start`` to the end of ``text``, behind those of ``parent``; False: there is no room."""
        own = text[start:].copy()
        name = segment_id(parent, start, own, is_whole=is_whole)
        found = self._segments.get(name)
        if found is not None:
            return found.is_readable or self._to_ram(found, blob)
        segment = Segment(name, parent, start, len(text), own, blob.nbytes, is_whole)
        # Now its parent has a child and cannot go to make room for it.
        self._enter(segment, text)
        if self._to_ram(segment, blob) or self._to_disk(segment, blob):
            return True
        self._leave(segment)
        return False

    def touch(self, links: list[SegmentLink]) -> None:
        """Segments were of use."""
        for link in links:
            segment = link.segment
            segment.n_hits += 1
            if segment in self._in_ram:
                self._in_ram.touch(segment, segment.worth)
            if segment in self._on_disk:
                self._on_disk.touch(segment, segment.worth)

    def clear(self) -> None:
        """Forget everything, on disk too."""
        for segment in sorted(self._segments.values(), key=lambda segment: -segment.end):
            self._drop(segment)

    # -- RAM ----------------------------------------------------------------------------------------------------

    def _to_ram(self, segment: Segment, blob: Blob) -> bool:
        """Keep a segment's bytes in RAM, if the limit allows."""
        if segment.n_bytes > self.ram_limit:
            return False
        while self.n_ram_bytes + segment.n_bytes > self.ram_limit:
            if not self._free_ram():
                return False
        segment.blob = blob
        self.n_ram_bytes += segment.n_bytes
        self._in_ram.touch(segment, segment.worth)
        if self._disk is not None and not segment.is_on_disk and not segment.is_pending:
            self._unwritten[segment] = None
        return True

    def _free_ram(self) -> bool:
        """Take one segment out of RAM; False where none may go."""
        segment = self._in_ram.evict(lambda one: one.is_on_disk or not one.children)
        if segment is None:
            return False
        blob = segment.blob
        assert blob is not None
        if not segment.is_on_disk and not segment.is_pending:
            self._to_disk(segment, blob)
        self._out_of_ram(segment)
        if not segment.is_on_disk and not segment.is_pending:
            self._leave(segment)
        return True

    def _out_of_ram(self, segment: Segment) -> None:
        if segment.blob is not None:
            self._in_ram.forget(segment)
            self._unwritten.pop(segment, None)
            self.n_ram_bytes -= segment.n_bytes
            segment.blob = None

    # -- disk ---------------------------------------------------------------------------------------------------

    def write_behind(self) -> bool:
        """Hand the disk one segment that only RAM holds; False where there is none, or the disk is busy."""
        if self._disk is None or not self._unwritten or not self._disk.is_ready:
            return False
        for segment in list(self._unwritten):
            assert segment.blob is not None
            if self._to_disk(segment, segment.blob):
                return True
        return False

    @property
    def is_writing(self) -> bool:
        """True while the disk has something to do or to say."""
        return self._disk is not None and self._disk.is_busy

    def poll(self) -> None:
        """Take in what the disk's threads have done."""
        if self._disk is None:
            return
        for event in self._disk.poll():
            match event:
                case FoundOnDisk(piece):
                    self._found(piece)
                case WrittenToDisk(name):
                    self._written(name)
                case LostOnDisk(name):
                    self._lost(name)
                case ReadFromDisk(name, blob):
                    self._has_read(name, blob)
                case FolderEmptied():
                    for segment in [one for one in self._segments.values() if one.is_on_disk or one.is_pending]:
                        self._lost(segment.id)

    def read(self, segment: Segment) -> None:
        """Ask the disk for a segment; ``on_read`` is told."""
        assert self._disk is not None
        self._disk.read(segment.id)

    def wait(self, seconds: float) -> None:
        """Wait until the disk has something to say, at most so long, and take it in."""
        if self._disk is not None:
            self._disk.wait(seconds)
            self.poll()

    def defer_writes(self, is_working: bool) -> None:
        """Requests are at work, or are not any more."""
        if self._disk is not None:
            self._disk.defer_writes(is_working)

    def close(self) -> None:
        """End the disk's threads."""
        if self._disk is not None:
            self._disk.close()

    def _to_disk(self, segment: Segment, blob: Blob) -> bool:
        disk, parent = self._disk, segment.parent
        if disk is None or segment.is_pending or segment.is_on_disk:
            return False
        if parent is not None and not parent.is_on_disk and not parent.is_pending:
            return False
        while self.n_disk_bytes + segment.n_bytes > disk.limit:
            oldest = self._on_disk.evict(lambda one: one is not parent and _may_leave_disk(one))
            if oldest is None:
                self._unwritten.pop(segment, None)  # there will be no room for it soon
                return False
            self._out_of_disk(oldest)
            if not oldest.is_readable:
                self._leave(oldest)
        piece = SegmentHeader(
            segment.id,
            parent.id if parent is not None else None,
            segment.start,
            segment.tokens,
            segment.n_bytes,
            segment.is_whole,
        )
        if not disk.write(piece, blob):
            return False
        segment.is_pending = True
        self._unwritten.pop(segment, None)
        self.n_disk_bytes += segment.n_bytes
        return True

    def _out_of_disk(self, segment: Segment) -> None:
        if segment.is_on_disk or segment.is_pending:
            assert self._disk is not None
            self._on_disk.forget(segment)
            self._disk.remove(segment.id)
            segment.is_on_disk = segment.is_pending = False
            self.n_disk_bytes -= segment.n_bytes

    def _found(self, piece: SegmentHeader) -> None:
        """A file of an earlier run: parents come before their children."""
        parent = self._segments.get(piece.parent_id) if piece.parent_id is not None else None
        segment = self._segments.get(piece.id)
        if segment is not None and (segment.is_pending or segment.n_bytes != piece.n_bytes):
            return  # it was kept again meanwhile; writing it replaces the file
        if piece.parent_id is not None and (parent is None or not (parent.is_on_disk or parent.is_pending)):
            assert self._disk is not None
            self._disk.remove(piece.id)
            return
        if segment is None:
            segment = Segment(piece.id, parent, piece.start, piece.end, piece.tokens, piece.n_bytes, piece.is_whole)
            self._enter(segment, _text_of(segment))
        segment.is_on_disk = True
        self._unwritten.pop(segment, None)
        self.n_disk_bytes += segment.n_bytes
        self._on_disk.touch(segment, segment.worth)

    def _written(self, name: bytes) -> None:
        segment = self._segments.get(name)
        if segment is not None and segment.is_pending:
            segment.is_pending, segment.is_on_disk = False, True
            self._on_disk.touch(segment, segment.worth)

    def _lost(self, name: bytes) -> None:
        """A segment could not be written, or its file is gone or not what it should be."""
        segment = self._segments.get(name)
        if segment is None or not (segment.is_pending or segment.is_on_disk):
            return
        for child in list(segment.children):
            self._lost(child.id)
        self._out_of_disk(segment)
        if segment.blob is None:
            self._drop(segment)
        else:
            self._unwritten[segment] = None

    def _has_read(self, name: bytes, blob: Blob | None) -> None:
        segment = self._segments.get(name)
        if segment is None:
            return
        if blob is not None and segment.blob is None:
            self._to_ram(segment, blob)
        self.on_read(segment, blob)
        if blob is None:
            self._lost(name)

    # -- both ---------------------------------------------------------------------------------------------------

    def _enter(self, segment: Segment, text: TokenIds) -> None:
        self._segments[segment.id] = segment
        self.tree.insert(segment, text)
        if segment.parent is not None:
            segment.parent.children.add(segment)

    def _leave(self, segment: Segment) -> None:
        """Nothing holds the segment any more: who waits for it need not."""
        assert not segment.children
        self.on_read(segment, None)
        del self._segments[segment.id]
        self.tree.remove(segment)
        if segment.parent is not None:
            segment.parent.children.discard(segment)

    def _drop(self, segment: Segment) -> None:
        """Forget a segment and all that needs it."""
        for child in list(segment.children):
            self._drop(child)
        if segment.id in self._segments:
            self._out_of_ram(segment)
            self._out_of_disk(segment)
            self._leave(segment)

    def check(self) -> None:
        """Raise AssertionError where the store contradicts itself; for tests."""
        segments = self._segments.values()
        in_ram = [segment for segment in segments if segment.blob is not None]
        on_disk = [segment for segment in segments if segment.is_on_disk or segment.is_pending]
        assert all(one.blob is None or one.blob.nbytes == one.n_bytes for one in in_ram)
        assert self.n_ram_bytes == sum(segment.n_bytes for segment in in_ram)
        assert self.n_ram_bytes <= self.ram_limit
        assert self.n_disk_bytes == sum(segment.n_bytes for segment in on_disk)
        assert self._disk is None or self.n_disk_bytes <= self._disk.limit
        assert set(in_ram) == {segment for segment in segments if segment in self._in_ram}
        for segment in segments:
            assert segment.blob is not None or segment.is_on_disk or segment.is_pending, "a segment that is nowhere"
            assert segment.node is not None
            assert segment.end == segment.start + len(segment.tokens) == segment.node.end
            parent = segment.parent
            assert all(self._segments.get(child.id) is child for child in segment.children)
            if parent is None:
                assert segment.start == 0 or segment.is_whole, "a piece without a beginning"
                continue
            assert self._segments.get(parent.id) is parent, "a piece that cannot be reached"
            assert segment in parent.children
            assert parent.start < segment.start <= parent.end
            if segment.is_on_disk:
                assert parent.is_on_disk or parent.is_pending, "a file that the next start could not reach"


def _may_leave_disk(segment: Segment) -> bool:
    if any(child.is_on_disk or child.is_pending for child in segment.children):
        return False
    return segment.blob is not None or not segment.children


def _text_of(segment: Segment) -> TokenIds:
    """Return the whole text up to a segment's end."""
    parts = [segment.tokens]
    start, above = segment.start, segment.parent
    while above is not None:
        parts.append(above.tokens[: start - above.start])
        start, above = above.start, above.parent
    return np.concatenate(parts[::-1])
