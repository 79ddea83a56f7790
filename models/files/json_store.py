"""A small JSON file that several processes read and change: written atomically, set aside if damaged."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from models.files.disk import is_there, taken_lock, write_whole
from models.formatting.sentence import Sentence, SentenceError
from models.formatting.system_error import system_reason

# Seconds to wait for another program's lock, and the size in bytes from which a file cannot be Slipstream's.
_LOCK_SECONDS = 10.0
_MAX_BYTES = 16 << 20
_VERSION = 1  # of the form of such files


class StoreRefused(SentenceError):
    """The file cannot be changed: the text says why and what to do."""


class JsonStore:
    """Entries by key in one file with a version. Thread-safe.

    ``problem`` is a sentence about what the last read found wrong, or None.
    """

    def __init__(self, path: Path, *, what: str, is_private: bool = False) -> None:
        """``what`` is the content as the subject of sentences, as "The settings of models".

        A file that ``is_private`` can be read by its owner alone.
        """
        self.path, self._what, self._is_private = path, what, is_private
        self.problem: str | None = None
        self._lock = threading.Lock()
        self._seen: object = ()  # what file ``changed`` saw; nothing yet

    def read(self) -> dict[str, Any]:
        """The entries; none if there is no file. A damaged file is set aside, and ``problem`` says so."""
        with self._lock:
            self.problem = None
            return self._read()

    def changed(self) -> dict[str, Any] | None:
        """The entries, if the file is another one than at the last call of this; else None."""
        try:
            status = os.stat(self.path)
            stamp: object = (status.st_mtime_ns, status.st_size, status.st_ino)
        except OSError:
            stamp = None
        if stamp == self._seen:
            return None
        entries = self.read()
        self._seen = stamp
        return entries

    def update(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Let ``change`` alter the entries and write them; raises StoreRefused."""
        with self._lock:
            path = self.path.with_name(f"{self.path.name}.lock")
            try:
                lock = taken_lock(path, _LOCK_SECONDS)
            except OSError as error:  # without it, others' entries could be lost
                raise _refused(path, error) from error
            if lock is None:
                raise StoreRefused(
                    "Another program has been writing {path} for some time. Try again in a moment.", path=self.path
                )
            try:
                self.problem = None
                entries = self._read()
                if self.problem is not None and is_there(self.path):
                    raise StoreRefused(self.problem)
                change(entries)
                self._write(entries)
            except OSError as error:
                raise _refused(self.path, error) from error
            finally:
                lock.release()

    def _read(self) -> dict[str, Any]:
        try:
            if self.path.stat().st_size > _MAX_BYTES:
                raise ValueError("too large")
            content = json.loads(self.path.read_bytes())
            version, entries = content["version"], content["entries"]
            if not isinstance(entries, dict) or not isinstance(version, int):
                raise ValueError("not the expected shape")
        except FileNotFoundError:
            return {}
        except OSError as error:
            self.problem = Sentence(
                "{path} cannot be read: {reason}. Check its permissions.", path=self.path, reason=system_reason(error)
            )
            return {}
        except (ValueError, TypeError, KeyError, RecursionError):
            self._set_aside()
            return {}
        if version > _VERSION:
            self.problem = Sentence(
                "{path} was written by a newer Slipstream and is left as it is. Update Slipstream, or move "
                "the file away.",
                path=self.path,
            )
            return {}
        return entries

    def _set_aside(self) -> None:
        number = 1
        while (aside := self.path.with_name(f"{self.path.name}.broken-{number}")).exists():
            number += 1
        try:
            os.replace(self.path, aside)
        except OSError as error:
            self.problem = Sentence(
                "{path} is damaged and cannot be moved away: {reason}. Delete it.",
                path=self.path,
                reason=system_reason(error),
            )
            return
        self.problem = Sentence(
            "{what} could not be read: the file is damaged. It was kept as {aside}, and a new one begins.",
            what=self._what,
            aside=aside,
        )

    def _write(self, entries: dict[str, Any]) -> None:
        content = json.dumps({"version": _VERSION, "entries": entries}, ensure_ascii=False, indent=1)
        write_whole(self.path, content, is_durable=True, is_private=self._is_private)


def _refused(path: Path, error: OSError) -> StoreRefused:
    reason = system_reason(error)
    return StoreRefused(
        "{path} cannot be written: {reason}. Check its permissions and the disk's space.", path=path, reason=reason
    )
