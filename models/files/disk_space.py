"""Whether a download fits on the disk."""

from __future__ import annotations

import shutil
from pathlib import Path

from models.files.errors import NoSpace


def check_space(folder: Path, n_missing: int, reserve: int) -> None:
    """Raise NoSpace if ``n_missing`` bytes more would leave less than ``reserve`` on the disk of ``folder``."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    if n_missing and n_missing + reserve > free:
        raise NoSpace(folder, n_missing + reserve, free)
