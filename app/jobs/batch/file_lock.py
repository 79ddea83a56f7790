"""A lock on an open file that the system gives back when this process ends, however it ends."""

from __future__ import annotations

import os
import struct
import sys

# What fcntl takes and gives: type, whence, start, length, process; other systems order them differently.
_LINUX_FLOCK, _BSD_FLOCK = "hhqqi4x", "qqihh"


def try_lock(fd: int) -> bool:
    """Lock the file for this process; return whether nobody else had it.

    The lock is lost when *any* descriptor of the file is closed in this process.
    """
    if sys.platform == "win32":
        import msvcrt

        try:
            os.lseek(fd, 1 << 60, os.SEEK_SET)  # behind all data: what is locked cannot be read by others
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
    import fcntl

    try:
        # Not flock(): a record lock is not handed on to children, and the system can say who holds it.
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def holder(fd: int) -> int | None:
    """Return the process that holds the lock, None where that is not known."""
    if sys.platform == "win32":
        return None
    import fcntl

    is_linux = sys.platform == "linux"
    try:
        if is_linux:
            asked = struct.pack(_LINUX_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            pid = struct.unpack(_LINUX_FLOCK, fcntl.fcntl(fd, fcntl.F_GETLK, asked))[4]
        else:
            asked = struct.pack(_BSD_FLOCK, 0, 0, 0, fcntl.F_WRLCK, os.SEEK_SET)
            pid = struct.unpack(_BSD_FLOCK, fcntl.fcntl(fd, fcntl.F_GETLK, asked))[2]
    except (OSError, struct.error):
        return None
    return int(pid) if pid > 0 else None
