"""A small file that is written as a whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, text: str, *, is_durable: bool = False) -> None:
    """Put ``text`` (as UTF-8) in place of the file's content, in folders that are made; raises OSError.

    Who reads meanwhile sees the old content or the new one, also where this process or another one dies or writes too.
    ``is_durable`` waits until it would survive a loss of power.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        with open(new, "w", encoding="utf-8") as file:
            file.write(text)
            if is_durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)
