"""Files on the disk: JSON files of our own, atomic writes, locks, and a check for free space."""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from models.files.errors import FolderRefused, NoSpace, Stopped
from models.formatting.json_values import value_of
from models.formatting.system_error import system_reason

if TYPE_CHECKING:
    import sqlite3

    from filelock import FileLock

# Seconds between two tries to get a lock.
_LOOK_SECONDS = 0.1
# What a disk says that knows no locks, as one of the network whose server has no service for them.
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP)
# Bytes: a larger JSON file is not one of ours.
_MOST_BYTES = 16 << 20


def read_json(path: Path, most: int = _MOST_BYTES) -> Any:
    """Return what a JSON file holds; None if it is missing, damaged, or has more than ``most`` bytes."""
    try:
        return json.loads(path.read_bytes()) if path.stat().st_size <= most else None
    except (OSError, ValueError, RecursionError):
        return None


def read_value(kind: Any, path: Path) -> Any:
    """Return the value of ``kind`` that a JSON file holds; None if it holds none."""
    try:
        return value_of(kind, read_json(path))
    except (ValueError, TypeError, KeyError):
        return None


def write_whole(path: Path, text: str, *, is_durable: bool = False, is_private: bool = False) -> None:
    """Replace the file's content by ``text`` (UTF-8), and make its folders; raises OSError.

    Names of files in it may hold what UTF-8 cannot: readers of JSON know how Python writes that.
    A reader sees the old content or the new one, even if this process dies or others write too. ``is_durable``
    also makes it survive a loss of power, and ``is_private`` lets nobody but its owner read it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.new")
    try:
        opener = partial(os.open, mode=0o600 if is_private else 0o666)
        with open(new, "w", encoding="utf-8", errors="surrogatepass", opener=opener) as file:
            file.write(text)
            if is_durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)


def full_path(written: Path) -> Path:
    """Return the full path that a user wrote, perhaps with ~. A ~ of nobody's stays: ``Path.expanduser`` raises."""
    return Path(os.path.abspath(os.path.expanduser(written)))


def is_there(path: Path) -> bool:
    """Return whether there is something at ``path``; raises OSError where the system does not say.

    ``Path.exists`` does so too, but calls that False from Python 3.14 on.
    """
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    return True


def move_database(path: Path, to: Path) -> None:
    """Move an SQLite file with its side files, in which the latest of its contents may be; raises OSError."""
    path.rename(to)
    for side in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            path.with_name(path.name + side).rename(to.with_name(to.name + side))


def backup_of(path: Path) -> Path:
    """Return where the copy of an SQLite file is that was made before it was changed to a newer version."""
    return path.with_name(f"{path.stem}.backup{path.suffix}")


def back_up_database(database: sqlite3.Connection, path: Path) -> None:
    """Copy the SQLite file at ``path`` that is open as ``database``. Raises OSError and sqlite3.Error.

    Only its owner may read the copy. Two programs may do this at once.
    """
    import sqlite3  # most processes have no database

    kept = backup_of(path)
    handle, name = tempfile.mkstemp(".new", f"{kept.name}.", kept.parent)
    os.close(handle)
    try:
        with closing(sqlite3.connect(name)) as copy:
            database.backup(copy)
        os.replace(name, kept)
    finally:
        Path(name).unlink(missing_ok=True)


def check_space(folder: Path, n_missing: int, reserve: int) -> None:
    """Raise NoSpace if ``n_missing`` bytes more would leave less than ``reserve`` on the disk of ``folder``."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    if n_missing and n_missing + reserve > free:
        raise NoSpace(folder, n_missing, reserve, free)


def numbered(path: Path) -> Iterator[Path]:
    """Yield ``path`` and the names after it: ``server.log``, ``server-2.log``, and so on."""
    yield path
    for number in count(2):
        yield path.with_stem(f"{path.stem}-{number}")


def taken_lock(path: Path, seconds: float = 0.0) -> FileLock | None:
    """Return the lock at ``path``, held until this process ends; None where another holds it for ``seconds`` more.

    On a disk that knows no locks, nobody holds one. Raises OSError where the lock cannot be opened.
    """
    from filelock import FileLock, Timeout  # slow to import, and most processes need no lock

    lock = FileLock(path, thread_local=False)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=seconds)
    except Timeout:
        return None
    except NotImplementedError:
        pass
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    return lock


def held_lock(path: Path, seconds: float = 0.0) -> FileLock | None:
    """Return the lock as ``taken_lock`` does; where it cannot be opened, nobody holds it."""
    from filelock import FileLock

    try:
        return taken_lock(path, seconds)
    except OSError:
        return FileLock(path, thread_local=False)


@contextmanager
def hold_folder_lock(path: Path, stop: threading.Event, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock at ``path``; while another process holds it, ``waiting`` is called now and then.

    The system frees the lock if its process dies. On a disk that knows no locks, nobody holds one. Raises Stopped when
    ``stop`` is set meanwhile, and FolderRefused.
    """
    while True:
        try:
            lock = taken_lock(path)
        except OSError as error:
            raise FolderRefused(path.parent, system_reason(error)) from error
        if lock is not None:
            break
        waiting()
        if stop.wait(_LOOK_SECONDS):
            raise Stopped
    try:
        yield
    finally:
        lock.release()
