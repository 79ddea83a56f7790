"""Reads and writes segments on threads of their own, so that no request waits for a write."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from core.kv_cache.prefix_cache.disk_folder import SegmentFolder
from core.kv_cache.prefix_cache.segment import Blob, SegmentHeader

_log = logging.getLogger(__name__)
# Bytes that may wait to be written; further segments are not written.
_MOST_QUEUED = 128 << 20
# Seconds by which each write is delayed while requests run, because they need the cores.
_LONGEST_DELAY = 2.0
# Seconds without writes after a failed one.
_PAUSE = 30.0


class FoundOnDisk(NamedTuple):
    """The scan has found a segment of an earlier run."""

    header: SegmentHeader


class WrittenToDisk(NamedTuple):
    """A segment was written."""

    id: bytes


class LostOnDisk(NamedTuple):
    """A segment could not be written."""

    id: bytes


class ReadFromDisk(NamedTuple):
    """A segment was read. ``blob`` is None if the file is gone or was damaged."""

    id: bytes
    blob: Blob | None


class FolderEmptied(NamedTuple):
    """Another program has deleted the folder, and with it all segments written before."""


DiskEvent = FoundOnDisk | WrittenToDisk | LostOnDisk | ReadFromDisk | FolderEmptied


class DiskTier:
    """One folder with a thread for reads and one for writes, so that a slow write delays no read.

    ``poll`` gives results.
    """

    def __init__(self, folder: SegmentFolder, clock: Callable[[], float] = time.monotonic) -> None:
        """Start to scan ``folder``; until that is done, nothing is written."""
        self._folder = folder
        self._clock = clock
        self._events: queue.SimpleQueue[DiskEvent] = queue.SimpleQueue()
        self._reads: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._writes: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._n_queued, self._n_busy = 0, 1  # busy with the scan
        self._is_open = self._is_closed = self._has_complained = False
        self._ready_at = 0.0
        self._news = threading.Event()
        self._is_quiet = threading.Event()
        self._is_quiet.set()
        self._threads = [
            threading.Thread(target=self._work_reads, name="cache-reader", daemon=True),
            threading.Thread(target=self._work_writes, name="cache-writer", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    @property
    def limit(self) -> int:
        """Bytes that the files may take."""
        return self._folder.limit

    @property
    def is_ready(self) -> bool:
        """True if ``write`` would accept a segment now."""
        return self._is_open and self._n_queued < _MOST_QUEUED and self._clock() >= self._ready_at

    @property
    def is_busy(self) -> bool:
        """True while reads or writes are pending, or events wait for ``poll``."""
        return self._n_busy > 0 or not self._events.empty()

    def defer_writes(self, is_working: bool) -> None:
        """Delay writes while requests run (``is_working``)."""
        if is_working is self._is_quiet.is_set():
            (self._is_quiet.clear if is_working else self._is_quiet.set)()

    def write(self, header: SegmentHeader, blob: Blob) -> bool:
        """Queue a segment, which ends in ``WrittenToDisk`` or ``LostOnDisk``; False if it is not accepted."""
        if not self.is_ready:
            return False
        self._add(blob.nbytes)
        self._writes.put(lambda: self._write(header, blob))
        return True

    def remove(self, name: bytes) -> None:
        """Queue the deletion of a segment's file, after the writes before it."""
        self._add(0)
        self._writes.put(lambda: self._remove(name))

    def read(self, name: bytes) -> None:
        """Queue a read, which ends with ``ReadFromDisk``."""
        self._add(0)
        self._reads.put(name)

    def poll(self) -> list[DiskEvent]:
        """Return the events since the last call."""
        self._news.clear()
        events = []
        while not self._events.empty():
            events.append(self._events.get())
        return events

    def wait(self, seconds: float) -> None:
        """Wait for the next event, at most ``seconds``."""
        self._news.wait(seconds)

    def close(self) -> None:
        """End the threads after their present job; queued writes are dropped."""
        self._is_closed = True
        self._is_quiet.set()
        self._reads.put(None)
        self._writes.put(None)
        for thread in self._threads:
            thread.join()

    # -- on the threads -----------------------------------------------------------------------------------------

    def _work_reads(self) -> None:
        try:
            self._folder.open()
            for header in self._folder.scan():
                self._say(FoundOnDisk(header))
            self._is_open = True
        except OSError as error:
            self._complain(error)
        self._add(0, -1)
        while (name := self._reads.get()) is not None and not self._is_closed:
            self._say(ReadFromDisk(name, self._folder.read(name)))
            self._add(0, -1)

    def _work_writes(self) -> None:
        while (job := self._writes.get()) is not None and not self._is_closed:
            job()

    def _write(self, header: SegmentHeader, blob: Blob) -> None:
        self._is_quiet.wait(_LONGEST_DELAY)
        event: DiskEvent = LostOnDisk(header.id)
        if self._clock() >= self._ready_at:
            try:
                if self._folder.make():
                    self._say(FolderEmptied())
                self._folder.write(header, blob)
                event = WrittenToDisk(header.id)
            except OSError as error:
                self._ready_at = self._clock() + _PAUSE
                self._complain(error)
        self._say(event)
        self._add(-blob.nbytes, -1)

    def _remove(self, name: bytes) -> None:
        self._folder.remove(name)
        self._add(0, -1)

    def _say(self, event: DiskEvent) -> None:
        self._events.put(event)
        self._news.set()

    def _add(self, n_bytes: int, n_jobs: int = 1) -> None:
        with self._lock:
            self._n_queued += n_bytes
            self._n_busy += n_jobs

    def _complain(self, error: OSError) -> None:
        if not self._has_complained:
            self._has_complained = True
            _log.warning("Texts are not kept on disk: %s. Replies are not affected.", error.strerror or error)
