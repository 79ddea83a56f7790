"""The pipe between server and engine: frozen values, each in one length-prefixed frame."""

from __future__ import annotations

import os
import pickle
import struct
import threading
from typing import Any

_LENGTH = struct.Struct("<Q")
# Bytes of one system call at most, and bytes that a read asks for at least.
_CHUNK = 1 << 20
_SMALL = 1 << 16


class PipeClosed(Exception):
    """The other end of the pipe is closed."""


class Pipe:
    """One end of a two-way pipe over two file descriptors. Sending is safe from several threads.

    Values are pickled: both ends are our own processes, and nothing from outside is ever written to these
    descriptors.
    """

    def __init__(self, read_fd: int, write_fd: int) -> None:
        """Take over both descriptors."""
        self._read_fd, self._write_fd = read_fd, write_fd
        self._lock = threading.Lock()
        self._unread = b""

    def send(self, value: object) -> None:
        """Write a value; raises PipeClosed."""
        body = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        with self._lock:
            self._write(_LENGTH.pack(len(body)) + body)

    def receive(self) -> Any:
        """Wait for the next value; raises PipeClosed. For one thread."""
        (size,) = _LENGTH.unpack(self._read(_LENGTH.size))
        return pickle.loads(self._read(size))

    def close(self) -> None:
        """Close both descriptors."""
        for fd in (self._read_fd, self._write_fd):
            try:
                os.close(fd)
            except OSError:
                continue

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._write_fd, view[:_CHUNK]) :]
        except OSError as error:
            raise PipeClosed from error

    def _read(self, size: int) -> bytes:
        """Return ``size`` bytes. Most messages arrive with one system call."""
        if len(self._unread) < size:
            parts, n_bytes = [self._unread], len(self._unread)
            while n_bytes < size:
                parts.append(self._read_some(max(size - n_bytes, _SMALL)))
                n_bytes += len(parts[-1])
            self._unread = b"".join(parts)
        found, self._unread = self._unread[:size], self._unread[size:]
        return found

    def _read_some(self, most: int) -> bytes:
        try:
            part = os.read(self._read_fd, min(most, _CHUNK))
        except OSError as error:
            raise PipeClosed from error
        if not part:
            raise PipeClosed
        return part
