"""Quantises a model: starts the process that does it, follows it, and puts the verified result among the models."""

from __future__ import annotations

import errno
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from app.jobs.quantise.messages import Failed, FileWritten, Go, QuantiseEvent, QuantiseTask, Sized, Stepped, Verified
from core.machine.host import this_machine
from core.process.child_process import ChildProcess, Pipe, PipeClosed, last_line, start_module
from models.files.disk import check_space, held_lock, hold_folder_lock
from models.files.errors import DownloadError, Stopped, as_download_errors
from models.files.provenance import FileOrigin, write_record
from models.files.safe_path import PARTIAL_FOLDER
from models.formatting.sentence import Sentence
from models.gguf.tensor_types import odd_rows
from models.quantise.plan import (
    FOLDER,
    WORTH_IT,
    QuantiseCancelled,
    QuantiseError,
    QuantiseFailed,
    QuantisePlan,
    QuantiseRefused,
)
from models.quantise.progress import Quantised, QuantisePhase, QuantiseProgress, seconds_left

RESERVE_BYTES = 128 << 20  # as a download leaves (``DownloadOptions``)
_HEADER_SLACK = 1 << 16  # bytes, for keys that quantising adds

ProgressCallback = Callable[[QuantiseProgress], None]


class QuantiseJob:
    """One model being quantised into the models' ``folder``. ``cancel`` may be called from any thread."""

    def __init__(
        self, plan: QuantisePlan, folder: Path, *, n_threads: int | None = None, reserve_bytes: int = RESERVE_BYTES
    ) -> None:
        """Prepare it; ``n_threads`` None is one per core. ``reserve_bytes`` stay free on the disk."""
        self._plan, self._folder, self._reserve = plan, folder, reserve_bytes
        self._n_threads = n_threads or this_machine().n_cores
        self._cancelled = threading.Event()
        self._process: ChildProcess | None = None
        self._began_writing = 0.0

    def cancel(self) -> None:
        """End it; ``run`` raises QuantiseCancelled and leaves nothing on the disk."""
        self._cancelled.set()
        process = self._process
        if process is not None:
            process.kill()

    def run(self, report: ProgressCallback = lambda progress: None) -> Quantised:
        """Do it and return the new model. Raises QuantiseError, or DownloadError for what the disk does not allow.

        The result appears in the models' folder under its name when it is whole and was loaded, or not at all.
        """
        partial = self._folder / PARTIAL_FOLDER / FOLDER / self._plan.target.name
        lock = partial.with_name(partial.name + ".lock")

        def waiting() -> None:
            report(QuantiseProgress(QuantisePhase.WAITING, 0, self._plan.weight_bytes))

        try:
            with hold_folder_lock(lock, self._cancelled, waiting), self._cleared(partial):
                if self._plan.target.exists():
                    raise QuantiseRefused(
                        "There is a model called {name} already: {target}.",
                        name=self._plan.name,
                        target=self._plan.target,
                    )
                return self._make(partial, report)
        except Stopped:
            raise QuantiseCancelled from None

    @contextmanager
    def _cleared(self, partial: Path) -> Iterator[None]:
        """Remove what a run before left there, and what this one leaves."""
        try:
            partial.unlink(missing_ok=True)
            partial.touch()
        except OSError as error:
            raise as_download_errors(error, self._folder, self._plan.weight_bytes) from error
        try:
            yield
        finally:
            partial.unlink(missing_ok=True)

    def _make(self, partial: Path, report: ProgressCallback) -> Quantised:
        started = time.monotonic()
        report(QuantiseProgress(QuantisePhase.SIZING, 0, self._plan.weight_bytes))
        with tempfile.TemporaryFile() as words:
            written, sha256 = self._follow(partial, words, report)
        n_bytes = self._install(partial, sha256)
        report(QuantiseProgress(QuantisePhase.DONE, self._plan.weight_bytes, self._plan.weight_bytes))
        return Quantised(
            self._plan.name,
            self._plan.target,
            n_bytes,
            written.n_tensors,
            written.n_fallback,
            time.monotonic() - started,
        )

    def _follow(self, partial: Path, words: IO[bytes], report: ProgressCallback) -> tuple[FileWritten, str]:
        """Let the process do it; return what it says of the result and its SHA-256."""
        written = FileWritten(0, 0)
        with self._running(words) as pipe:
            try:
                pipe.send(self._order(partial))
                while True:
                    match self._next(pipe):
                        case Sized(n_bytes):
                            self._check(n_bytes)
                            self._began_writing = time.monotonic()
                            pipe.send(Go())
                        case Stepped(n_done):
                            report(self._progress(QuantisePhase.QUANTISING, n_done))
                        case FileWritten() as written:
                            report(self._progress(QuantisePhase.VERIFYING, self._plan.weight_bytes))
                        case Verified(sha256):
                            return written, sha256
                        case Failed(reason):
                            raise self._failure(reason)
            except PipeClosed:
                if self._cancelled.is_set():
                    raise QuantiseCancelled from None
                raise self._failure(last_line(words) or Sentence("its process ended without a word")) from None

    @contextmanager
    def _running(self, words: IO[bytes]) -> Iterator[Pipe]:
        """Start the process; it is gone when the block ends."""
        # Killed, not asked: it may be deep in C, and keeps nothing that could be lost.
        with start_module("app.jobs.quantise.worker", words) as self._process:
            if self._cancelled.is_set():
                self._process.kill()
            yield self._process.pipe

    def _next(self, pipe: Pipe) -> QuantiseEvent:
        news: QuantiseEvent = pipe.receive()
        if self._cancelled.is_set():
            raise QuantiseCancelled
        return news

    def _order(self, partial: Path) -> QuantiseTask:
        plan = self._plan
        return QuantiseTask(str(plan.source), str(partial), plan.type.file_type, self._n_threads, plan.may_requantise)

    def _check(self, n_bytes: int) -> None:
        """Before a byte is written: is the result small enough, and is there room for it?"""
        if n_bytes > WORTH_IT * self._plan.weight_bytes:
            raise QuantiseRefused(
                "The result would be less than 5 % smaller than the {source_type} it is made from: {rows}, so they "
                "would get a larger type. Choose a smaller type, or one with short blocks such as Q4_0.",
                rows=odd_rows(self._plan.source_name, self._plan.type.name),
                source_type=self._plan.source_type,
            )
        check_space(self._folder, n_bytes + _header_bytes(self._plan), self._reserve)

    def _progress(self, phase: QuantisePhase, n_done: int) -> QuantiseProgress:
        n_total, elapsed = self._plan.weight_bytes, time.monotonic() - self._began_writing
        return QuantiseProgress(phase, n_done, n_total, seconds_left(n_done, n_total, elapsed))

    def _failure(self, reason: str) -> QuantiseError | DownloadError:
        if reason == os.strerror(errno.ENOSPC):
            return as_download_errors(OSError(errno.ENOSPC, reason), self._folder, self._plan.weight_bytes)
        return QuantiseFailed(
            "{source} could not be quantised to {type}: {reason}. Nothing of it is left on the disk.",
            source=self._plan.source_name,
            type=self._plan.type.name,
            reason=reason.rstrip(".") if reason.endswith(".") else reason,
        )

    def _install(self, partial: Path, sha256: str) -> int:
        """Give the verified file its name among the models, and remember what it was."""
        target = self._plan.target
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(partial, target)
            status = target.stat()
            made_from = f"{self._plan.source_name} ({self._plan.source_type})"
            record = FileOrigin(
                "", "", target.name, f"sha256:{sha256}", status.st_size, status.st_mtime_ns, made_from=made_from
            )
            write_record(self._folder, target, record)
        except OSError as error:
            raise as_download_errors(error, self._folder, 0) from error
        return status.st_size


def remove_leftovers(folder: Path) -> None:
    """Remove what jobs left that were killed; what another process is making stays."""
    for partial in (folder / PARTIAL_FOLDER / FOLDER).glob("*.gguf"):
        if (lock := held_lock(partial.with_name(partial.name + ".lock"))) is not None:
            with suppress(OSError):
                partial.unlink(missing_ok=True)
            lock.release()


def _header_bytes(plan: QuantisePlan) -> int:
    """Return an upper bound of the bytes before the tensors: those of the source, and a little more."""
    from models.gguf.header import read_header

    return read_header(plan.source).data_offset + _HEADER_SLACK
