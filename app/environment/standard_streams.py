"""Standard input and output, also where whoever started the command had closed them or they cannot be written."""

from __future__ import annotations

import errno
import os
import sys

# Errors of a full or broken disk, not mistakes of ours.
_NOT_WRITTEN = frozenset({errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EROFS, getattr(errno, "EDQUOT", errno.ENOSPC)})

PROGRESS_AS_JSON = "SLIPSTREAM_PROGRESS_AS_JSON"
"""Set for a command that another program follows: progress is one JSON object per line, with a stage and a share."""


def open_missing_streams() -> None:
    """Open closed standard streams on the null device: else the next file that is opened would take their place."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest free descriptor, which is this one: those before it are open by now.
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(descriptor, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - for good


def why_not_written(error: OSError) -> str | None:
    """Return a sentence for a failure to write that is the disk's; None for any other."""
    if error.errno not in _NOT_WRITTEN:
        return None
    return f"{error.filename or 'The output'} cannot be written: {error.strerror}."


def drop_output() -> None:
    """Drop what standard output still holds: writing it when Python exits would fail again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
