"""Downloads a model of a repository with its projector, and installs it once every file is verified."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from models.download.file_download import FileDownload
from models.download.progress import Downloaded, DownloadOptions, DownloadPhase, DownloadProgress, TransferRate
from models.files.disk import check_space, hold_folder_lock
from models.files.errors import ChangedOnHub, NothingToChoose, Stopped, as_download_errors
from models.files.integrity import has_content
from models.files.provenance import FileOrigin, is_verified, read_record, write_record
from models.files.safe_path import partial, target
from models.formatting.figures import size
from models.formatting.sentence import Sentence
from models.hub.client import Hub
from models.hub.errors import FileNotFound, RevisionNotFound
from models.hub.repository import FileRole, HubFile, HubModel, Repository, choice_of, choose, with_projector

# Times that a download starts over because the file changed on the Hub.
RESTARTS = 3
# Seconds between two reports of progress.
_REPORT_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class DownloadRequest:
    """A model to download: ``wanted`` is a quantisation or a file name; empty means the repository's only model.

    ``or_newest`` takes the newest version if the Hub no longer has the ``revision``.
    """

    repo_id: str
    wanted: str = ""
    revision: str | None = None
    or_newest: bool = False


def choose_one(repository: Repository, wanted: str) -> HubModel:
    """The one item that matches ``wanted``; raises NothingToChoose, which lists the choices."""
    models = repository.with_role(FileRole.MODEL)
    found = choose(repository.models, wanted) if wanted else models
    if len(found) == 1:
        if found[0].missing:
            raise NothingToChoose(
                "{repo_id} lacks {missing} of the parts of {name}. Choose another one.",
                repo_id=repository.repo_id,
                missing=found[0].missing,
                name=found[0].name,
            )
        return found[0]
    if not repository.models:
        raise NothingToChoose(
            "{repo_id} has no GGUF files. Search for a repository that has.", repo_id=repository.repo_id
        )
    several = found or models or repository.models
    names = ", ".join(f"{choice_of(item, repository.models)} ({size(item.n_bytes)})" for item in several[:30])
    problem = Sentence("Say which one") if found else Sentence("{wanted} is not one of them", wanted=repr(wanted))
    raise NothingToChoose(
        "{repo_id} has {names}. {problem}.",
        f"{repository.repo_id}:{choice_of(several[0], repository.models)}",
        repo_id=repository.repo_id,
        names=names,
        problem=problem,
    )


class ModelDownload:
    """Downloads one model. ``run`` blocks; ``stop`` may be called from any thread and keeps the partial files."""

    def __init__(
        self, hub: Hub, request: DownloadRequest, folder: Path, options: DownloadOptions | None = None
    ) -> None:
        self.request, self._hub, self._folder = request, hub, folder
        self._options = options or DownloadOptions()
        self._stop = threading.Event()
        self._speed = TransferRate()
        # Paths below the folder, known once the Hub has answered.
        self.files: tuple[str, ...] = ()

    def stop(self) -> None:
        """End ``run`` with Stopped as soon as possible."""
        self._stop.set()

    def run(self, report: Callable[[DownloadProgress], None] = lambda progress: None) -> Downloaded:
        """Download, verify and install; ``report`` is called some times a second, in this thread.

        Raises HubError and DownloadError.
        """
        error: Exception | None = None
        for _ in range(RESTARTS):
            repository = self._repository()
            model = with_projector(choose_one(repository, self.request.wanted), repository.models)
            self.files = tuple(f"{repository.repo_id}/{file.path}" for file in model.files)
            try:
                return self._one(repository, model, report)
            except (ChangedOnHub, FileNotFound) as changed:
                error = changed
                # The file has changed: its journal is about other content, so the download starts over.
                self._speed = TransferRate()
        assert error is not None
        raise error

    def _repository(self) -> Repository:
        request = self.request
        try:
            return self._hub.repository(request.repo_id, request.revision)
        except RevisionNotFound:
            if not request.or_newest:
                raise
            return self._hub.repository(request.repo_id)

    def _one(self, repository: Repository, model: HubModel, report: Callable[[DownloadProgress], None]) -> Downloaded:
        targets = [target(self._folder, repository.repo_id, file.path) for file in model.files]
        commit, repo_id = repository.commit, repository.repo_id
        files = [FileDownload(self._hub, repo_id, commit, file, self._folder, self._options) for file in model.files]
        # Several models of a repository share a projector. All take their locks in one order, so that none waits for
        # one that waits for it.
        locks = sorted(partial(self._folder, repo_id, file.path, ".lock") for file in model.files)

        def waiting() -> None:
            report(
                DownloadProgress(DownloadPhase.OTHER_INSTANCE, sum(file.n_received for file in files), model.n_bytes)
            )

        with ExitStack() as held:
            for lock in locks:
                held.enter_context(hold_folder_lock(lock, self._stop, waiting))
            pairs = zip(files, targets, strict=True)
            missing = [file for file, place in pairs if not self._is_there(repository, file, place, report)]
            if missing:
                n_there = model.n_bytes - sum(file.file.n_bytes for file in missing)
                self._check_space(missing)
                self._fetch(missing, n_there, model.n_bytes, report)
                self._install(repository, missing)
        report(DownloadProgress(DownloadPhase.DONE, model.n_bytes, model.n_bytes))
        return Downloaded(model.name, repo_id, commit, model.n_bytes, tuple(targets), was_there=not missing)

    def _is_there(
        self,
        repository: Repository,
        file: FileDownload,
        place: Path,
        report: Callable[[DownloadProgress], None],
    ) -> bool:
        record = read_record(self._folder, place)
        if record is not None and record.content != file.file.content:
            return False
        if is_verified(self._folder, place):
            return True
        # Perhaps only its time has changed, or its user has copied it here: reading it is quicker than fetching it.
        remote = file.file

        def checking(n_read: int, n_bytes: int) -> None:
            report(DownloadProgress(DownloadPhase.CHECKING, n_read, n_bytes))

        try:
            status = place.stat()
            if status.st_size != remote.n_bytes or not has_content(place, remote.content, checking, self._stop):
                return False
            self._record(repository, remote, place, status)
            return True
        except OSError:
            return False  # fetching it reports the error

    def _check_space(self, files: list[FileDownload]) -> None:
        n_missing = sum(file.file.n_bytes - file.n_received for file in files)
        check_space(self._folder, n_missing, self._options.reserve_bytes)

    def _fetch(
        self, files: list[FileDownload], n_there: int, n_total: int, report: Callable[[DownloadProgress], None]
    ) -> None:
        """Fetch several files at a time; the first that fails ends the others."""
        state = _DownloadState(len(files))
        halt, ended = threading.Event(), threading.Event()

        def fetch(index: int, file: FileDownload) -> None:
            try:
                file.run(halt, lambda phase, n_bytes: state.note(index, phase, n_bytes))
            finally:
                ended.set()

        with ThreadPoolExecutor(self._options.n_files) as pool:
            running = [pool.submit(fetch, index, file) for index, file in enumerate(files)]
            try:
                while not all(future.done() for future in running):
                    ended.wait(_REPORT_SECONDS)
                    ended.clear()
                    if self._stop.is_set() or any(future.done() and future.exception() for future in running):
                        halt.set()
                    n_done = n_there + state.n_done
                    report(self._speed.progress(time.monotonic(), n_done, n_total, state.phase))
            finally:
                halt.set()
        if errors := [error for future in running if (error := future.exception()) is not None]:
            n_done = n_there + sum(file.n_received for file in files)  # what was spoilt or removed is not there
            report(self._speed.progress(time.monotonic(), n_done, n_total, state.phase))
            _raise_first(errors)

    def _install(self, repository: Repository, files: list[FileDownload]) -> None:
        """Move all files into place; the first part of a split model comes last, because only that one is listed."""
        try:
            for file in reversed(files):
                place = file.finish()
                self._record(repository, file.file, place, place.stat())
        except OSError as error:
            raise as_download_errors(error, self._folder, 0) from error

    def _record(self, repository: Repository, file: HubFile, place: Path, status: os.stat_result) -> None:
        """Remember that ``place`` has the content of ``file``; raises OSError."""
        origin = FileOrigin(
            repository.repo_id, repository.commit, file.path, file.content, status.st_size, status.st_mtime_ns
        )
        write_record(self._folder, place, origin)


class _DownloadState:
    """Phases and received bytes of a model's files."""

    def __init__(self, n_files: int) -> None:
        self._phases = [DownloadPhase.DOWNLOADING] * n_files
        self._n_done = [0] * n_files

    @property
    def n_done(self) -> int:
        return sum(self._n_done)

    @property
    def phase(self) -> DownloadPhase:
        """The phase of the whole: a file that is verified waits for those that are not."""
        going_on = (DownloadPhase.CHECKING, DownloadPhase.DOWNLOADING)
        return next((phase for phase in going_on if phase in self._phases), DownloadPhase.VERIFYING)

    def note(self, index: int, phase: DownloadPhase, n_bytes: int) -> None:
        self._phases[index] = phase
        self._n_done[index] = n_bytes


def _raise_first(errors: list[BaseException]) -> None:
    """Raise the cause; Stopped only without another error, because the first failure stops the other files."""
    for error in sorted(errors, key=lambda error: isinstance(error, Stopped)):
        raise error
