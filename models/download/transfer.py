"""Fetches the missing pieces of one file over several connections and hashes them in order as they arrive."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from models.download.progress import DownloadOptions
from models.download.ranges import RangeRequests, TransientFailure
from models.download.resume import Claim, Journal, PieceMap
from models.files.errors import ConnectionLost, Stopped, as_download_errors
from models.files.integrity import digest_of, hasher
from models.formatting.sentence import Sentence
from models.hub.errors import RateLimited

# Seconds. A server that asks for a longer wait ends the download.
LONGEST_ASKED_WAIT = 120.0
_TICK = 0.05  # seconds between two reports


class Transfer:
    """One file's transfer into its partial file. ``run`` ends when every piece is there, or raises."""

    def __init__(
        self,
        ranges: RangeRequests,
        part: Path,
        journal: Journal,
        pieces: PieceMap,
        options: DownloadOptions,
        stop: threading.Event,
    ) -> None:
        self.pieces, self.options = pieces, options
        self._journal, self._part, self._ranges, self._stop = journal, part, ranges, stop
        self._ended = False
        self._may_note = True
        self._error: Exception | None = None
        self._why = ""
        self._last_arrival = time.monotonic()
        self._wait_until = 0.0
        self._changed = threading.Condition()
        self._hash = hasher(ranges.file.content, ranges.file.n_bytes)
        self._n_hashed = 0

    def run(self, report: Callable[[int], None]) -> None:
        """Fetch the missing pieces. ``report`` is called several times a second with the bytes received.

        Raises HubError, DownloadError (Stopped when ``stop`` is set), and whatever ``report`` raises.
        """
        n_workers = min(self.options.n_connections, self.pieces.n_pieces)
        workers = [threading.Thread(target=self._work, args=(n,), daemon=True) for n in range(n_workers)]
        try:
            self._last_arrival = time.monotonic()
            for worker in workers:
                worker.start()
            self._watch(report)
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()
            # Workers record their pieces as they end. One that hangs in a silent connection may no longer record.
            for worker in workers:
                worker.join(timeout=0.5)
            with self._changed:
                self._may_note = False

    def is_right(self) -> bool:
        """Whether the whole file has the hash that the Hub announces; every piece must be complete.

        Raises Stopped.
        """
        while self._n_hashed < self.pieces.n_pieces:
            if self._stop.is_set():
                raise Stopped
            self._hash_ready()
        return self._hash.hexdigest() == digest_of(self._ranges.file.content)

    def _watch(self, report: Callable[[int], None]) -> None:
        while True:
            with self._changed:
                if not (self._error or self._stop.is_set() or self.pieces.is_complete):
                    self._changed.wait(_TICK)
                error, is_complete, n_received = self._error, self.pieces.is_complete, self.pieces.n_received
            report(n_received)
            if is_complete:
                return
            if error is not None:
                raise error
            if self._stop.is_set():
                raise Stopped
            self._give_up_after(self.options.patience)
            self._hash_ready()

    def _give_up_after(self, patience: float) -> None:
        silent = time.monotonic() - max(self._last_arrival, self._wait_until)
        if silent > patience:
            raise ConnectionLost(silent, self._why)

    def _hash_ready(self) -> None:
        """Hash pieces that are complete without a gap from the start of the file, for about a tick."""
        until = time.monotonic() + _TICK
        # Without a buffer: that would hold what the next pieces were before they arrived.
        with open(self._part, "rb", buffering=0) as file:
            file.seek(self.pieces.start(self._n_hashed))
            while self._n_hashed < self.pieces.n_pieces and self.pieces.is_whole(self._n_hashed):
                left = self.pieces.length(self._n_hashed)
                while left and (raw := file.read(min(left, 1 << 20))):
                    self._hash.update(raw)
                    left -= len(raw)
                self._n_hashed += 1
                if time.monotonic() > until:
                    return

    def _work(self, number: int) -> None:
        failures = 0
        while (claim := self._next_claim(number)) is not None:
            before = self._place(claim)
            again = self._try(claim, number)
            failures = 0 if again is None or self._place(claim) != before else failures + 1
            if again is not None:
                self._wait(again, failures)

    def _try(self, claim: Claim, number: int) -> TransientFailure | None:
        """Fetch a claim; any other error than TransientFailure ends the transfer."""
        try:
            self._stream(claim, number)
        except TransientFailure as again:
            return again
        except OSError as error:
            self._fail(as_download_errors(error, self._part.parent, self.pieces.n_bytes - self.pieces.n_received))
        except Exception as error:  # even an unforeseen one: run() would wait for this worker for ever
            self._fail(error)
        finally:
            self._give_back(claim)
        return None

    def _place(self, claim: Claim) -> tuple[int, int]:
        """A claim's progress: its next piece, and how many bytes of that piece were received."""
        return claim.at, self.pieces.have[claim.at] if claim.at < self.pieces.n_pieces else 0

    def _next_claim(self, number: int) -> Claim | None:
        """The next pieces for a connection, or None at the end. Waits while other connections may give pieces back."""
        with self._changed:
            while not (self._is_over or self.pieces.is_complete):
                # A server that ignores ranges sends the whole file each time: one connection is enough.
                n_connections = 1 if self._ranges.are_ignored else self.options.n_connections
                claim = self.pieces.claim(n_connections) if number < n_connections else None
                if claim is not None:
                    return claim
                self._changed.wait(0.2)
        return None

    @property
    def _is_over(self) -> bool:
        return self._ended or self._error is not None or self._stop.is_set()

    def _give_back(self, claim: Claim) -> None:
        with self._changed:
            self.pieces.give_back(claim)
            self._changed.notify_all()

    def _stream(self, claim: Claim, number: int) -> None:
        """Fetch a claim's pieces in one response; raises TransientFailure if that ends early."""
        with open(self._part, "r+b", buffering=0) as file:
            arriving = _Arriving(self, file, claim)
            start, end = arriving.position, self.pieces.start(claim.end)
            try:
                with self._ranges.open(start, end) as chunks:
                    if self._ranges.are_ignored and number:
                        return
                    for chunk in chunks:
                        self._last_arrival = time.monotonic()
                        if not arriving.take(chunk):
                            return
            finally:
                arriving.record()
        raise TransientFailure(Sentence("the connection was closed early"))

    def write(self, file: BinaryIO, index: int, at: int, content: memoryview) -> None:
        """Write bytes of a piece; raises Stopped once the transfer is over."""
        with self._changed:
            if self._is_over:
                raise Stopped
            file.seek(self.pieces.start(index) + at)
            n_written = file.write(content)
            if n_written != len(content):
                n_written += file.write(content[n_written:])
            self.pieces.have[index] = at + len(content)

    def note(self, index: int, n_bytes: int, sha256: str, claim: Claim) -> bool:
        """Record the bytes received of a piece; False if the claim has nothing more to fetch."""
        with self._changed:
            if self._may_note:
                self._journal.write(index, n_bytes, sha256)
            if self.pieces.is_whole(index):
                claim.at = index + 1
                self._changed.notify_all()
            return claim.at < claim.end

    def _wait(self, again: TransientFailure, failures: int) -> None:
        self._why = str(again)
        seconds = again.seconds
        if seconds is None:
            seconds = 0.0 if failures == 0 else self.options.retry * 2 ** min(failures - 1, 8)
            seconds = min(seconds, self.options.longest_wait)
        elif seconds > LONGEST_ASKED_WAIT:
            self._fail(RateLimited(seconds))
        with self._changed:
            until = time.monotonic() + seconds
            if again.seconds is not None:
                self._wait_until = max(self._wait_until, until)
            while not self._is_over and (left := until - time.monotonic()) > 0:
                self._changed.wait(min(left, 0.2))

    def _fail(self, error: Exception) -> None:
        with self._changed:
            if not isinstance(error, Stopped):
                self._error = self._error or error
            self._changed.notify_all()


class _Arriving:
    """Writes one response into the file, and counts, hashes and records the bytes of its claim."""

    def __init__(self, transfer: Transfer, file: BinaryIO, claim: Claim) -> None:
        self._transfer, self._file, self._claim = transfer, file, claim
        self._index = claim.at
        self._have = transfer.pieces.have[claim.at]
        self._recorded, self._recorded_at = self._have, time.monotonic()
        file.seek(transfer.pieces.start(claim.at))
        self._digest = hashlib.sha256(file.read(self._have))

    @property
    def position(self) -> int:
        """The position of the next byte in the file."""
        return self._transfer.pieces.start(self._index) + self._have

    def take(self, chunk: bytes) -> bool:
        """Write a chunk; False once the claim is complete."""
        rest = memoryview(chunk)
        while rest:
            length = self._transfer.pieces.length(self._index)
            now = rest[: length - self._have]
            self._transfer.write(self._file, self._index, self._have, now)
            self._digest.update(now)
            self._have += len(now)
            rest = rest[len(now) :]
            if self._have == length and not self._finish_piece():
                return False
        if self._is_due:
            self.record()
        return True

    def record(self) -> None:
        """Record the bytes received of the current piece."""
        if self._have > self._recorded:
            self._transfer.note(self._index, self._have, self._digest.hexdigest(), self._claim)
            self._recorded, self._recorded_at = self._have, time.monotonic()

    @property
    def _is_due(self) -> bool:
        options = self._transfer.options
        has_much = self._have - self._recorded >= options.record_bytes
        return has_much or time.monotonic() - self._recorded_at >= options.record_seconds

    def _finish_piece(self) -> bool:
        goes_on = self._transfer.note(self._index, self._have, self._digest.hexdigest(), self._claim)
        self._recorded = 0
        self._index, self._have, self._digest = self._index + 1, 0, hashlib.sha256()
        return goes_on
