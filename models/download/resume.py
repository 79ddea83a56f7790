"""How a download resumes: the pieces of a file, which of them have arrived, and the journal that says so.

The journal is a text file beside the partial one, so that little is lost when the process is killed. Its first line is
JSON and names the content. Each further line is a record: piece, bytes received, their SHA-256. The latest record of a
piece counts. An incomplete line is ignored. ``read_records`` and ``check_records`` find what is left of an earlier run.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from models.files.errors import Stopped

# Bytes of the smallest piece, and the most pieces of a file.
SMALLEST_PIECE, MOST_PIECES = 1 << 20, 4096
# The version of the journal's format. A download with a journal of another version starts over.
_VERSION = 1
_RECORD = re.compile(rb"(\d{1,6}) (\d{1,12}) ([0-9a-f]{64})")


def piece_bytes_for(n_bytes: int) -> int:
    """Bytes of a piece: a power of two, so that a file has at most MOST_PIECES pieces."""
    size = SMALLEST_PIECE
    while n_bytes > size * MOST_PIECES:
        size *= 2
    return size


@dataclass(slots=True, eq=False)
class Claim:
    """Pieces ``at`` to ``end`` (exclusive) that one connection fetches in order. Others may take some from the end."""

    at: int
    end: int


class PieceMap:
    """A file in pieces. ``have[i]`` counts the bytes received of piece i, from its start."""

    def __init__(self, n_bytes: int, piece_bytes: int) -> None:
        self.n_bytes, self.piece_bytes = n_bytes, piece_bytes
        self.have = [0] * -(-n_bytes // piece_bytes)
        self._claims: list[Claim] = []

    @property
    def n_pieces(self) -> int:
        """Number of pieces."""
        return len(self.have)

    @property
    def n_received(self) -> int:
        """Bytes received."""
        return sum(self.have)

    @property
    def is_complete(self) -> bool:
        """Whether every byte was received."""
        return all(self.is_whole(index) for index in range(self.n_pieces))

    def start(self, index: int) -> int:
        """Return the first byte of a piece; the file's end for the index after the last."""
        return min(index * self.piece_bytes, self.n_bytes)

    def length(self, index: int) -> int:
        """Bytes of a piece: all the same but the last."""
        return self.start(index + 1) - self.start(index)

    def is_whole(self, index: int) -> bool:
        """Whether a piece is complete."""
        return self.have[index] == self.length(index)

    def claim(self, n_connections: int) -> Claim | None:
        """Pieces for a connection: its share of the longest unclaimed run, else half of the longest claim's rest."""
        runs = list(self._free_runs())
        if runs:
            longest = max(runs, key=lambda run: run.end - run.at)
            n_free = sum(run.end - run.at for run in runs)
            longest.end = min(longest.end, longest.at + max(1, -(-n_free // n_connections)))
            return self._hold(longest)
        slowest = max(self._claims, key=lambda claim: claim.end - claim.at, default=None)
        if slowest is None or slowest.end - slowest.at < 2:
            return None
        middle = slowest.at + (slowest.end - slowest.at + 1) // 2
        taken = Claim(middle, slowest.end)
        slowest.end = middle
        return self._hold(taken)

    def give_back(self, claim: Claim) -> None:
        """End a claim: the connection no longer fetches these pieces."""
        self._claims.remove(claim)

    def _hold(self, claim: Claim) -> Claim:
        self._claims.append(claim)
        return claim

    def _free_runs(self) -> Iterator[Claim]:
        """Runs of missing, unclaimed pieces; only the first piece of a run may be partly received."""
        claimed = {index for claim in self._claims for index in range(claim.at, claim.end)}
        run: Claim | None = None
        for index in range(self.n_pieces):
            is_free = not self.is_whole(index) and index not in claimed
            if run is not None and (not is_free or self.have[index]):
                yield run
                run = None
            if is_free:
                run = run or Claim(index, index)
                run.end = index + 1
        if run is not None:
            yield run


@dataclass(frozen=True, slots=True)
class JournalSubject:
    """The content that a journal is about: with another subject the download starts over."""

    content: str
    n_bytes: int
    piece_bytes: int
    version: int = _VERSION


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """``n_bytes`` of a piece were received, with this SHA-256."""

    n_bytes: int
    sha256: str


class Journal:
    """A journal open for appending. Each record is one write: it may be cut short, but not mixed with another."""

    def __init__(self, path: Path, subject: JournalSubject) -> None:
        self.path, self.subject = path, subject
        self.records: dict[int, JournalEntry] = {}
        self._file = -1

    @classmethod
    def open(cls, path: Path, subject: JournalSubject) -> Journal:
        """Continue the journal at ``path`` if it is about ``subject``, else begin one; raises OSError."""
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
        """Record the received bytes of a piece; raises OSError."""
        self.records[piece] = JournalEntry(n_bytes, sha256)
        os.write(self._file, _line(piece, self.records[piece]))

    def _rewrite(self) -> None:
        """Replace the file by one with only the latest record of each piece."""
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
    # What follows the last line feed is incomplete.
    for match in filter(None, map(_RECORD.fullmatch, lines[:-1])):
        piece, n_bytes = int(match[1]), int(match[2])
        if piece < pieces.n_pieces and n_bytes <= pieces.length(piece):
            records[piece] = JournalEntry(n_bytes, match[3].decode())
    return records


def n_recorded(path: Path) -> int:
    """Bytes that the journal at ``path`` says were received, whatever it is about; raises OSError."""
    records = filter(None, map(_RECORD.fullmatch, path.read_bytes().split(b"\n")))
    return sum({match[1]: int(match[2]) for match in records}.values())


def check_records(part: Path, journal: Journal, pieces: PieceMap, stop: threading.Event | None = None) -> None:
    """Compare the partial file with its records and set what ``pieces`` has.

    A piece that differs from its record (power cut, damaged disk) counts as missing. Raises OSError, and Stopped if
    ``stop`` is set meanwhile.
    """
    with contextlib.suppress(FileNotFoundError), open(part, "rb") as file:
        for piece, record in journal.records.items():
            if stop is not None and stop.is_set():
                raise Stopped
            file.seek(pieces.start(piece))
            if hashlib.sha256(file.read(record.n_bytes)).hexdigest() == record.sha256:
                pieces.have[piece] = record.n_bytes
    for piece, record in list(journal.records.items()):
        if pieces.have[piece] != record.n_bytes:
            journal.write(piece, 0, hashlib.sha256().hexdigest())


def _line(piece: int, record: JournalEntry) -> bytes:
    return b"%d %d %s\n" % (piece, record.n_bytes, record.sha256.encode())
