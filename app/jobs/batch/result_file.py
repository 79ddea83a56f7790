"""The output file: what is finished, line by line, and the only record of it.

Each line is in OpenAI's output format; its ``id`` holds the number of the input line and a digest of that line's bytes,
so that a later run knows what is finished and notices when the input is not the same any more.

A line is one ``write``: after a kill the file ends with a whole line or with a torn one, which the next run cuts off.
What was written survives the death of this process without more ado. Only the loss of power can take lines that were
not flushed, the last few seconds' worth: those requests are then simply made again, so flushing after every line, which
costs a disk milliseconds, would buy nothing but these.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import stat
import struct
import sys
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.values.errors import BadRequest, SlipstreamError

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


@dataclass(slots=True)
class Tally:
    """Counts over output lines: ``n_done`` answered, ``n_failed`` with an error, by its code; tokens of all."""

    n_done: int = 0
    n_failed: int = 0
    n_prompt_tokens: int = 0
    n_completion_tokens: int = 0
    errors: Counter[str] = field(default_factory=Counter)

    @property
    def n_lines(self) -> int:
        """Lines that are finished, one way or the other."""
        return self.n_done + self.n_failed

    def add(self, record: Mapping[str, Any]) -> None:
        """Count one output line."""
        response = record.get("response")
        response = response if isinstance(response, dict) else {}
        body = response.get("body")
        body = body if isinstance(body, dict) else {}
        if response.get("status_code") == 200:
            self.n_done += 1
            usage = body.get("usage") or {}
            self.n_prompt_tokens += int(usage.get("prompt_tokens") or usage.get("input_tokens") or 0)
            self.n_prompt_tokens += int(usage.get("cache_read_input_tokens") or 0)  # Anthropic counts these apart
            self.n_completion_tokens += int(usage.get("completion_tokens") or usage.get("output_tokens") or 0)
            return
        self.n_failed += 1
        error = record.get("error") or body.get("error")
        code = error.get("code") if isinstance(error, dict) else None
        self.errors[str(code or f"status_{response.get('status_code')}")] += 1


_BEGINNING = b'{"id": "batch_req_'
_LINE = re.compile(rb'\{"id": "batch_req_(\d{1,15})_([0-9a-f]{16})", ')
# A line number above this would make the table of finished lines absurdly large.
_MOST_LINES = 1 << 31
_LONGEST = 1 << 30


class OutputFailed(SlipstreamError):
    """The output file cannot be written any more."""


@dataclass(slots=True)
class FinishedLines:
    """The lines that the file held: ``digests[n]`` of input line n, 0 if not finished; ``n_bytes`` of whole lines."""

    digests: array[int] = field(default_factory=lambda: array("Q"))
    tally: Tally = field(default_factory=Tally)
    n_bytes: int = 0

    def digest(self, number: int) -> int:
        """Return the digest of a finished input line, 0 where it is not finished."""
        return self.digests[number] if number < len(self.digests) else 0

    def note(self, number: int, digest: int) -> None:
        """Note that an input line is finished."""
        if number >= len(self.digests):
            self.digests.frombytes(bytes(8 * (number + 1 - len(self.digests))))
        self.digests[number] = digest


class ResultFile:
    """The output file of one batch, locked while this process has it."""

    def __init__(self, path: Path) -> None:
        """Open or create ``path`` and lock it. Raises BadRequest."""
        self.path = path
        self._is_new = not os.path.lexists(path)
        self._raw = _opened(path)
        self._n_bytes = 0
        if not try_lock(self._raw.fileno()):
            pid = holder(self._raw.fileno())
            self._raw.close()
            who = f"process {pid}" if pid is not None else "another process"
            raise BadRequest(
                f"{path} is being written by {who}. Wait until that has ended, or choose another output file."
            )

    def read(self) -> FinishedLines:
        """Return what is finished. Raises BadRequest where a line is not one of ours; changes nothing."""
        history = FinishedLines()
        self._raw.seek(0)
        # Closing a second descriptor would give the lock back, so the reader shares this one.
        reader = io.BufferedReader(self._raw)
        try:
            for index, line in enumerate(_lines(reader), 1):
                if not line.endswith(b"\n") or line.startswith(b"\0"):
                    # A kill leaves part of a line at the end, a loss of power zeros: the rest is made again.
                    if not _could_be_ours(line.lstrip(b"\0") if index > 1 else line):
                        raise self._foreign(index)
                    break
                self._take(index, line, history)
        finally:
            reader.detach()
        return history

    def begin(self, history: FinishedLines) -> None:
        """Cut off what is torn and get ready to append. Raises OutputFailed."""
        self._n_bytes = history.n_bytes
        try:
            self._raw.truncate(history.n_bytes)
            os.fsync(self._raw.fileno())
        except OSError as error:
            raise self._failed(error) from None

    def append(self, number: int, digest: int, custom_id: str | None, **fields: Any) -> dict[str, Any]:
        """Write one line as a whole and return it. Raises OutputFailed, and then holds whole lines only."""
        record = {"id": f"batch_req_{number}_{digest:016x}", "custom_id": custom_id, **fields}
        data = json.dumps(record).encode() + b"\n"
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._raw.fileno(), rest) :]
        except OSError as error:
            with contextlib.suppress(OSError):
                self._raw.truncate(self._n_bytes)
            raise self._failed(error) from None
        self._n_bytes += len(data)
        return record

    def sync(self) -> None:
        """Flush to the disk. Raises OutputFailed, also where the file is not at its path any more."""
        try:
            os.fsync(self._raw.fileno())
        except OSError as error:
            raise self._failed(error) from None
        try:
            is_there = os.path.samestat(os.fstat(self._raw.fileno()), self.path.stat())
        except OSError:
            is_there = False
        if not is_there:
            raise OutputFailed(f"{self.path} was moved or deleted while it was written.")

    def withdraw(self) -> None:
        """Remove the file again where it was not there before and holds no line."""
        if self._is_new and self._n_bytes == 0:
            with contextlib.suppress(OSError):
                self.path.unlink()

    def close(self) -> None:
        """Close the file, which gives the lock back."""
        self._raw.close()

    def _take(self, index: int, line: bytes, history: FinishedLines) -> None:
        match = _LINE.match(line)
        number = int(match[1]) if match else 0
        try:
            record: Mapping[str, Any] = json.loads(line)
            if not 0 < number <= _MOST_LINES:
                raise ValueError
            history.tally.add(record)
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise self._foreign(index) from None
        assert match is not None
        if history.digest(number):
            raise BadRequest(
                f"{self.path} answers line {number} of the input twice, which a batch never does. "
                "Choose another output file."
            )
        history.note(number, int(match[2], 16))
        history.n_bytes += len(line)

    def _foreign(self, index: int) -> BadRequest:
        return BadRequest(
            f"{self.path} is not the output of a batch (line {index}), so it is left as it is. "
            "Choose another output file."
        )

    def _failed(self, error: OSError) -> OutputFailed:
        return OutputFailed(f"{self.path} cannot be written: {error.strerror}.")


def _could_be_ours(line: bytes) -> bool:
    """Return whether this is the beginning of one of our lines."""
    return _BEGINNING.startswith(line[: len(_BEGINNING)])


def _lines(reader: io.BufferedReader[io.FileIO]) -> Iterator[bytes]:
    """Yield the lines; of one that is absurdly long, as other files may have, only the beginning."""
    while line := reader.readline(_LONGEST):
        yield line


def _opened(path: Path) -> io.FileIO:
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        raw = io.FileIO(os.open(path, flags, 0o666), "a+")
    except IsADirectoryError:
        raise BadRequest(f"{path} is a folder: name the file that takes the answers.") from None
    except FileNotFoundError:
        raise BadRequest(f"{path} cannot be created: there is no folder {path.parent}.") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise BadRequest(f"{path} cannot be written: {reason}. Choose another output file.") from None
    if not stat.S_ISREG(os.fstat(raw.fileno()).st_mode):
        raw.close()
        raise BadRequest(f"{path} is not a file: the output is also the record of what is finished.")
    return raw
