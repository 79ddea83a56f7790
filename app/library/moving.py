"""Moves the folder of models to another place: copy and check every file, switch, and only then delete the old ones."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from app.environment.exit_codes import ExitCode
from app.environment.paths import models_folder, models_place_file
from app.library.errors import LibraryError
from models.files.disk import full_path, held_lock, is_there, write_whole
from models.formatting.sentence import Sentence
from models.formatting.system_error import system_reason
from models.library.values import MoveStep

FOLDER = "Slipstream models"  # made in a chosen folder that has other files
_CHUNK = 8 << 20  # bytes; a cancel is noticed between two
_HOLE = bytes(_CHUNK)
_SPARE = 64 << 20  # bytes that stay free for folders, and for whoever else writes there
_TELL_SECONDS = 0.2  # between two reports of progress
_WAIT_SECONDS = 0.2  # for those who only write a file


class MoveCancelled(LibraryError):
    """The move was cancelled: the models are where they were."""


@contextmanager
def no_other_move() -> Iterator[None]:
    """Keep all others from moving the models, in other processes too; raises LibraryError while somebody does.

    Whoever only writes a file where they are holds it for a moment, for which others wait.
    """
    lock = held_lock(models_place_file().with_suffix(".lock"), _WAIT_SECONDS)
    if lock is None:
        raise LibraryError(Sentence("The models are being moved: wait until that has ended."), ExitCode.USAGE)
    try:
        yield
    finally:
        lock.release()


class ModelsMove:
    """One move, for which ``no_other_move`` is held. Until all is copied and checked the old folder stays as it is."""

    def __init__(self, chosen: Path) -> None:
        """Raises LibraryError if ``chosen`` cannot take the place of the present folder of models."""
        self._source = models_folder()
        self.target = _place(chosen, self._source)
        self._files, self._links = _listed(self._source)
        self._n_bytes = sum(status.st_size for status in self._files.values())
        self._made: list[Path] = []  # what was made in the new place, to be taken away again
        self._cancelled = threading.Event()
        self._told = 0.0
        self._make_target()
        self._check_room()

    def cancel(self) -> None:
        """Cancel the move and remove what was copied. After the switch to the new folder it is too late."""
        self._cancelled.set()

    def run(self) -> Iterator[MoveStep]:
        """Yield how far it is, at last with ``is_over``; raises LibraryError, and then all is as before."""
        hashes: dict[Path, str] = {}
        try:
            for at, file in enumerate(self._files):
                hashes[file] = yield from self._copy(file, at)
            for link in self._links:
                self._make_folder((self.target / link).parent)
                os.symlink(os.readlink(self._source / link), self.target / link)
                self._made.append(self.target / link)
            for at, (file, expected) in enumerate(hashes.items()):
                found = yield from self._hash(self.target / file, at, "checking")
                if found != expected:
                    raise LibraryError(
                        "{file} is not the same there as here. {stays}", ExitCode.ERROR, file=file, stays=_STAYS
                    )
            self._check_unchanged()
            self._stop_if_cancelled()
            write_whole(models_place_file(), str(self.target), is_durable=True)
        except OSError as error:
            self._undo()
            raise LibraryError(
                "{filename} cannot be written: {reason}. {stays}",
                ExitCode.ERROR,
                filename=error.filename or self.target,
                reason=system_reason(error),
                stays=_STAYS,
            ) from error
        except BaseException:
            self._undo()
            raise
        n_left = self._delete_old()
        yield MoveStep("moved", self._n_bytes, self._n_bytes, str(self.target), n_left, is_over=True)

    # The new place.

    def _make_target(self) -> None:
        try:
            self._make_folder(self.target)
            with tempfile.TemporaryFile(dir=self.target):
                pass
        except OSError as error:
            self._undo()
            raise LibraryError(
                "Nothing can be written in {target}: {reason}. Choose another folder.",
                ExitCode.USAGE,
                target=self.target,
                reason=system_reason(error),
            ) from error

    def _check_room(self) -> None:
        free = shutil.disk_usage(self.target).free
        n_bytes = sum(_n_stored(file, status) for file, status in self._files.items())
        if free < n_bytes + _SPARE:
            self._undo()
            raise LibraryError(
                "The models have {n_bytes:size}, and {target} has room for {free:size}. Choose another "
                "folder, or make room there.",
                ExitCode.USAGE,
                n_bytes=n_bytes,
                target=self.target,
                free=free,
            )

    def _make_folder(self, folder: Path) -> None:
        missing = [one for one in (folder, *folder.parents) if not one.exists()]
        for one in reversed(missing):
            one.mkdir()
            self._made.append(one)

    def _undo(self) -> None:
        """Take away what was made, and nothing else."""
        for path in reversed(self._made):
            try:
                if path.is_dir() and not path.is_symlink():
                    path.rmdir()
                else:
                    path.unlink()
            except OSError:
                continue  # another program has put a file there, or the disk is gone
        self._made.clear()

    # The files.

    def _copy(self, file: Path, at: int) -> Generator[MoveStep, None, str]:
        there = self.target / file
        self._make_folder(there.parent)
        digest = hashlib.sha256()
        with open(self._source / file, "rb") as old, open(there, "xb") as new:
            self._made.append(there)
            while chunk := old.read(_CHUNK):
                self._stop_if_cancelled()
                digest.update(chunk)
                if chunk == _HOLE:  # of an unfinished download: holes take no room there either
                    new.seek(len(chunk), os.SEEK_CUR)
                else:
                    new.write(chunk)
                yield from self._tell("copying", at, old.tell())
            new.truncate()
            new.flush()
            os.fsync(new.fileno())
        shutil.copystat(self._source / file, there)
        return digest.hexdigest()

    def _hash(self, path: Path, at: int, stage: str) -> Generator[MoveStep, None, str]:
        digest = hashlib.sha256()
        with open(path, "rb") as opened:
            while chunk := opened.read(_CHUNK):
                self._stop_if_cancelled()
                digest.update(chunk)
                yield from self._tell(stage, at, opened.tell())
        return digest.hexdigest()

    def _tell(self, stage: str, at: int, n_of_file: int) -> Iterator[MoveStep]:
        if (now := time.monotonic()) - self._told >= _TELL_SECONDS:
            self._told = now
            before = sum(status.st_size for status in list(self._files.values())[:at])
            yield MoveStep(stage, before + n_of_file, self._n_bytes, str(self.target))

    def _stop_if_cancelled(self) -> None:
        if self._cancelled.is_set():
            raise MoveCancelled("The move was cancelled. {stays}", ExitCode.ERROR, stays=_STAYS)

    def _check_unchanged(self) -> None:
        """Raise where somebody has written into the old folder since: what is there now was not copied."""
        files, links = _listed(self._source)
        before = {file: _stamp(status) for file, status in self._files.items()}
        if {file: _stamp(status) for file, status in files.items()} != before or links != self._links:
            raise LibraryError(
                "{source} has changed while its files were copied. {stays} Try again when nothing is written there.",
                ExitCode.ERROR,
                source=self._source,
                stays=_STAYS,
            )

    def _delete_old(self) -> int:
        """Delete what was copied, and folders that are empty then; return how many files are still there."""
        n_left = 0
        for file in (*self._files, *self._links):
            try:
                (self._source / file).unlink()
            except OSError:
                n_left += 1
        for folder, _, _ in os.walk(self._source, topdown=False):
            try:
                os.rmdir(folder)
            except OSError:
                continue  # not empty
        return n_left


_STAYS = Sentence("The models are where they were.")


def _place(chosen: Path, source: Path) -> Path:
    chosen = full_path(chosen)
    try:
        is_chosen_there = is_there(chosen)
        if is_chosen_there and not chosen.is_dir():
            raise LibraryError("{chosen} is no folder. Choose a folder.", ExitCode.USAGE, chosen=chosen)
        has_others = is_chosen_there and any(chosen.iterdir())
    except OSError as error:
        raise LibraryError(
            "{chosen} cannot be read: {reason}. Choose another.",
            ExitCode.USAGE,
            chosen=chosen,
            reason=system_reason(error),
        ) from error
    target = chosen / FOLDER if has_others else chosen
    real, old = target.resolve(), source.resolve()
    if real == old or chosen.resolve() == old:
        raise LibraryError("The models are in {source} already.", ExitCode.USAGE, source=source)
    if real.is_relative_to(old):
        raise LibraryError(
            "{target} is inside the present folder of models. Choose one outside.", ExitCode.USAGE, target=target
        )
    if target.exists() and any(target.iterdir()):
        raise LibraryError("{target} has files already. Choose an empty folder.", ExitCode.USAGE, target=target)
    return target


def _listed(folder: Path) -> tuple[dict[Path, os.stat_result], list[Path]]:
    """Return the files below a folder, and the links, which are not followed."""
    files: dict[Path, os.stat_result] = {}
    links: list[Path] = []
    for where, folders, names in os.walk(folder):
        for name in sorted((*names, *(one for one in folders if os.path.islink(os.path.join(where, one))))):
            path = Path(where, name)
            if path.is_symlink():
                links.append(path.relative_to(folder))
            else:
                files[path.relative_to(folder)] = path.stat()
    return files, sorted(links)


def _n_stored(file: Path, status: os.stat_result) -> int:
    """Return the bytes that a file takes on its disk: what has not arrived of a download is a hole in its file."""
    return min(status.st_size, status.st_blocks * 512) if file.suffix == ".part" else status.st_size


def _stamp(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns
