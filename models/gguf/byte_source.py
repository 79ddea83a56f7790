"""Sources of header bytes: a file here, or HTTP ranges elsewhere."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from models.formatting.sentence import Sentence
from models.formatting.system_error import system_reason
from models.gguf.errors import UnreadableFile


class ByteSource(Protocol):
    """Bytes of known total size that are read in ranges. Nothing stays open between calls."""

    @property
    def name(self) -> str:
        """Its name in sentences."""

    @property
    def size(self) -> int:
        """Total bytes."""

    def read_at(self, offset: int, n_bytes: int) -> bytes:
        """Up to ``n_bytes`` from ``offset``; shorter only at the end."""


@dataclass(frozen=True, slots=True)
class FileSource:
    """A file on this machine, with its size when it was opened."""

    path: Path
    size: int

    @classmethod
    def open(cls, path: Path) -> FileSource:
        """Check ``path``; raises UnreadableFile if it is not a readable plain file."""
        try:
            status = os.stat(path)
        except OSError as error:
            raise UnreadableFile(_sentence(path, error)) from error
        if not stat.S_ISREG(status.st_mode):
            kind = Sentence("a folder") if stat.S_ISDIR(status.st_mode) else Sentence("not a plain file")
            raise UnreadableFile(
                "{name} is {kind}. Choose a model file that ends in .gguf.", name=path.name or path, kind=kind
            )
        return cls(path, status.st_size)

    @property
    def name(self) -> str:
        """The file's name without its folder."""
        return self.path.name

    def read_at(self, offset: int, n_bytes: int) -> bytes:
        """Read a range; raises UnreadableFile."""
        try:
            with open(self.path, "rb", buffering=0) as file:
                file.seek(offset)
                return file.read(n_bytes)
        except OSError as error:
            raise UnreadableFile(_sentence(self.path, error)) from error


def _sentence(path: Path, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        # If the path is a link, its target was moved or deleted.
        place = path.resolve() if path.is_symlink() else path
        return Sentence("There is no file {path}. Put it back, or choose another model.", path=place)
    if isinstance(error, PermissionError):
        return Sentence(
            "You are not allowed to read {path}. Change its permissions, or copy it to a folder of your own.", path=path
        )
    return Sentence("{path} cannot be read: {reason}.", path=path, reason=system_reason(error))
