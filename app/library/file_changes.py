"""Downloaded files that other programs have moved or deleted: told until that is dismissed."""

from __future__ import annotations

import logging
import threading

from app.environment.paths import models_folder
from models.files.integrity import GoneFile, MovedFile, accept_changes, look_for_changes
from models.formatting.sentence import Sentence
from models.library.values import Notice

_log = logging.getLogger("slipstream.library")


class FileChanges:
    """Notices by the path that a file had."""

    def __init__(self) -> None:
        self._moved: dict[str, Notice] = {}
        self._lock = threading.Lock()

    def look(self) -> tuple[Notice, ...]:
        """Look for changes. What is known of a moved file goes with it; what is gone stays known until dismissed."""
        with self._lock:
            changes = look_for_changes(models_folder())
            moved = [change for change in changes if isinstance(change, MovedFile)]
            self._moved |= {str(change.before): Notice(str(change.before), change.sentence) for change in moved}
            _settle(moved)
            return (*self._moved.values(), *(_gone(change) for change in changes if isinstance(change, GoneFile)))

    def dismiss(self, path: str) -> None:
        """Say no more of a file."""
        with self._lock:
            self._moved.pop(path, None)
            _settle([change for change in look_for_changes(models_folder()) if _path(change) == path])


def _path(change: MovedFile | GoneFile) -> str:
    return str(change.before if isinstance(change, MovedFile) else change.path)


def _settle(changes: list[MovedFile | GoneFile] | list[MovedFile]) -> None:
    try:
        accept_changes(models_folder(), changes)
    except OSError as error:
        _log.warning("%s cannot be written: %s", models_folder(), error)


def _gone(change: GoneFile) -> Notice:
    if not change.record.repo_id:
        return Notice(str(change.path), change.sentence)
    return Notice(
        str(change.path),
        Sentence("{sentence} It can be downloaded again.", sentence=change.sentence),
        change.record.repo_id,
        change.record.path,
    )
