"""Finds the wrong pieces of a file whose hash is wrong, and replaces only those.

The Hub gives one hash for a whole file. A piece that the disk spoilt differs from its record, so it is found without
the network. One that was spoilt on its way agrees with its record: then pieces are fetched again, those first that
came in several answers, and each one that differs is decided by a third fetch, until the whole file is right.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from models.download.journal import check_records
from models.download.ranges import TransientFailure
from models.download.transfer import Transfer
from models.files.errors import ConnectionLost, Stopped, WrongContent


def repair(transfer: Transfer, stop: threading.Event, report: Callable[[int], None]) -> None:
    """Make the file right; every piece must be there. ``report`` gets the number of pieces looked at.

    Raises WrongContent where the Hub's content is not what it announces, Stopped, and what a transfer raises.
    """
    if _spoilt_on_disk(transfer):
        transfer.run(lambda n_bytes: None)
        if transfer.is_right():
            return
    order = _by_doubt(transfer)
    n_looked_at = 0
    with ThreadPoolExecutor(transfer.options.n_connections) as pool:
        while batch := list(islice(order, transfer.options.n_connections)):
            contents = pool.map(lambda index: _fetch(transfer, index, stop), batch)
            for index, content in zip(batch, contents, strict=True):
                _decide(transfer, index, content, stop)
            n_looked_at += len(batch)
            report(n_looked_at)
            if transfer.is_right():
                return
    raise WrongContent(transfer.file.name)


def _spoilt_on_disk(transfer: Transfer) -> bool:
    """Forget the pieces that are not what was recorded when they arrived."""
    pieces = transfer.pieces
    pieces.have = [0] * pieces.n_pieces
    check_records(transfer.part, transfer.journal, pieces)
    missing = [index for index in range(pieces.n_pieces) if not pieces.is_whole(index)]
    if missing:
        transfer.doubt(missing[0])
    return bool(missing)


def _by_doubt(transfer: Transfer) -> Iterator[int]:
    suspects = transfer.suspects
    yield from sorted(suspects)
    yield from (index for index in range(transfer.pieces.n_pieces) if index not in suspects)


def _decide(transfer: Transfer, index: int, content: bytes, stop: threading.Event) -> None:
    """Keep what two of three fetches agree on; the latest where all differ."""
    recorded = transfer.journal.records[index].sha256
    if _sha256(content) == recorded:
        return
    third = _fetch(transfer, index, stop)
    if _sha256(third) != recorded:
        transfer.write_piece(index, third)


def _fetch(transfer: Transfer, index: int, stop: threading.Event) -> bytes:
    """One piece, in as many answers as it takes."""
    start, end = transfer.pieces.start(index), transfer.pieces.start(index + 1)
    content = bytearray()
    silent_since, failures, options = time.monotonic(), 0, transfer.options
    while len(content) < end - start:
        if stop.is_set():
            raise Stopped
        n_before = len(content)
        try:
            with transfer.ranges.open(start + n_before, end) as chunks:
                for chunk in chunks:
                    content += chunk
        except TransientFailure as again:
            failures += 1
            wait = again.seconds or options.retry * 2 ** min(failures - 1, 8)
            stop.wait(min(wait, options.longest_wait))
            if time.monotonic() - silent_since > options.patience and len(content) == n_before:
                raise ConnectionLost(options.patience, str(again)) from again
        if len(content) > n_before:
            silent_since, failures = time.monotonic(), 0
    return bytes(content)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
