"""Checks whether downloaded files are unchanged, finds those that were moved or deleted, and identifies models."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from models.files.disk import is_there
from models.files.errors import Stopped
from models.files.provenance import (
    RECORDS_FOLDER,
    FileOrigin,
    is_verified,
    read_record,
    remove_record,
    write_record,
)
from models.formatting.sentence import Sentence

# Bytes that are hashed at a time.
_CHUNK = 1 << 20
# No file has this modification time.
_NEVER = -1

HashCallback = Callable[[int, int], None]
"""Called with the bytes read and the total."""


class IntegrityState(StrEnum):
    """The state of a model's files, the worst last."""

    VERIFIED = "verified"
    UNKNOWN = "not downloaded here"
    CHANGED = "changed since download"


@dataclass(frozen=True, slots=True)
class MovedFile:
    """A downloaded file that was moved within the models' folder."""

    record: FileOrigin
    before: Path
    now: Path

    @property
    def sentence(self) -> str:
        """The news for the user: the file has moved."""
        return Sentence("{name} was moved: it is {now} now.", name=self.before.name, now=self.now)


@dataclass(frozen=True, slots=True)
class GoneFile:
    """A downloaded file that is no longer there."""

    record: FileOrigin
    path: Path

    @property
    def sentence(self) -> str:
        """The news for the user, with advice if the file cannot be downloaded again."""
        what = Sentence("{path} was deleted or moved away by another program.", path=self.path)
        if self.record.repo_id:
            return what
        return Sentence(
            "{what} It was made from {made_from}: quantise that again.",
            what=what,
            made_from=self.record.made_from or Sentence("another model"),
        )


def integrity_of(folder: Path, files: Iterable[Path]) -> IntegrityState:
    """The worst state of these files."""
    return worst(_standing_of(folder, file) for file in files)


def worst(found: Iterable[IntegrityState]) -> IntegrityState:
    """The worst of the states of a model's files."""
    return max(found, key=list(IntegrityState).index, default=IntegrityState.VERIFIED)


def look_for_changes(folder: Path) -> tuple[MovedFile | GoneFile, ...]:
    """Downloaded files that were moved or deleted by other programs.

    A moved file is recognised by its size and time of change; nothing is read. Files that were moved
    out of ``folder`` count as gone.
    """
    missing = [(path, record) for path, record in _records(folder) if _is_gone(path)]
    if not missing:
        return ()
    strangers = {
        (status.st_size, status.st_mtime_ns): path
        for path in _models(folder)
        if read_record(folder, path) is None and (status := _status(path)) is not None
    }
    changes: list[MovedFile | GoneFile] = []
    for path, record in missing:
        now = strangers.get((record.n_bytes, record.mtime_ns))
        changes.append(GoneFile(record, path) if now is None else MovedFile(record, path, now))
    return tuple(changes)


def accept_changes(folder: Path, changes: Iterable[MovedFile | GoneFile]) -> None:
    """Update the records: move those of moved files, remove those of deleted files. Raises OSError."""
    for change in changes:
        if isinstance(change, MovedFile):
            write_record(folder, change.now, change.record)
        remove_record(folder, change.before if isinstance(change, MovedFile) else change.path)


def verify(folder: Path, file: Path, report: HashCallback, stop: threading.Event | None = None) -> IntegrityState:
    """Read ``file``, compare its hash with the record, and update the record.

    Raises OSError, and Stopped if ``stop`` is set meanwhile.
    """
    record = read_record(folder, file)
    if record is None:
        return IntegrityState.UNKNOWN
    status = file.stat()
    is_same = has_content(file, record.content, report, stop)
    # A changed file must not count as verified because size and time are unchanged.
    known = replace(record, n_bytes=status.st_size, mtime_ns=status.st_mtime_ns if is_same else _NEVER)
    if known != record:
        write_record(folder, file, known)
    return IntegrityState.VERIFIED if is_same else IntegrityState.CHANGED


def has_content(file: Path, content: str, report: HashCallback, stop: threading.Event | None = None) -> bool:
    """Read ``file``, and return whether its hash is ``content``; raises OSError, and Stopped as ``verify`` does."""
    n_bytes, n_read = file.stat().st_size, 0
    hashed = hasher(content, n_bytes)
    with open(file, "rb") as opened:
        while chunk := opened.read(_CHUNK):
            if stop is not None and stop.is_set():
                raise Stopped
            hashed.update(chunk)
            n_read += len(chunk)
            report(n_read, n_bytes)
    return hashed.hexdigest() == digest_of(content)


def _standing_of(folder: Path, file: Path) -> IntegrityState:
    if is_verified(folder, file):
        return IntegrityState.VERIFIED
    return IntegrityState.UNKNOWN if read_record(folder, file) is None else IntegrityState.CHANGED


def _records(folder: Path) -> Iterator[tuple[Path, FileOrigin]]:
    """Files with a record, whether they exist or not."""
    root = folder / RECORDS_FOLDER
    for path in sorted(root.rglob("*.json")):
        file = folder / path.relative_to(root).with_name(path.name.removesuffix(".json"))
        record = read_record(folder, file)
        if record is not None:
            yield file, record


def _is_gone(path: Path) -> bool:
    try:
        return not is_there(path)
    except OSError:  # in a folder that may not be read, or on a disk that does not answer
        return False


def _models(folder: Path) -> Iterator[Path]:
    for parent, below, names in os.walk(folder):
        below[:] = [name for name in below if not name.startswith(".")]
        yield from (Path(parent, name) for name in names if name.lower().endswith(".gguf"))


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def hasher(content: str, n_bytes: int) -> hashlib._Hash:
    """A hasher for ``n_bytes`` of the kind of hash in ``content`` ("sha256:..." or "git:...")."""
    if content.startswith("git:"):
        return hashlib.sha1(b"blob %d\0" % n_bytes, usedforsecurity=False)
    return hashlib.sha256()


def digest_of(content: str) -> str:
    """The hash itself."""
    return content.partition(":")[2]


# Bytes that are read of a file's beginning, and of each sample.
_HEAD_BYTES = 64 << 10
_SAMPLE_BYTES = 16 << 10
_SAMPLES = 4


def identity(files: Sequence[Path]) -> str:
    """A hash of a model's files: their sizes, the beginning and end of each, and samples in between.

    It reads at most 144 KiB of each. Models of equal size and header (fine-tunes) differ in the samples of weights;
    equal fingerprints mean the same model, though this is no proof. Raises OSError.
    """
    hasher = hashlib.sha256()
    for file in files:
        n_bytes = file.stat().st_size
        hasher.update(n_bytes.to_bytes(8, "little"))
        with open(file, "rb") as content:
            hasher.update(content.read(_HEAD_BYTES))
            for number in range(1, _SAMPLES + 1):
                content.seek(max(0, n_bytes * number // _SAMPLES - _SAMPLE_BYTES))
                hasher.update(content.read(_SAMPLE_BYTES))
    return hasher.hexdigest()[:32]
