"""Standard input and output, also where whoever started the command had closed them or they cannot be written."""

from __future__ import annotations

import codecs
import errno
import os
import sys
import unicodedata

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


_PLAIN = str.maketrans(
    {
        **dict.fromkeys("≈∼", "~"),
        **dict.fromkeys("–—−·•", "-"),
        **dict.fromkeys("“”„‘’‚«»", "'"),
        **dict.fromkeys("\N{WORD JOINER}\N{SOFT HYPHEN}\N{ZERO WIDTH SPACE}", ""),
        "×": "x",
        "→": "->",
        "ß": "ss",
    }
)


def write_all_texts() -> None:
    """Let standard output and error take every text, whatever their encoding is."""
    codecs.register_error("readable", _readable)
    for stream in (sys.stdout, sys.stderr):
        # In UTF-8 that is only what Python has for bytes in names of files, and whoever reads JSON knows it so.
        errors = "backslashreplace" if (stream.encoding or "").lower() == "utf-8" else "readable"
        stream.reconfigure(errors=errors)  # type: ignore[union-attr]  # neither is replaced here


def _readable(error: UnicodeError) -> tuple[str, int]:
    """Write what an encoding lacks in letters that each has: "≈ 4×" as "~ 4x", "ü" as "u", others as "?"."""
    assert isinstance(error, UnicodeEncodeError)
    letters = unicodedata.normalize("NFKD", error.object[error.start : error.end].translate(_PLAIN))
    letters = letters.replace('"', "'").replace("\\", "/")  # in JSON these would end a text, or change it
    return "".join(one if one.isascii() else "?" for one in letters if not unicodedata.combining(one)), error.end


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
