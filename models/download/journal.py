"""What has arrived of a file, written down so that a killed process loses next to nothing.

One text file beside the partial one: a line of JSON that names the content, then one line per record:
piece, bytes of it that are there, their SHA-256. The latest record of a piece counts; a torn line counts for nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from models.download.pieces import PieceMap

VERSION = 1
_RECORD = re.compile(rb"(\d{1,6}) (\d{1,12}) ([0-9a-f]{64})")
_READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class JournalSubject:
    """Which content a journal is about: another subject means starting over."""

    content: str
    n_bytes: int
    piece_bytes: int
    version: int = VERSION


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """``n_bytes`` of a piece are there, with this SHA-256."""

    n_bytes: int
    sha256: str


class Journal:
    """Open for appending. Each record is one write, so that it is there whole or torn, never mixed."""

    def __init__(self, path: Path, subject: JournalSubject) -> None:
        self.path, self.subject = path, subject
        self.records: dict[int, JournalEntry] = {}
        self._file = -1

    @classmethod
    def open(cls, path: Path, subject: JournalSubject) -> Journal:
        """Go on with the journal at ``path`` if it is about ``subject``, else begin one; raises OSError."""
        journal = cls(path, subject)
        journal.records = read_records(path, subject)
        journal._rewrite()
        return journal

    def close(self) -> None:
        """Close the file; closing twice is fine."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def write(self, piece: int, n_bytes: int, sha256: str) -> None:
        """Record what is there of a piece; raises OSError."""
        self.records[piece] = JournalEntry(n_bytes, sha256)
        os.write(self._file, _line(piece, self.records[piece]))

    def forget(self, piece: int) -> None:
        """The piece is to be fetched anew."""
        self.write(piece, 0, hashlib.sha256().hexdigest())

    def _rewrite(self) -> None:
        """Write it anew without what was overtaken or torn, in place of the old one."""
        new = self.path.with_name(self.path.name + ".new")
        lines = [json.dumps(asdict(self.subject)).encode() + b"\n", *(_line(*item) for item in self.records.items())]
        new.write_bytes(b"".join(lines))
        os.replace(new, self.path)
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND)


def read_records(path: Path, subject: JournalSubject) -> dict[int, JournalEntry]:
    """The records at ``path``; empty if there are none or they are about something else."""
    try:
        head, *lines = path.read_bytes().split(b"\n")
        if json.loads(head) != asdict(subject):
            return {}
    except (OSError, ValueError):
        return {}
    pieces = PieceMap(subject.n_bytes, subject.piece_bytes)
    records = {}
    # What follows the last line feed was torn.
    for match in filter(None, map(_RECORD.fullmatch, lines[:-1])):
        piece, n_bytes = int(match[1]), int(match[2])
        if piece < pieces.n_pieces and n_bytes <= pieces.length(piece):
            records[piece] = JournalEntry(n_bytes, match[3].decode())
    return records


def check_records(part: Path, journal: Journal, pieces: PieceMap) -> None:
    """Compare the partial file with its records, byte by byte, and set what ``pieces`` has; raises OSError.

    A piece that is not what was recorded (a power cut, a damaged disk) is forgotten and so fetched again.
    """
    with contextlib.suppress(FileNotFoundError), open(part, "rb") as file:
        for piece, record in journal.records.items():
            file.seek(pieces.start(piece))
            if digest_of_file(file, record.n_bytes) == record.sha256:
                pieces.have[piece] = record.n_bytes
    for piece, record in list(journal.records.items()):
        if pieces.have[piece] != record.n_bytes:
            journal.forget(piece)


def digest_of_file(file: object, n_bytes: int) -> str:
    """SHA-256 of the next bytes of an open file."""
    digest = hashlib.sha256()
    while n_bytes:
        raw: bytes = file.read(min(n_bytes, _READ_BYTES))  # type: ignore[attr-defined]
        if not raw:
            break
        digest.update(raw)
        n_bytes -= len(raw)
    return digest.hexdigest()


def _line(piece: int, record: JournalEntry) -> bytes:
    return b"%d %d %s\n" % (piece, record.n_bytes, record.sha256.encode())
