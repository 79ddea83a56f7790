"""One download of a model at a time, in whichever process: the lock goes with the process that holds it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from models.files.errors import FolderRefused, Stopped

_LOOK_SECONDS = 0.1


@contextmanager
def hold_folder_lock(path: Path, stop: threading.Event, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock at ``path``; while another process holds it, ``waiting`` is called now and then.

    Raises Stopped when ``stop`` is set meanwhile, and FolderRefused.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path, thread_local=False)
        while True:
            try:
                lock.acquire(timeout=0)
                break
            except Timeout:
                waiting()
                if stop.wait(_LOOK_SECONDS):
                    raise Stopped from None
    except OSError as error:
        raise FolderRefused(path.parent, error.strerror or os.strerror(error.errno or 0)) from error
    try:
        yield
    finally:
        lock.release()
