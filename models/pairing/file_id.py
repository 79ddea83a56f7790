"""Which file a file is: known again after it was moved or renamed, and another one after it was changed."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from models.gguf.errors import UnreadableFile

_HEADER_BYTES = 64 << 10


def file_id(path: Path) -> str:
    """Size, time of change and a hash of the beginning, as one text; raises UnreadableFile."""
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            start = file.read(_HEADER_BYTES)
    except OSError as error:
        raise UnreadableFile(f"{path} cannot be read: {error.strerror or error}.") from error
    return f"{status.st_size}-{status.st_mtime_ns}-{hashlib.sha256(start).hexdigest()[:16]}"
