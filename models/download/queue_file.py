"""The file of a queue's downloads: one for each queue, since several servers of a user share a folder of models."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from models.files.disk import held_lock, numbered, read_json, write_whole

if TYPE_CHECKING:
    from filelock import FileLock


class QueueFile:
    """The entries of one queue: in ``queue.json``, or in the next that no other queue has, as ``queue-2.json``.

    The lock beside it is the process's, and goes with it: what it leaves is the next queue's.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path: Path | None = None
        self._lock: FileLock | None = None

    def take_over(self) -> list[Any]:
        """Return what queues have left that are gone; from now on it is this one's."""
        entries: list[Any] = []
        more: list[tuple[Path, FileLock]] = []
        for path in sorted(self._folder.glob("queue*.json"), key=lambda path: (len(path.name), path.name)):
            if (lock := held_lock(path.with_suffix(".lock"))) is None:
                continue
            found = read_json(path)
            entries += found if isinstance(found, list) else []
            if self._path is None:
                self._path, self._lock = path, lock
            else:
                more.append((path, lock))
        if more:
            with suppress(OSError):  # they stay then, for the next queue
                self.write(entries)
                for path, _ in more:
                    path.unlink(missing_ok=True)
        for _, lock in more:
            lock.release()
        return entries

    def write(self, entries: list[Any]) -> None:
        """Replace the entries; raises OSError."""
        if self._path is None:
            for path in numbered(self._folder / "queue.json"):
                # One that is there and that nobody has was left since this process began.
                if not path.exists() and (lock := held_lock(path.with_suffix(".lock"))) is not None:
                    self._path, self._lock = path, lock
                    break
            assert self._path is not None
        write_whole(self._path, json.dumps(entries))

    def close(self) -> None:
        """Leave the entries to the next queue."""
        if self._lock is not None:
            self._lock.release()
        self._path = self._lock = None
