"""Segments of texts outside the device, in RAM and on disk, and which of them go when a limit is reached."""

from __future__ import annotations

import hashlib
import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from core.kv_cache.disk_cache import (
    ID_BYTES,
    Blob,
    DiskTier,
    FolderEmptied,
    FoundOnDisk,
    ReadFromDisk,
    SegmentHeader,
    WrittenToDisk,
)
from core.kv_cache.prefix_tree import PrefixMatch, PrefixNode, PrefixTree, TokenIds


@dataclass(eq=False, slots=True)
class Segment:
    """Positions [start, end) of one text; ``parent`` and its ancestors hold those before ``start``.

    ``is_whole`` marks a recurrent state: it stands for the whole text up to ``end`` and cannot be cut. ``blob`` is None
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


T = TypeVar("T")
# Outdated entries that a heap may have beside as many as there are items: where nothing is evicted, nothing drops them.
_SPARE_ENTRIES = 64


class GreedyDual(Generic[T]):
    """Greedy-Dual-Size-Frequency (Cherkasova, HP Labs report HPL-98-69R1, 1998).

    An item's priority is its worth plus the cache's age at its last use. The age rises to the priority of each evicted
    item. So an unused item falls below new ones in the end, whatever it was worth.
    """

    def __init__(self) -> None:
        self._age = 0.0
        self._order = itertools.count()
        self._priorities: dict[T, tuple[float, int]] = {}
        self._heap: list[tuple[float, int, T]] = []

    def __contains__(self, item: object) -> bool:
        return item in self._priorities

    def touch(self, item: T, worth: float) -> None:
        """Add ``item``, or record a use of it."""
        entry = self._age + worth, next(self._order)
        self._priorities[item] = entry
        heapq.heappush(self._heap, (*entry, item))
        if len(self._heap) > 2 * len(self._priorities) + _SPARE_ENTRIES:
            self._heap = [(*entry, item) for item, entry in self._priorities.items()]
            heapq.heapify(self._heap)

    def forget(self, item: T) -> None:
        """Remove ``item`` without an eviction."""
        self._priorities.pop(item, None)

    def evict(self, may_go: Callable[[T], bool]) -> T | None:
        """Remove the item of least priority among those that ``may_go``, and return it; None if there is none."""
        kept = []
        found = None
        while self._heap:
            entry = heapq.heappop(self._heap)
            priority, order, item = entry
            if self._priorities.get(item) != (priority, order):
                continue  # it was touched or forgotten since
            if may_go(item):
                self._age = max(self._age, priority)
                del self._priorities[item]
                found = item
                break
            kept.append(entry)
        for entry in kept:
            heapq.heappush(self._heap, entry)
        return found


class SegmentLink(NamedTuple):
    """A segment, and the position up to which it matches a text."""

    segment: Segment
    end: int


class DiskReadWait:
    """A request waits for the disk to read its prefix. ``blobs`` holds what has been read."""

    def __init__(self, segments: list[Segment], deadline: float, clock: Callable[[], float]) -> None:
        """Wait for ``segments`` until ``deadline``; from then on computing them is faster."""
        self.blobs: dict[Segment, Blob] = {}
        self._left = set(segments)
        self._deadline = deadline
        self._clock = clock

    def arrived(self, segment: Segment, blob: Blob | None) -> None:
        """Take in a segment; ``blob`` None means that it is lost."""
        if segment in self._left:
            self._left.discard(segment)
            if blob is not None:
                self.blobs[segment] = blob

    @property
    def is_over(self) -> bool:
        """True if all segments have come, or the time is over."""
        return not self._left or self._clock() >= self._deadline


class SegmentStore:
    """Segments by the text that they belong to. A segment stays as long as one that continues it.

    Segments that do not fit into RAM move to the disk. Both tiers evict first what saves least for its bytes, and the
    end of a text before its beginning.
    """

    def __init__(
        self,
        tree: PrefixTree,
        *,
        ram_limit: int,
        disk: DiskTier | None = None,
        segment_size: int = 0,
        key: bytes | None = None,
    ) -> None:
        """Keep at most ``ram_limit`` bytes in RAM; ``tree`` may know other places too.

        A segment has at most ``segment_size`` tokens. ``key`` is that of files with texts of this model; None: there
        may be none.
        """
        self.ram_limit = ram_limit
        self.segment_size, self.key = segment_size, key
        self.n_ram_bytes = self.n_disk_bytes = 0
        self.tree = tree
        self._disk = disk
        self._segments: dict[bytes, Segment] = {}
        self._in_ram: GreedyDual[Segment] = GreedyDual()
        self._on_disk: GreedyDual[Segment] = GreedyDual()
        self._unwritten: dict[Segment, None] = {}
        self._waits: list[DiskReadWait] = []

    @property
    def can_keep(self) -> bool:
        """True if there is a place for segments."""
        return self.ram_limit > 0 or self._disk is not None

    def chain(self, match: PrefixMatch, start: int) -> list[SegmentLink]:
        """Return the segments that continue a text behind ``start`` tokens; a recurrent state is one, from 0."""
        spans = [(place, end) for place, end in match.reaches().items() if isinstance(place, Segment)]
        readable = [(place, end) for place, end in spans if place.is_readable]
        whole = [SegmentLink(place, end) for place, end in readable if place.is_whole and place.end <= end]
        if whole:
            best = max(whole, key=lambda link: link.segment.end)
            return [SegmentLink(best.segment, best.segment.end)] if best.segment.end > start else []
        parts = sorted(((p, end) for p, end in readable if not p.is_whole), key=lambda span: span[0].start)
        links: list[SegmentLink] = []
        index = 0
        while index < len(parts):
            best_link = None
            while index < len(parts) and parts[index][0].start <= start:
                place, end = parts[index]
                if end > start and (best_link is None or end > best_link.end):
                    best_link = SegmentLink(place, end)
                index += 1
            if best_link is None:
                break
            links.append(best_link)
            start = best_link.end
        return links

    def add(self, text: TokenIds, start: int, parent: Segment | None, blob: Blob, *, is_whole: bool = False) -> bool:
        """Keep positions from ``start`` to the end of ``text``, as a child of ``parent``; False if there is no room."""
        own = text[start:].copy()
        name = segment_id(parent, start, own, is_whole=is_whole)
        found = self._segments.get(name)
        if found is not None:
            return found.is_readable or self._to_ram(found, blob)
        segment = Segment(name, parent, start, len(text), own, blob.nbytes, is_whole)
        # A parent with a child is not evicted, so enter the child before making room for it.
        self._enter(segment)
        if self._to_ram(segment, blob) or self._to_disk(segment, blob):
            return True
        self._leave(segment)
        return False

    def touch(self, links: list[SegmentLink]) -> None:
        """Record a use of segments."""
        for link in links:
            segment = link.segment
            segment.n_hits += 1
            if segment in self._in_ram:
                self._in_ram.touch(segment, segment.worth)
            if segment in self._on_disk:
                self._on_disk.touch(segment, segment.worth)

    def forget(self, text: TokenIds) -> None:
        """Forget a text, on disk too, except for the segments that other texts continue.

        A text that continues only a part of one goes with it, since the rest of it would stay.
        """
        reaches = self.tree.match(text).reaches()
        own = [place for place, end in reaches.items() if isinstance(place, Segment) and place.end <= end]
        for segment in sorted(own, key=lambda segment: -segment.end):
            if all(child.start < segment.end for child in segment.children):
                self._drop(segment)

    def clear(self) -> None:
        """Forget everything, on disk too."""
        for segment in sorted(self._segments.values(), key=lambda segment: -segment.end):
            self._drop(segment)

    # -- RAM ----------------------------------------------------------------------------------------------------

    def _to_ram(self, segment: Segment, blob: Blob) -> bool:
        """Keep a segment's bytes in RAM; False if the limit does not allow it."""
        if segment.n_bytes > self.ram_limit:
            return False
        segment.blob = blob  # what goes from RAM to the disk may drive this segment from there
        while self.n_ram_bytes + segment.n_bytes > self.ram_limit:
            if not self._free_ram():
                segment.blob = None
                return False
        self.n_ram_bytes += segment.n_bytes
        self._in_ram.touch(segment, segment.worth)
        if self._disk is not None and not segment.is_on_disk and not segment.is_pending:
            self._unwritten[segment] = None
        return True

    def _free_ram(self) -> bool:
        """Evict one segment from RAM; False if none may go."""
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
        """Queue one segment for the disk that only RAM holds; False if there is none, or the disk is busy."""
        if self._disk is None or not self._unwritten or not self._disk.is_ready:
            return False
        for segment in list(self._unwritten):
            assert segment.blob is not None
            if self._to_disk(segment, segment.blob):
                return True
        return False

    @property
    def is_writing(self) -> bool:
        """True while reads, writes or events of the disk are pending."""
        return self._disk is not None and self._disk.is_busy

    def poll(self) -> None:
        """Take in what the disk's threads have done."""
        if self._disk is None:
            return
        for event in self._disk.poll():
            match event:
                case FoundOnDisk(header):
                    self._found(header)
                case WrittenToDisk(name, is_there):
                    (self._written if is_there else self._lost)(name)
                case ReadFromDisk(name, blob):
                    self._has_read(name, blob)
                case FolderEmptied():
                    for segment in [one for one in self._segments.values() if one.is_on_disk or one.is_pending]:
                        self._lost(segment.id)

    def read(self, segments: list[Segment], deadline: float, clock: Callable[[], float]) -> DiskReadWait:
        """Read segments from disk; who wants them waits until ``deadline`` at most."""
        assert self._disk is not None
        wait = DiskReadWait(segments, deadline, clock)
        self._waits = [one for one in self._waits if not one.is_over] + [wait]
        for segment in segments:
            self._disk.read(segment.id)
        return wait

    def wait(self, seconds: float) -> None:
        """Wait for an event of the disk, at most ``seconds``, and handle it."""
        if self._disk is not None:
            self._disk.wait(seconds)
            self.poll()

    def defer_writes(self, is_working: bool) -> None:
        """Delay writes while requests run (``is_working``)."""
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
                self._unwritten.pop(segment, None)  # the disk will not have room for it soon
                return False
            self._out_of_disk(oldest)
            if not oldest.is_readable:
                self._leave(oldest)
        header = SegmentHeader(
            segment.id,
            parent.id if parent is not None else None,
            segment.start,
            segment.tokens,
            segment.n_bytes,
            segment.is_whole,
        )
        if not disk.write(header, blob):
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

    def _found(self, header: SegmentHeader) -> None:
        """Take in a file of an earlier run; parents come before their children."""
        parent = self._segments.get(header.parent_id) if header.parent_id is not None else None
        segment = self._segments.get(header.id)
        if segment is not None and (segment.is_pending or segment.n_bytes != header.n_bytes):
            return  # it was added again meanwhile; writing it replaces the file
        if header.parent_id is not None and (parent is None or not (parent.is_on_disk or parent.is_pending)):
            assert self._disk is not None
            self._disk.remove(header.id)
            return
        if segment is None:
            segment = Segment(
                header.id, parent, header.start, header.end, header.tokens, header.n_bytes, header.is_whole
            )
            self._enter(segment)
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
        """Handle a segment that could not be written, or whose file is gone or damaged."""
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
        if blob is not None and segment.blob is None and not self._to_ram(segment, blob) and not segment.is_readable:
            self._drop(segment)
            return
        self._tell(segment, blob)
        if blob is None:
            self._lost(name)

    def _tell(self, segment: Segment, blob: Blob | None) -> None:
        for wait in self._waits:
            wait.arrived(segment, blob)

    # -- both ---------------------------------------------------------------------------------------------------

    def _enter(self, segment: Segment) -> None:
        self._segments[segment.id] = segment
        parent = segment.parent
        # Thousands may be found on disk at once, so none is looked for from its text's beginning without need.
        if parent is not None and parent.node is not None and parent.end == segment.start:
            self.tree.insert(segment, segment.tokens, parent.node)
        else:
            self.tree.insert(segment, _text_of(segment))
        if parent is not None:
            parent.children.add(segment)

    def _leave(self, segment: Segment) -> None:
        """Remove a segment that neither tier holds any more, and tell who waits for it."""
        assert not segment.children
        self._tell(segment, None)
        del self._segments[segment.id]
        self.tree.remove(segment)
        if segment.parent is not None:
            segment.parent.children.discard(segment)

    def _drop(self, segment: Segment) -> None:
        """Remove a segment and all that continue it."""
        for child in list(segment.children):
            self._drop(child)
        if segment.id in self._segments:
            self._out_of_ram(segment)
            self._out_of_disk(segment)
            self._leave(segment)


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
