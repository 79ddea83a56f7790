"""The folder where segments of texts survive a restart: one for each model and set of options."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import psutil

from core.kv_cache.prefix_cache.segment import Blob, NotASegmentFile, SegmentHeader, digest_of, pack_head, read_head

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
        """Return the stored segments, parents before children; all other files are removed.

        Only the headers are read. Raises OSError.
        """
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
        partial = self._folder / f"{header.id.hex()}.{os.getpid()}{_PARTIAL}"
        try:
            handle = os.open(partial, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o600)
            with open(handle, "wb", buffering=0) as file:
                _write_all(file.fileno(), memoryview(pack_head(self._key, header, blob)))
                _write_all(file.fileno(), memoryview(blob.data))
            os.replace(partial, self._path(header.id))
        except OSError:
            with contextlib.suppress(OSError):
                partial.unlink()
            raise

    def read(self, name: bytes) -> Blob | None:
        """Return a segment's bytes. A file that is damaged is removed, and gives None."""
        path = self._path(name)
        try:
            with path.open("rb") as file:
                header, digest = read_head(file, self._key, os.fstat(file.fileno()).st_size)
                blob = np.empty(header.n_bytes, np.uint8)
                if header.id == name and file.readinto(blob.data) == header.n_bytes and digest_of(blob) == digest:
                    return blob
        except (OSError, NotASegmentFile):
            pass
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
                files += [(path.stat(), path) for path in folder.glob(f"*{_SUFFIX}") if path.is_file()]
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


def _write_all(handle: int, data: memoryview) -> None:
    while data:
        data = data[os.write(handle, data) :]


def _is_being_written(name: str) -> bool:
    """True for the unfinished file of another process that lives."""
    parts = name.split(".")
    if not name.endswith(_PARTIAL) or len(parts) != 3 or not parts[1].isdigit():
        return False
    return int(parts[1]) != os.getpid() and psutil.pid_exists(int(parts[1]))


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


# Bytes of a model's key, and of what is hashed of each file: its beginning and samples.
KEY_BYTES = 16
_HEAD_BYTES = 1 << 20
_N_SAMPLES, _SAMPLE_BYTES = 64, 4096


def model_key(paths: Sequence[Path], *options: object) -> bytes:
    """Return the key of a model's files and of the options that change what is computed. Raises OSError.

    It hashes each file's size, modification time, first megabyte (metadata and the first tensors), and 64 samples of 4
    KiB at equal distances. Reading all of a large file would take longer than the cache saves.
    """
    digest = hashlib.blake2b(repr(options).encode(), digest_size=KEY_BYTES)
    for path in paths:
        status = path.stat()
        digest.update(f"{status.st_size} {status.st_mtime_ns}".encode())
        with path.open("rb") as file:
            digest.update(file.read(_HEAD_BYTES))
            for index in range(_N_SAMPLES):
                file.seek(status.st_size * index // _N_SAMPLES)
                digest.update(file.read(_SAMPLE_BYTES))
    return digest.digest()
