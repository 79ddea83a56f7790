"""The rights of an ordinary user: root, as whom tests may run, may do everything."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NOBODY = 65534


@contextmanager
def ordinary_user() -> Iterator[Path]:
    """Have no more rights than an ordinary user; gives a folder of that user's own."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    was_root, groups = os.geteuid() == 0, os.getgroups()
    if was_root:
        os.chown(folder, _NOBODY, _NOBODY)
        os.setgroups([])
        os.setegid(_NOBODY)
        os.seteuid(_NOBODY)
    try:
        yield folder
    finally:
        if was_root:
            os.seteuid(0)
            os.setegid(0)
            os.setgroups(groups)
        shutil.rmtree(folder)
