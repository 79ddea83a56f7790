"""Standard input and output, also where whoever started the command had closed them or they cannot be written."""

from __future__ import annotations

import codecs
import errno
import os
import sys
import unicodedata
from typing import TextIO

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


# What has another form in ASCII than Unicode knows.
_PLAIN = str.maketrans(
    {
        **dict.fromkeys("≈∼", "~"),
        **dict.fromkeys("–—−·•\N{HYPHEN}", "-"),
        **dict.fromkeys("“”„‘’‚«»", "'"),
        **dict.fromkeys("\N{WORD JOINER}\N{SOFT HYPHEN}\N{ZERO WIDTH SPACE}", ""),
        "\N{FRACTION SLASH}": "/",
        "×": "x",
        "→": "->",
        "≠": "!=",
        "ß": "ss",
    }
)
# Put before what is above the line and before fractions: else "10⁵" would be 105, and "1½" 11/2.
_APART = {"<super>": "^", "<fraction>": " "}


def is_utf8(stream: TextIO) -> bool:
    """Return whether a stream has each letter."""
    return codecs.lookup(stream.encoding or "ascii").name == "utf-8"


def write_all_texts() -> None:
    """Let standard output and error take every text, whatever their encoding is."""
    codecs.register_error("readable", _readable)
    for stream in (sys.stdout, sys.stderr):
        # In UTF-8 that is only what Python has for bytes in names of files, and whoever reads JSON knows it so.
        errors = "backslashreplace" if is_utf8(stream) else "readable"
        stream.reconfigure(errors=errors)  # type: ignore[union-attr]  # neither is replaced here


def _readable(error: UnicodeError) -> tuple[str, int]:
    """Write what an encoding lacks in letters that each has: "≈ 4×" as "~ 4x", "ü" as "u", others as "?"."""
    assert isinstance(error, UnicodeEncodeError)
    text = error.object
    return "".join(_in_ascii(text[at], text[at - 1 : at]) for at in range(error.start, error.end)), error.end


def _in_ascii(letter: str, before: str) -> str:
    parts = unicodedata.normalize("NFKD", letter.translate(_PLAIN)).translate(_PLAIN)
    # An accent may go; a stroke through a sign (the class 1) may not: "≮" is no "<".
    base = [part for part in parts if unicodedata.combining(part) <= 1]
    if base and not any(map(str.isascii, base)):
        return "?"
    kind = _kind(letter)
    is_above = kind == "<super>" and base[0].isalpha()  # as the letters of a trade mark
    apart = _APART.get(kind, "") if before.isalnum() and _kind(before) != kind and not is_above else ""
    return apart + "".join(part if part.isascii() else "?" for part in base)


def _kind(letter: str) -> str:
    return unicodedata.decomposition(letter).partition(" ")[0]


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
