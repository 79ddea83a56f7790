"""Models in several files: ``name-00001-of-00003.gguf`` and the files after it are one model."""

from __future__ import annotations

import re
from pathlib import Path, PurePath
from typing import TypeVar

# At most 999 parts, so that a file name alone cannot cost much.
_PART = re.compile(r"(?P<stem>.+)-(?P<number>00\d{3})-of-(?P<count>00\d{3})\.gguf", re.IGNORECASE)


_AnyPath = TypeVar("_AnyPath", bound=PurePath)


def model_name(path: PurePath) -> str:
    """The model's name: the file's stem without a part number."""
    match = _PART.fullmatch(path.name)
    return match["stem"] if match else path.stem


def parts(path: _AnyPath) -> tuple[_AnyPath, ...]:
    """All files of the model that begins at ``path``, whether they exist or not."""
    match = _PART.fullmatch(path.name)
    if match is None:
        return (path,)
    suffix = path.suffix
    count = int(match["count"])
    return tuple(path.with_name(f"{match['stem']}-{i:05}-of-{count:05}{suffix}") for i in range(1, count + 1))


def is_listed(path: Path) -> bool:
    """Whether ``path`` stands for its model in a list: the only part, or the first one that exists."""
    return next((part for part in parts(path) if part.exists()), path) == path
