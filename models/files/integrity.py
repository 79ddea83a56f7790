"""Whether downloaded files are still what was checked, and where they went when they are not where they were."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from models.files.content_hash import digest_of, hasher
from models.files.errors import Stopped
from models.files.provenance import (
    RECORDS_FOLDER,
    Record,
    is_verified,
    move_record,
    read_record,
    remove_record,
    write_record,
)
from models.formatting.program import advice, command

_CHUNK = 1 << 20
_NEVER = -1

Report = Callable[[int, int], None]
"""Called with the bytes that were read and their total."""


class Standing(StrEnum):
    """What is known of a model's files."""

    VERIFIED = "verified"
    CHANGED = "changed since download"
    UNKNOWN = "not downloaded here"


@dataclass(frozen=True, slots=True)
class Moved:
    """A downloaded file that is found in another place of the models' folder."""

    record: Record
    before: Path
    now: Path

    @property
    def sentence(self) -> str:
        """What happened."""
        return f"{self.before.name} was moved: it is {self.now} now."


@dataclass(frozen=True, slots=True)
class Gone:
    """A downloaded file that is no longer there."""

    record: Record
    path: Path

    @property
    def sentence(self) -> str:
        """What happened, and how to have it back."""
        what = f"{self.path} was deleted or moved away by another program."
        if not self.record.repo_id:
            return f"{what} It was made from {self.record.made_from or 'another model'}: quantise that again."
        name = f"{self.record.repo_id}:{self.record.path}"
        return f"{what} " + advice(
            f"`{command('models pull', name)}` downloads it again.", f"To have it again, find {self.record.repo_id}."
        )


def standing(folder: Path, files: Iterable[Path]) -> Standing:
    """What is known of a model of these files: the least that is known of any of them."""
    found = {_standing_of(folder, file) for file in files}
    return next((one for one in (Standing.CHANGED, Standing.UNKNOWN) if one in found), Standing.VERIFIED)


def look_for_changes(folder: Path) -> tuple[Moved | Gone, ...]:
    """What happened to downloaded files behind our back, besides changes of their content.

    A moved file is known by its size and time of change, which moving keeps; nothing is read. Files that were moved
    out of ``folder`` count as gone.
    """
    missing = [(path, record) for path, record in _records(folder) if not path.exists()]
    if not missing:
        return ()
    strangers = {
        (status.st_size, status.st_mtime_ns): path
        for path in _models(folder)
        if read_record(folder, path) is None and (status := _status(path)) is not None
    }
    changes: list[Moved | Gone] = []
    for path, record in missing:
        now = strangers.get((record.n_bytes, record.mtime_ns))
        changes.append(Gone(record, path) if now is None else Moved(record, path, now))
    return tuple(changes)


def settle(folder: Path, changes: Iterable[Moved | Gone]) -> None:
    """Let the records follow: moved files keep theirs, and what is gone is forgotten. Raises OSError."""
    for change in changes:
        if isinstance(change, Moved):
            move_record(folder, change.before, change.now, change.record)
        else:
            remove_record(folder, change.path)


def verify(folder: Path, file: Path, report: Report, stop: threading.Event | None = None) -> Standing:
    """Read ``file`` and compare its hash with the record, which then says what was found.

    Raises OSError, and Stopped where ``stop`` is set meanwhile.
    """
    record = read_record(folder, file)
    if record is None:
        return Standing.UNKNOWN
    status = file.stat()
    hashed = hasher(record.content, status.st_size)
    n_read = 0
    with open(file, "rb") as content:
        while chunk := content.read(_CHUNK):
            if stop is not None and stop.is_set():
                raise Stopped
            hashed.update(chunk)
            n_read += len(chunk)
            report(n_read, status.st_size)
    is_same = hashed.hexdigest() == digest_of(record.content)
    # What is wrong must not be called verified again only because its size and time are the old ones.
    known = replace(record, n_bytes=status.st_size, mtime_ns=status.st_mtime_ns if is_same else _NEVER)
    if known != record:
        write_record(folder, file, known)
    return Standing.VERIFIED if is_same else Standing.CHANGED


def _standing_of(folder: Path, file: Path) -> Standing:
    if is_verified(folder, file):
        return Standing.VERIFIED
    return Standing.UNKNOWN if read_record(folder, file) is None else Standing.CHANGED


def _records(folder: Path) -> Iterator[tuple[Path, Record]]:
    """Files that have a record, there or not."""
    root = folder / RECORDS_FOLDER
    for path in sorted(root.rglob("*.gguf.json")):
        file = folder / path.relative_to(root).with_name(path.name.removesuffix(".json"))
        record = read_record(folder, file)
        if record is not None:
            yield file, record


def _models(folder: Path) -> Iterator[Path]:
    for parent, below, names in os.walk(folder):
        below[:] = [name for name in below if not name.startswith(".")]
        yield from (Path(parent, name) for name in names if name.lower().endswith(".gguf"))


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None
