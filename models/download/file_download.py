"""Downloads one file into its partial file: resumes from there, and checks the hash of the whole."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from models.download.progress import DownloadOptions, DownloadPhase
from models.download.ranges import RangeRequests
from models.download.resume import Journal, JournalSubject, PieceMap, check_records, piece_bytes_for, read_records
from models.download.transfer import Transfer
from models.files.errors import WrongContent, as_download_errors
from models.files.safe_path import partial, target
from models.hub.client import Hub
from models.hub.repository import HubFile

# Called with the phase and the number of bytes received.
PhaseCallback = Callable[[DownloadPhase, int], None]


class FileDownload:
    """Downloads one file of a repository at one commit into the partial file ``part``."""

    def __init__(
        self, hub: Hub, repo_id: str, commit: str, file: HubFile, folder: Path, options: DownloadOptions
    ) -> None:
        self.file = file
        self.part = partial(folder, repo_id, file.path, ".part")
        self._journal_path = partial(folder, repo_id, file.path, ".journal")
        self._place = target(folder, repo_id, file.path)
        self._hub, self._repo_id, self._commit, self._options = hub, repo_id, commit, options
        piece_bytes = options.piece_bytes or piece_bytes_for(file.n_bytes)
        self._subject = JournalSubject(file.content, file.n_bytes, piece_bytes)

    @property
    def n_received(self) -> int:
        """Bytes that the journal says were received before."""
        if not self.part.exists():
            return 0
        return sum(record.n_bytes for record in read_records(self._journal_path, self._subject).values())

    def run(self, stop: threading.Event, report: PhaseCallback) -> None:
        """Fetch and verify; afterwards ``part`` is the file. Raises HubError and DownloadError.

        A file with a wrong hash is fetched once more from its start; WrongContent if it is wrong again.
        """
        if self._fetch(stop, report):
            return
        self.discard()
        if not self._fetch(stop, report):
            self.discard()
            raise WrongContent(self.file.name)

    def discard(self) -> None:
        """Remove the partial file and its journal."""
        for path in (self.part, self._journal_path):
            path.unlink(missing_ok=True)

    def finish(self) -> Path:
        """Move the verified file to its final path and return that path; raises OSError."""
        with open(self.part, "rb") as file:
            os.fsync(file.fileno())
        self._place.parent.mkdir(parents=True, exist_ok=True)
        os.replace(self.part, self._place)
        self._journal_path.unlink(missing_ok=True)
        return self._place

    def _fetch(self, stop: threading.Event, report: PhaseCallback) -> bool:
        """Fetch the missing pieces; return whether the file has the hash that the Hub announces."""
        try:
            journal, pieces = self._begin(stop, report)
        except OSError as error:
            raise as_download_errors(error, self.part.parent, self.file.n_bytes - self.n_received) from error
        ranges = RangeRequests(self._hub, self._repo_id, self._commit, self.file, self._options.n_connections)
        transfer = Transfer(ranges, self.part, journal, pieces, self._options, stop)
        try:
            transfer.run(lambda n_bytes: report(DownloadPhase.DOWNLOADING, n_bytes))
            report(DownloadPhase.VERIFYING, self.file.n_bytes)
            return transfer.is_right()
        except OSError as error:  # reading what has arrived failed: another program has removed it, or the disk is gone
            raise as_download_errors(error, self.part.parent, 0) from error
        finally:
            ranges.close()
            journal.close()
            if self.file.n_bytes and not pieces.n_received:
                # Nothing came, as from a gated model: an empty file would look like a download to resume.
                with suppress(OSError):
                    self.discard()

    def _begin(self, stop: threading.Event, report: PhaseCallback) -> tuple[Journal, PieceMap]:
        """Open the partial file and its journal, and check the recorded pieces."""
        self.part.parent.mkdir(parents=True, exist_ok=True)
        pieces = PieceMap(self._subject.n_bytes, self._subject.piece_bytes)
        if self.part.is_symlink():
            self.part.unlink()
        journal = Journal.open(self._journal_path, self._subject)
        try:
            if journal.records:
                report(DownloadPhase.CHECKING, self.n_received)
            with open(self.part, "ab") as file:
                # A sparse file: bytes that are not written take no space.
                file.truncate(self.file.n_bytes)
            check_records(self.part, journal, pieces, stop)
        except BaseException:
            journal.close()
            raise
        return journal, pieces
