"""Segments of texts on disk, where they survive a restart: their files, a model's folder, and the threads for both."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import queue
import shutil
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt
import psutil

from core.kv_cache.prefix_tree import TokenIds
from models.files.integrity import identity

Blob = npt.NDArray[np.uint8]
"""The cells of a sequence in llama.cpp's own format."""

# Bytes of an id: too many for two texts to share one by chance.
ID_BYTES = 16
# Magic, model key, id, parent's id (zeros: none), bytes of the blob, start, tokens, is a state, blob's digest.
_HEAD = struct.Struct("<8s16s16s16sQIIB7x16s")
_MAGIC = b"SLIPKV1\n"
_NO_PARENT = bytes(ID_BYTES)
_DIGEST_BYTES = 16  # against damage by chance
# No context is longer. The limit keeps a damaged length from allocating gigabytes.
_MOST_TOKENS = 1 << 24


class NotASegmentFile(Exception):
    """The file is damaged, or belongs to another model; its text says which."""

    def __init__(self, why: str = "it is damaged") -> None:
        super().__init__(why)


class SegmentHeader(NamedTuple):
    """The header of a segment's file; ``n_bytes`` is the size of the blob behind it."""

    id: bytes
    parent_id: bytes | None
    start: int
    tokens: TokenIds
    n_bytes: int
    is_whole: bool

    @property
    def end(self) -> int:
        """The position after the last token."""
        return self.start + len(self.tokens)


def pack_head(key: bytes, header: SegmentHeader, blob: Blob) -> bytes:
    """Return the bytes before the blob in a file of the model ``key``."""
    parent = header.parent_id or _NO_PARENT
    sizes = blob.nbytes, header.start, len(header.tokens), header.is_whole
    head = _HEAD.pack(_MAGIC, key, header.id, parent, *sizes, _digest(blob.data))
    head += np.ascontiguousarray(header.tokens, "<i4").tobytes()
    return head + _digest(head)


def read_head(file: BinaryIO, key: bytes, n_file_bytes: int) -> tuple[SegmentHeader, bytes]:
    """Return a file's header and its blob's digest; the blob comes next. Raises NotASegmentFile and OSError."""
    head = file.read(_HEAD.size)
    if not head.startswith(_MAGIC):
        raise NotASegmentFile("another program has written it")
    if len(head) < _HEAD.size:
        raise NotASegmentFile
    _, its_key, name, parent, n_bytes, start, n_tokens, is_whole, digest = _HEAD.unpack(head)
    if its_key != key:
        raise NotASegmentFile("it is of another model, other options, another llama.cpp or an earlier Slipstream")
    if not 0 < n_tokens <= _MOST_TOKENS:
        raise NotASegmentFile
    if n_file_bytes != _HEAD.size + 4 * n_tokens + _DIGEST_BYTES + n_bytes:
        raise NotASegmentFile
    tokens = file.read(4 * n_tokens)
    if file.read(_DIGEST_BYTES) != _digest(head + tokens):
        raise NotASegmentFile
    ids = np.frombuffer(tokens, "<i4").astype(np.int32)
    return SegmentHeader(name, None if parent == _NO_PARENT else parent, start, ids, n_bytes, bool(is_whole)), digest


def write_segment(path: Path, key: bytes, header: SegmentHeader, blob: Blob) -> int:
    """Write a segment's file atomically, for its owner alone; return its bytes. Raises OSError."""
    partial = path.with_name(f"{path.name}.{os.getpid()}{_PARTIAL}")
    head = pack_head(key, header, blob)
    try:
        handle = os.open(partial, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o600)
        with open(handle, "wb") as file:
            file.write(head)
            file.write(blob.data)
        os.replace(partial, path)
    except OSError:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise
    return len(head) + blob.nbytes


def read_segment(path: Path, key: bytes) -> tuple[SegmentHeader, Blob]:
    """Return what a segment's file holds. Raises NotASegmentFile and OSError."""
    with path.open("rb") as file:
        header, digest = read_head(file, key, os.fstat(file.fileno()).st_size)
        blob = np.empty(header.n_bytes, np.uint8)
        if file.readinto(blob.data) != header.n_bytes or _digest(blob.data) != digest:
            raise NotASegmentFile
    return header, blob


def _digest(data: bytes | memoryview) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest()


FOLDER = "prefixes"
_SUFFIX, _PARTIAL = ".kv", ".partial"
# Files of other models may take this share of the limit; the oldest beyond it are deleted.
_OTHERS_SHARE = 0.5
# Bytes that always stay free on the disk.
_LEFT_FREE = 256 << 20


