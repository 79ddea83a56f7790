"""A queue of downloads that outlives the app: order, pause, resume, cancel."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from models.download.model_download import DownloadRequest, ModelDownload
from models.download.progress import Downloaded, DownloadOptions, DownloadPhase, DownloadProgress
from models.download.queue_file import QueueFile
from models.download.resume import n_recorded
from models.files.disk import hold_folder_lock
from models.files.errors import DownloadError, Stopped
from models.files.provenance import remove_empty
from models.files.safe_path import PARTIAL_FOLDER, partial
from models.formatting.json_values import value_of
from models.hub.client import Hub

_NOTHING = DownloadProgress(DownloadPhase.QUEUED, 0, 0)


@dataclass(frozen=True, slots=True)
class QueuedDownload:
    """One download of the queue. ``error`` says why it failed (it can be resumed), ``done`` is the result.

    ``files`` are its files below the models' folder, known once the Hub has answered.
    """

    number: int
    request: DownloadRequest
    files: tuple[str, ...] = ()
    progress: DownloadProgress = _NOTHING
    error: Exception | None = None
    done: Downloaded | None = None

    @property
    def phase(self) -> DownloadPhase:
        """Its phase: waiting, downloading, verifying and so on."""
        return self.progress.phase


class DownloadQueue:
    """Runs downloads in order, one at a time, in a thread of its own. Thread-safe.

    Numbers of jobs that are gone from the list mean nothing: two windows' clicks can cross.
    ``changed`` is called from that thread with a job that has changed. The next queue of the same folder starts with
    the unfinished downloads of those that are gone, paused; ``interrupted`` are the numbers of those that the user had
    not paused.
    """

    def __init__(
        self,
        hub: Hub,
        folder: Path,
        options: DownloadOptions | None = None,
        *,
        changed: Callable[[QueuedDownload], None] = lambda job: None,
    ) -> None:
        self.folder = folder
        self._hub, self._options = hub, options
        self._on_change = changed
        self._file = QueueFile(folder / PARTIAL_FOLDER)
        self._lock = threading.Condition()
        self._running: dict[int, ModelDownload] = {}
        # The phase in which a running job is to end.
        self._asked: dict[int, DownloadPhase] = {}
        self._is_closing = False
        saved = self._saved()
        self._jobs = [job for job, _ in saved]
        self._n_numbers = len(self._jobs)
        self.interrupted = tuple(job.number for job, was_paused in saved if not was_paused)

    @property
    def jobs(self) -> tuple[QueuedDownload, ...]:
        """All jobs in order, including finished ones but not cancelled ones."""
        with self._lock:
            return tuple(self._jobs)

    def has_given(self, number: int) -> bool:
        """Whether a job has this number, or had it."""
        return 1 <= number <= self._n_numbers

    def add(self, request: DownloadRequest) -> QueuedDownload:
        """Add a request at the end; resume it if it is in the queue already."""
        with self._lock:
            known = next(
                (job for job in self._jobs if job.request == request and job.phase is not DownloadPhase.DONE), None
            )
            if known is None:
                self._n_numbers += 1
                known = QueuedDownload(self._n_numbers, request)
                self._jobs.append(known)
                self._save()
            self.resume(known.number)
            return self._job(known.number)

    def pause(self, number: int) -> None:
        """Stop a job; its partial files are kept."""
        self._end(number, DownloadPhase.PAUSED)

    def resume(self, number: int) -> None:
        """Queue a paused or failed job again. A job that is still stopping resumes once it has stopped."""
        with self._lock:
            if number in self._asked:
                self._asked[number] = DownloadPhase.QUEUED
            elif self._phase(number) in (DownloadPhase.PAUSED, DownloadPhase.FAILED):
                self._set(number, phase=DownloadPhase.QUEUED)
                self._save()
            self._start()

    def cancel(self, number: int) -> None:
        """End a job and remove its partial files."""
        self._end(number, DownloadPhase.CANCELLED)

    def move(self, number: int, position: int) -> None:
        """Move a job to a position, 0 being first. Running jobs go on."""
        with self._lock:
            if self._phase(number) is not None:
                job = self._job(number)
                self._jobs.remove(job)
                self._jobs.insert(position, job)
                self._save()

    def clear_ended(self) -> None:
        """Remove finished jobs from the list."""
        with self._lock:
            self._jobs = [job for job in self._jobs if job.phase is not DownloadPhase.DONE]

    def clear_removed(self) -> None:
        """Remove finished jobs whose files are gone from the list."""
        with self._lock:
            self._jobs = [job for job in self._jobs if job.phase is not DownloadPhase.DONE or self._is_there(job)]

    def use(self, hub: Hub) -> None:
        """Use another hub for jobs that start from now on, after settings or the token have changed."""
        self._hub = hub

    def close(self) -> None:
        """Stop everything. The next queue of this folder has the same jobs."""
        with self._lock:
            self._is_closing = True
            running = list(self._running)
        for number in running:
            self.pause(number)
        self.wait()
        self._file.close()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until nothing runs; False if it still does after ``timeout`` seconds."""
        with self._lock:
            return self._lock.wait_for(lambda: not self._running, timeout)

    def _end(self, number: int, phase: DownloadPhase) -> None:
        with self._lock:
            running = self._running.get(number)
            if running is not None:
                self._asked[number] = phase
                running.stop()
                return
            if self._phase(number) in (None, DownloadPhase.DONE):
                return
            self._set(number, phase=phase)
            if phase is DownloadPhase.CANCELLED:
                self._discard(self._job(number))
            self._save()

    def _start(self) -> None:
        """Start the next job if none runs; the lock must be held."""
        job = next((job for job in self._jobs if job.phase is DownloadPhase.QUEUED), None)
        if job is not None and not self._running and not self._is_closing:
            self._running[job.number] = ModelDownload(self._hub, job.request, self.folder, self._options)
            threading.Thread(target=self._run, args=(job.number,), daemon=True).start()

    def _run(self, number: int) -> None:
        failure, phase, done = None, DownloadPhase.DONE, None
        try:
            done = self._running[number].run(lambda progress: self._note(number, progress))
        except Stopped:
            phase = self._asked.get(number, DownloadPhase.PAUSED)
        except Exception as error:
            # Any error ends only this job, and the queue goes on. It is shown, but not of a job that was being stopped.
            phase = self._asked.get(number, DownloadPhase.FAILED)
            failure = error if phase is DownloadPhase.FAILED else None
        with self._lock:
            self._know_files(number)
            del self._running[number]
            self._asked.pop(number, None)
            self._set(number, phase=phase, error=failure, done=done)
            if phase is DownloadPhase.CANCELLED:
                self._discard(self._job(number))
            self._save()
            self._start()
            self._lock.notify_all()

    def _note(self, number: int, progress: DownloadProgress) -> None:
        if progress.phase is not DownloadPhase.DONE:
            with self._lock:
                self._replace(replace(self._job(number), progress=progress, error=None))
                self._know_files(number)

    def _know_files(self, number: int) -> None:
        """Copy the file names of the running job into its entry; the lock must be held."""
        job, files = self._job(number), self._running[number].files
        if job.files != files and files:
            self._jobs = [replace(job, files=files) if other.number == number else other for other in self._jobs]
            # Saved, so that it can be cancelled offline.
            self._save()

    def _discard(self, job: QueuedDownload) -> None:
        """Remove a job and its partial files; the lock must be held."""
        self._jobs = [other for other in self._jobs if other.number != job.number]
        # Models of one repository share a projector, and another Slipstream may be downloading the same files.
        wanted = {name for other in self._jobs for name in other.files}
        at_once = threading.Event()
        at_once.set()
        for name in set(job.files) - wanted:
            try:
                lock = self._partial(name, ".lock")
                with hold_folder_lock(lock, at_once, lambda: None):
                    for suffix in (".part", ".journal"):
                        self._partial(name, suffix).unlink(missing_ok=True)
                remove_empty(lock.parent, self.folder)
            except (DownloadError, OSError):
                continue

    def _is_there(self, job: QueuedDownload) -> bool:
        # Path.exists raises if the disk was pulled out, and the next download must start all the same.
        return all(os.path.exists(self.folder / name) for name in job.files)

    def _phase(self, number: int) -> DownloadPhase | None:
        return next((job.phase for job in self._jobs if job.number == number), None)

    def _job(self, number: int) -> QueuedDownload:
        return next(job for job in self._jobs if job.number == number)

    def _set(
        self, number: int, *, phase: DownloadPhase, error: Exception | None = None, done: Downloaded | None = None
    ) -> None:
        job = self._job(number)
        progress = replace(job.progress, phase=phase, bytes_per_second=0.0, eta=None)
        if done is not None:  # a small file, or one that was there, is whole before anything was told of it
            progress = replace(progress, n_done=done.n_bytes, n_total=done.n_bytes)
        self._replace(replace(job, progress=progress, error=error, done=done))

    def _replace(self, job: QueuedDownload) -> None:
        self._jobs = [job if other.number == job.number else other for other in self._jobs]
        self._on_change(job)

    def _save(self) -> None:
        if self._is_closing:  # closing stops jobs, but does not pause them
            return
        requests = [
            asdict(job.request)
            | {"is_paused": job.phase is DownloadPhase.PAUSED, "files": job.files, "n_total": job.progress.n_total}
            for job in self._jobs
            if job.phase is not DownloadPhase.DONE
        ]
        try:
            self._file.write(requests)
        except OSError:
            # The download itself reports that the folder cannot be written.
            return

    def _saved(self) -> list[tuple[QueuedDownload, bool]]:
        """The jobs that were saved, with what has arrived of each, and whether the user had paused it."""
        found: dict[DownloadRequest, tuple[QueuedDownload, bool]] = {}
        with suppress(OSError):
            for one in self._file.take_over():
                with suppress(ValueError, TypeError, KeyError, AttributeError):  # of another version, perhaps
                    request = value_of(DownloadRequest, one)
                    files, n_total = tuple(map(str, one.get("files", ()))), int(one.get("n_total", 0))
                    n_done = sum(map(self._n_received, files)) if n_total else 0
                    progress = DownloadProgress(DownloadPhase.PAUSED, n_done, n_total)
                    job = QueuedDownload(len(found) + 1, request, files, progress)
                    found.setdefault(request, (job, one.get("is_paused", True)))
        return list(found.values())

    def _n_received(self, name: str) -> int:
        with suppress(DownloadError, OSError):
            return n_recorded(self._partial(name, ".journal")) if self._partial(name, ".part").exists() else 0
        return 0

    def _partial(self, name: str, suffix: str) -> Path:
        maker, _, path = name.partition("/")
        return partial(self.folder, maker, path, suffix)
