"""The errors of downloads besides the Hub's own, as one tree.

DownloadError
├── UnsafeName       a name in a repository that would leave the models' folder
├── NothingToChoose  what was asked for fits no model of the repository, or several
├── NoSpace          the disk is too full
├── DiskFull         the disk became full in the middle
├── FolderRefused    the models' folder cannot be written
├── FileRemoved      another program has removed the file that was being written
├── ConnectionLost   nothing arrived for long; what is there is kept
├── WrongContent     the Hub sends something else than it announces
├── ChangedOnHub     the file changed while it was downloaded
└── Stopped          paused or cancelled by the user
"""

from __future__ import annotations

import errno
from pathlib import Path

from models.formatting.safe_text import shortened
from models.formatting.sentence import Sentence, SentenceError
from models.formatting.system_error import system_reason

_KEPT = Sentence("What has arrived is kept: start the download again, and it goes on from there.")


class DownloadError(SentenceError):
    """Base of every error about a download: its text says what happened and what to do."""


class UnsafeName(DownloadError):
    """A file name that would lead outside the models' folder, or that some systems cannot store."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(
            "The repository has a file called {shown}, which {why}. It is not downloaded: choose another repository.",
            shown=repr(shortened(name, 80)),
            why=why,
        )


class NothingToChoose(DownloadError):
    """The user's words fit no model, or several; ``example`` is a name that would fit one, or ""."""

    def __init__(self, text: str, /, example: str = "", **facts: object) -> None:
        super().__init__(text, **facts)
        self.example = example


class NoSpace(DownloadError):
    """The disk has too little space; ``needed``, ``reserve`` (which stays free) and ``free`` are bytes."""

    def __init__(self, folder: Path, needed: int, reserve: int, free: int) -> None:
        super().__init__(
            "{needed:size} are needed in {folder}, {reserve:size} beside them stay free for other programs, and "
            "{free:size} are free: {missing:size} are missing. Free some space, or choose a smaller quantisation.",
            needed=needed,
            reserve=reserve,
            folder=folder,
            free=free,
            missing=needed + reserve - free,
        )


class DiskFull(DownloadError):
    """The disk became full in the middle."""

    def __init__(self, folder: Path, missing: int) -> None:
        super().__init__(
            "The disk of {folder} is full, and {missing:size} are still to come. Free more than that: some of it stays "
            "free for other programs. {kept}",
            folder=folder,
            missing=missing,
            kept=_KEPT,
        )


class FolderRefused(DownloadError):
    """The models' folder cannot be written."""

    def __init__(self, folder: Path, reason: str) -> None:
        super().__init__(
            "{folder} cannot be written: {reason}. Change its permissions, or choose another folder for models.",
            folder=folder,
            reason=reason,
        )


class FileRemoved(DownloadError):
    """Another program has removed the file that was being written."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            "The file that was being written in {folder} is gone: another program has removed it, or the disk was "
            "taken away. Start again.",
            folder=folder,
        )


class ConnectionLost(DownloadError):
    """Nothing arrived for ``DownloadOptions.patience`` seconds."""

    def __init__(self, seconds: float, reason: str) -> None:
        why = Sentence(" ({reason})", reason=reason) if reason else ""
        super().__init__(
            "Nothing has arrived for {seconds:.0f} seconds{why}. Check the network. {kept}",
            seconds=seconds,
            why=why,
            kept=_KEPT,
        )


class WrongContent(DownloadError):
    """The content does not have the hash that the Hub announces."""

    def __init__(self, name: str) -> None:
        super().__init__(
            "{name} was downloaded twice and is not what the Hub announces: its checksum differs. It was "
            "deleted. A proxy may change downloads, or the Hub's copy is damaged: try again later.",
            name=name,
        )


class ChangedOnHub(DownloadError):
    """The file has changed since its download began, or ``is_short``: it ends sooner than the Hub's list says."""

    def __init__(self, name: str, *, is_short: bool = False) -> None:
        if is_short:
            super().__init__(
                "{name} is shorter on the Hub than its list of files says. Try again later, or choose another file: "
                "this one may be damaged there.",
                name=name,
            )
        else:
            super().__init__(
                "{name} keeps changing on the Hub while it is downloaded. Try again in a while.", name=name
            )


class Stopped(DownloadError):
    """The user paused or cancelled the download."""

    def __init__(self) -> None:
        super().__init__("The download was stopped. {kept}", kept=_KEPT)


def as_download_errors(error: OSError, folder: Path, missing: int) -> DownloadError:
    """The error of a failed write; ``missing`` bytes were still to come."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(folder, missing)
    if error.errno == errno.ENOENT:
        return FileRemoved(folder)
    return FolderRefused(folder, system_reason(error))
