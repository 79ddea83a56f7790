"""Downloads one file into its partial file: resumes what is there, verifies it, repairs it."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path

from models.download.journal import Journal, JournalSubject, check_records, read_records
from models.download.options import DownloadOptions
from models.download.pieces import PieceMap, piece_bytes_for
from models.download.progress import DownloadPhase
from models.download.ranges import RangeRequests
from models.download.repair import repair
from models.download.reuse import reuse_pieces
from models.download.transfer import Transfer
from models.files.errors import WrongContent, as_download_errors
from models.files.provenance import pieces_of
from models.files.safe_path import partial, target
from models.hub.client import Hub
from models.hub.repository import RemoteFile

# Called with what it is doing and how many bytes are there.
PhaseCallback = Callable[[DownloadPhase, int], None]


class FileDownload:
    """One file of a repository at one commit, on its way to ``part``."""

    def __init__(
        self, hub: Hub, repo_id: str, commit: str, file: RemoteFile, folder: Path, options: DownloadOptions
    ) -> None:
        self.file = file
        self.part = partial(folder, repo_id, file.path, ".part")
        self._journal_path = partial(folder, repo_id, file.path, ".journal")
        self._place = target(folder, repo_id, file.path)
        self._kept = pieces_of(folder, self._place)
        self._hub, self._repo_id, self._commit, self._options = hub, repo_id, commit, options
        piece_bytes = options.piece_bytes or piece_bytes_for(file.n_bytes)
        self._subject = JournalSubject(file.content, file.n_bytes, piece_bytes)

    @property
    def n_received(self) -> int:
        """Bytes that an earlier download left, as far as its records say."""
        if not self.part.exists():
            return 0
        return sum(record.n_bytes for record in read_records(self._journal_path, self._subject).values())

    def run(self, stop: threading.Event, report: PhaseCallback) -> None:
        """Fetch and verify; afterwards ``part`` is the file. Raises HubError and DownloadError."""
        try:
            journal, pieces = self._begin(stop, report)
        except OSError as error:
            raise as_download_errors(error, self.part.parent, self.file.n_bytes - self.n_received) from error
        ranges = RangeRequests(self._hub, self._repo_id, self._commit, self.file, self._options.n_connections)
        transfer = Transfer(self.file, ranges, self.part, journal, pieces, self._options, stop)
        try:
            transfer.run(lambda n_bytes: report(DownloadPhase.DOWNLOADING, n_bytes))
            report(DownloadPhase.VERIFYING, self.file.n_bytes)
            if not transfer.is_right():
                self._repair(transfer, stop, report)
        finally:
            ranges.close()
            journal.close()

    def discard(self) -> None:
        """Remove what is there of it."""
        for path in (self.part, self._journal_path):
            path.unlink(missing_ok=True)

    def finish(self) -> Path:
        """Put the verified file in its place and return that; raises OSError."""
        with open(self.part, "rb") as file:
            os.fsync(file.fileno())
        self._place.parent.mkdir(parents=True, exist_ok=True)
        os.replace(self.part, self._place)
        with contextlib.suppress(OSError):  # the file is right without it
            self._kept.parent.mkdir(parents=True, exist_ok=True)
            os.replace(self._journal_path, self._kept)
        return self._place

    def _begin(self, stop: threading.Event, report: PhaseCallback) -> tuple[Journal, PieceMap]:
        """Open the partial file and its journal, and see what of it is good."""
        self.part.parent.mkdir(parents=True, exist_ok=True)
        pieces = PieceMap(self._subject.n_bytes, self._subject.piece_bytes)
        journal = Journal.open(self._journal_path, self._subject)
        if journal.records:
            report(DownloadPhase.CHECKING, self.n_received)
        if self.part.is_symlink():
            self.part.unlink()
        with open(self.part, "ab") as file:
            # A hole: what is not written takes no space.
            file.truncate(self.file.n_bytes)
        try:
            parts = (self._place, self._kept, self.part)
            reuse_pieces(*parts, journal, pieces, stop, lambda n_bytes: report(DownloadPhase.CHECKING, n_bytes))
        except BaseException:
            journal.close()
            raise
        check_records(self.part, journal, pieces)
        return journal, pieces

    def _repair(self, transfer: Transfer, stop: threading.Event, report: PhaseCallback) -> None:
        report(DownloadPhase.REPAIRING, 0)
        try:
            repair(transfer, stop, lambda index: report(DownloadPhase.REPAIRING, transfer.pieces.start(index)))
        except WrongContent:
            self.discard()
            raise
