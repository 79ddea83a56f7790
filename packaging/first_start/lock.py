"""The lock of a set-up: two first starts in one folder take turns. The system frees it when its holder dies."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path


@contextlib.contextmanager
def hold(file: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the lock ``file``; call ``on_wait`` once if another process has it."""
    has_waited = False
    while True:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not has_waited:
                    on_wait()
                    has_waited = True
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if not _is_still(file, descriptor):
                continue
            yield
            return
        finally:
            os.close(descriptor)


def _is_still(file: Path, descriptor: int) -> bool:
    """Whether the locked file is the one in the folder: somebody may have deleted .venv meanwhile."""
    try:
        return os.path.samestat(file.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
