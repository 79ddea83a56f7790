"""The input file, line by line and as often as needed, whatever its size."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from core.values.errors import BadRequest

# The server takes bodies of half of that.
MAX_LINE = 16 * 1024 * 1024
STDIN = "-"
_CHUNK = 1 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class InputLine:
    """A line that is not blank: its ``number`` from 1, its bytes (None where it is too long) and their digest."""

    number: int
    data: bytes | None
    digest: int


class JobFile:
    """Gives the lines of a file; what is piped in is put into a temporary file first."""

    def __init__(self, path: str) -> None:
        """Open ``path``, or standard input for ``-``. Raises BadRequest."""
        self.name = "standard input" if path == STDIN else path
        self._file = _spooled(sys.stdin.buffer) if path == STDIN else _opened(path)

    def is_same_as(self, path: Path) -> bool:
        """Return whether ``path`` is this very file, under whatever name."""
        try:
            return os.path.samestat(os.fstat(self._file.fileno()), path.stat())
        except OSError:
            return False

    def lines(self) -> Iterator[InputLine]:
        """Yield the lines from the beginning; one line at a time is in memory."""
        self._file.seek(0)
        number = 0
        while data := self._file.readline(MAX_LINE + 1):
            number += 1
            if number == 1:
                data = data.removeprefix(_BYTE_ORDER_MARK)
            if len(data) > MAX_LINE and not data.endswith(b"\n"):
                yield InputLine(number, None, self._digest_of_long(data))
            elif stripped := data.strip():
                yield InputLine(number, stripped, _number(hashlib.sha256(stripped)))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _digest_of_long(self, data: bytes) -> int:
        digest = hashlib.sha256()
        while data:
            digest.update(data)
            if data.endswith(b"\n"):
                break
            data = self._file.readline(_CHUNK)
        return _number(digest)


def _number(digest: hashlib._Hash) -> int:
    """Return the first 64 bits; never 0, which stands for no digest."""
    return int.from_bytes(digest.digest()[:8], "big") or 1


def _opened(path: str) -> BinaryIO:
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed by the JobFile
    except IsADirectoryError:
        raise BadRequest(f"{path} is a folder: name the file with the requests.") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise BadRequest(f"{path} cannot be read: {reason}.") from None
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    with file:
        return _spooled(file)


def _spooled(source: BinaryIO) -> BinaryIO:
    """Return everything that ``source`` has, in a file without a name: lines are read more than once."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the JobFile
    try:
        shutil.copyfileobj(source, file, _CHUNK)
        file.flush()
    except OSError as error:
        file.close()
        raise BadRequest(f"What is piped in could not be kept: {error.strerror}.") from None
    return file
