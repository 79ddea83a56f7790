"""Records of downloaded files: where each came from, and its hash."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from models.files.disk import read_value, write_whole
from models.files.safe_path import PARTIAL_FOLDER

RECORDS_FOLDER = ".verified"


@dataclass(frozen=True, slots=True)
class FileOrigin:
    """A file's origin and hash; ``n_bytes`` and ``mtime_ns`` show whether it has changed since.

    ``made_from`` names the model that it was quantised from here; then it has no repository.
    """

    repo_id: str
    commit: str
    path: str
    content: str
    n_bytes: int
    mtime_ns: int
    made_from: str = ""


def write_record(folder: Path, file: Path, record: FileOrigin) -> None:
    """Write the record of ``file`` below ``folder``; raises OSError."""
    write_whole(_place(folder, file), json.dumps(asdict(record)))


def read_record(folder: Path, file: Path) -> FileOrigin | None:
    """The record of ``file``, or None."""
    origin: FileOrigin | None = read_value(FileOrigin, _place(folder, file))
    return origin


def is_verified(folder: Path, file: Path) -> bool:
    """Whether ``file`` still has the size and modification time that it had when its hash was checked."""
    record = read_record(folder, file)
    try:
        status = file.stat()
    except OSError:
        return False
    return record is not None and (status.st_size, status.st_mtime_ns) == (record.n_bytes, record.mtime_ns)


def remove_record(folder: Path, file: Path) -> None:
    """Remove the record of ``file``, and folders that have become empty."""
    place = _place(folder, file)
    place.unlink(missing_ok=True)
    remove_empty(place.parent, folder)


def remove_empty(below: Path, root: Path) -> None:
    """Remove ``below`` and the folders above it that are empty, up to ``root``, which stays."""
    while below != root and root in below.parents:
        try:
            below.rmdir()
        except OSError:
            return
        below = below.parent


def _place(folder: Path, file: Path) -> Path:
    """Return the path of the record of ``file``; for a file outside ``folder``, one that does not exist."""
    try:
        inside = file.relative_to(folder)
    except ValueError:
        inside = Path(PARTIAL_FOLDER) / "elsewhere"
    return folder / RECORDS_FOLDER / inside.with_name(inside.name + ".json")
