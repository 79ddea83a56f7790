"""Why the operating system refused something, as a sentence that a window can translate."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator

from models.formatting.sentence import Sentence


def system_reason(error: BaseException) -> str:
    """Return why the system refused, in a few words without a full stop.

    The OSError may be ``error`` itself or one of its causes. A reason that is not in the table is given in the system's
    own words.
    """
    for cause in _causes(error):
        if isinstance(cause, OSError) and (known := _known(cause)) is not None:
            return known
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def lacks_space(error: BaseException) -> bool:
    """Return whether the disk was full, by ``error`` itself or one of its causes."""
    return any(isinstance(cause, OSError) and cause.errno in _NO_SPACE for cause in _causes(error))


_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _known(error: OSError) -> Sentence | None:
    if isinstance(error, socket.gaierror):  # its numbers are EAI_..., not those of errno
        if error.errno == socket.EAI_AGAIN:
            return Sentence("Temporary failure in name resolution")
        return Sentence("Name or service not known")
    if error.errno is None and isinstance(error, TimeoutError):
        return Sentence("Connection timed out")
    return {
        errno.EACCES: Sentence("Permission denied"),
        errno.EADDRINUSE: Sentence("Address already in use"),
        errno.EBUSY: Sentence("Device or resource busy"),
        errno.ECONNREFUSED: Sentence("Connection refused"),
        errno.ECONNRESET: Sentence("Connection reset by peer"),
        errno.EDQUOT: Sentence("Disk quota exceeded"),
        errno.EEXIST: Sentence("File exists"),
        errno.EFBIG: Sentence("File too large"),
        errno.EHOSTUNREACH: Sentence("No route to host"),
        errno.EIO: Sentence("Input/output error"),
        errno.EISDIR: Sentence("Is a directory"),
        errno.EMFILE: Sentence("Too many open files"),
        errno.ENAMETOOLONG: Sentence("File name too long"),
        errno.ENETUNREACH: Sentence("Network is unreachable"),
        errno.ENFILE: Sentence("Too many open files in system"),
        errno.ENOENT: Sentence("No such file or directory"),
        errno.ENOMEM: Sentence("Cannot allocate memory"),
        errno.ENOSPC: Sentence("No space left on device"),
        errno.ENOTDIR: Sentence("Not a directory"),
        errno.ENOTEMPTY: Sentence("Directory not empty"),
        errno.EPERM: Sentence("Operation not permitted"),
        errno.EPIPE: Sentence("Broken pipe"),
        errno.EROFS: Sentence("Read-only file system"),
        errno.ETIMEDOUT: Sentence("Connection timed out"),
    }.get(error.errno or 0)
