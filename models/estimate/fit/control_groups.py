"""The control groups of this process, by which Linux limits what it may take; every process imports this."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

# Where Linux tells the control groups of a process, and their limits.
CGROUP_MEMBERSHIP, CGROUP_MOUNT = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def cgroup_folders(membership: Path, mount: Path, controller: str) -> Iterator[Path]:
    """Yield the groups of this process and their parents, which limit it too, where ``controller`` may have files.

    ``membership`` is the process's /proc/<pid>/cgroup, ``mount`` the place where control groups are mounted. The
    folders of one version need not exist.
    """
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers and controller not in controllers.split(","):
            continue
        root = mount / controller if controllers else mount
        folder = root / path.lstrip("/")
        yield from (group for group in (folder, *folder.parents) if group == root or root in group.parents)