class SegmentFolder:
    """Files of one model. Only their owner may read them, because they reveal the texts of chats."""

    def __init__(self, root: Path, key: bytes, limit: int) -> None:
        """Keep the files of model ``key`` below ``root``, which holds at most ``limit`` bytes for all models."""
        self.limit = limit
        self._root = root
        self._key = key
        self._folder = root / key.hex()

    def open(self) -> None:
        """Make the folder, and delete the oldest files of other models. Raises OSError."""
        self.make()
        self.limit -= self._trim_others(int(self.limit * _OTHERS_SHARE))

    def make(self) -> bool:
        """Make the folder; return False if it was there. Raises OSError."""
        if self._folder.is_dir():
            return False
        for folder in (self._root, self._folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if sys.platform != "win32":
                folder.chmod(0o700)
        return True

    def scan(self) -> Iterator[SegmentHeader]:
        """Return the stored segments by their headers, parents first; all other files are removed. Raises OSError."""
        headers = sorted(self._headers(), key=lambda header: header.start)
        known: dict[bytes, int] = {}
        n_bytes = 0
        for header in headers:
            is_beginning = header.parent_id is None and (header.start == 0 or header.is_whole)
            # The parent must still reach up to the start of this segment.
            parent_end = known.get(header.parent_id, 0) if header.parent_id is not None else 0
            if not (is_beginning or 0 < header.start <= parent_end) or n_bytes + header.n_bytes > self.limit:
                self.remove(header.id)
                continue
            known[header.id] = header.end
            n_bytes += header.n_bytes
            yield header

    def write(self, header: SegmentHeader, blob: Blob) -> None:
        """Write a segment's file atomically. Raises OSError."""
        if shutil.disk_usage(self._folder).free < blob.nbytes + _LEFT_FREE:
            raise OSError(28, "the disk is nearly full")
        write_segment(self._path(header.id), self._key, header, blob)

    def read(self, name: bytes) -> Blob | None:
        """Return a segment's bytes. A file that is damaged is removed, and gives None."""
        with contextlib.suppress(OSError, NotASegmentFile):
            header, blob = read_segment(self._path(name), self._key)
            if header.id == name:
                return blob
        self.remove(name)
        return None

    def remove(self, name: bytes) -> None:
        """Delete a file; errors are ignored."""
        _remove(self._path(name))

    def _path(self, name: bytes) -> Path:
        return self._folder / f"{name.hex()}{_SUFFIX}"

    def _headers(self) -> Iterator[SegmentHeader]:
        with os.scandir(self._folder) as entries:
            for entry in list(entries):
                header = self._header(entry)
                if header is not None:
                    yield header
                elif not _is_being_written(entry.name):
                    _remove(Path(entry.path))

    def _header(self, entry: os.DirEntry[str]) -> SegmentHeader | None:
        try:
            if not entry.is_file(follow_symlinks=False) or not entry.name.endswith(_SUFFIX):
                return None
            with open(entry.path, "rb") as file:
                header, _ = read_head(file, self._key, entry.stat().st_size)
        except (OSError, NotASegmentFile):
            return None
        return header if entry.name == f"{header.id.hex()}{_SUFFIX}" else None

    def _trim_others(self, most: int) -> int:
        """Delete the oldest files of other models until they take at most ``most`` bytes; return what they take."""
        files = []
        for folder in self._root.iterdir():
            if folder != self._folder and folder.is_dir() and not folder.is_symlink():
                for path in folder.glob(f"*{_SUFFIX}"):
                    with contextlib.suppress(OSError):  # another engine may just have deleted it
                        files.append((path.stat(), path))
        n_bytes = sum(status.st_size for status, _ in files)
        for status, path in sorted(files, key=lambda file: file[0].st_mtime):
            if n_bytes <= most:
                break
            _remove(path)
            n_bytes -= status.st_size
        return n_bytes


def clear(cache_folder: Path) -> int:
    """Delete the stored texts of all models below ``cache_folder``; return their bytes. Raises OSError."""
    n_bytes = size(cache_folder)
    if (cache_folder / FOLDER).exists():
        shutil.rmtree(cache_folder / FOLDER)
    return n_bytes


def size(cache_folder: Path) -> int:
    """Return the bytes of the stored texts of all models below ``cache_folder``."""
    n_bytes = 0
    for path in (cache_folder / FOLDER).rglob(f"*{_SUFFIX}"):
        with contextlib.suppress(OSError):
            n_bytes += path.stat().st_size
    return n_bytes


def _is_being_written(name: str) -> bool:
    """True for the unfinished file of another process that lives."""
    _, _, process = name.removesuffix(_PARTIAL).rpartition(".")
    if not name.endswith(_PARTIAL) or not process.isdigit():
        return False
    return int(process) != os.getpid() and psutil.pid_exists(int(process))


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def model_key(paths: Sequence[Path], *options: object) -> bytes:
    """Return the key of a model's files and of the options that change what is computed. Raises OSError."""
    times = tuple(path.stat().st_mtime_ns for path in paths)
    return _digest(repr((identity(paths), times, options)).encode())


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
    """A segment was written, or could not be: then ``is_there`` is False."""

    id: bytes
    is_there: bool


class ReadFromDisk(NamedTuple):
    """A segment was read. ``blob`` is None if the file is gone or was damaged."""

    id: bytes
    blob: Blob | None


class FolderEmptied(NamedTuple):
    """Another program has deleted the folder, and with it all segments written before."""


DiskEvent = FoundOnDisk | WrittenToDisk | ReadFromDisk | FolderEmptied


class DiskTier:
    """A folder with a thread for reads and one for writes: a slow write delays no read. ``poll`` gives results."""

    def __init__(self, folder: SegmentFolder) -> None:
        """Start to scan ``folder``; until that is done, nothing is written."""
        self._folder = folder
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
        return self._is_open and self._n_queued < _MOST_QUEUED and time.monotonic() >= self._ready_at

    @property
    def is_busy(self) -> bool:
        """True while reads or writes are pending, or events wait for ``poll``."""
        return self._n_busy > 0 or not self._events.empty()

    def defer_writes(self, is_working: bool) -> None:
        """Delay writes while requests run (``is_working``)."""
        if is_working is self._is_quiet.is_set():
            (self._is_quiet.clear if is_working else self._is_quiet.set)()

    def write(self, header: SegmentHeader, blob: Blob) -> bool:
        """Queue a segment, which ends with ``WrittenToDisk``; False if it is not accepted."""
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
        is_there = False
        if time.monotonic() >= self._ready_at:
            try:
                if self._folder.make():
                    self._say(FolderEmptied())
                self._folder.write(header, blob)
                is_there = True
            except OSError as error:
                self._ready_at = time.monotonic() + _PAUSE
                self._complain(error)
        self._say(WrittenToDisk(header.id, is_there))
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
