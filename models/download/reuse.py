"""Reuses the right pieces of a file that was changed after its download, so that only the rest is fetched again."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Callable
from pathlib import Path

from models.download.journal import Journal, read_records
from models.download.pieces import PieceMap
from models.files.errors import Stopped


def reuse_pieces(
    old: Path,
    kept: Path,
    part: Path,
    journal: Journal,
    pieces: PieceMap,
    stop: threading.Event,
    report: Callable[[int], None],
) -> None:
    """Copy the pieces of ``old`` that are what ``kept``, the journal of its download, says of them into ``part``.

    ``old`` stays as it is, so that nothing is lost where the download does not end well. ``report`` gets the number of
    bytes that are there. Raises OSError, and Stopped where ``stop`` is set.
    """
    known = read_records(kept, journal.subject)
    missing = {piece: record for piece, record in known.items() if journal.records.get(piece) != record}
    n_there = sum(record.n_bytes for record in journal.records.values())
    with contextlib.suppress(FileNotFoundError), open(old, "rb") as source, open(part, "r+b") as copy:
        for piece, record in sorted(missing.items()):
            if stop.is_set():
                raise Stopped
            source.seek(pieces.start(piece))
            content = source.read(record.n_bytes)
            if hashlib.sha256(content).hexdigest() != record.sha256:
                continue
            copy.seek(pieces.start(piece))
            copy.write(content)
            copy.flush()
            journal.write(piece, record.n_bytes, record.sha256)
            n_there += record.n_bytes
            report(n_there)
