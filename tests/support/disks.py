"""Real disks that are full soon, or that nobody may write to or start programs from; and one that fails."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


@contextmanager
def small_disk(folder: Path, n_bytes: int) -> Iterator[Path]:
    """A disk of ``n_bytes`` of its own at ``folder``; skips the test where none can be mounted."""
    folder.mkdir(parents=True)
    if os.name != "posix" or os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    command = ["mount", "-t", "tmpfs", "-o", f"size={n_bytes}", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody mount a disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], capture_output=True, check=True)


@contextmanager
def failing_disk(path: Path) -> Iterator[None]:
    """Whoever asks for ``path`` hears that its disk does not answer."""
    stat = os.stat

    def fail(asked: Any, *arguments: Any, **options: Any) -> os.stat_result:
        if asked == path:
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        return stat(asked, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "stat", fail)
        yield


def remount(disk: Path, rule: str) -> None:
    """Give this disk a rule that holds for root too: "ro" or "noexec"."""
    subprocess.run(["mount", "-o", f"remount,{rule}", str(disk)], capture_output=True, check=True)


def fill_up(path: Path) -> None:
    """Write a file until its disk is full."""
    free = os.statvfs(path.parent)
    with open(path, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)) == 4096:
            assert file.tell() <= free.f_frsize * free.f_blocks
