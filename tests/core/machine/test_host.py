"""What this process may use of the machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from core.machine import host
from core.machine.host import OtherPrograms, core_count, cpu_quota, others_are_busy
from core.machine.known_machine import known_machine
from models.estimate.fit import memory


def groups(folder: Path, membership: str, **files: str) -> tuple[Path, Path]:
    """Return a membership and a mount with ``files``, whose paths have __ for a dot and ___ for a slash."""
    (folder / "membership").write_text(membership)
    for name, content in files.items():
        path = folder / "mount" / name.replace("___", "/").replace("__", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{content}\n")
    return folder / "membership", folder / "mount"


def test_the_lowest_limit_of_all_groups_above_counts(tmp_path: Path) -> None:
    membership, mount = groups(
        tmp_path,
        "0::/box/service",
        box___cpu__max="150000 100000",
        box___service___cpu__max="max 100000",
    )
    assert cpu_quota(membership, mount) == 1.5
    (mount / "box" / "service" / "cpu.max").write_text("50000 100000\n")
    assert cpu_quota(membership, mount) == 0.5


def test_version_1_has_a_folder_of_its_own_and_says_minus_one_without_a_limit(tmp_path: Path) -> None:
    membership, mount = groups(
        tmp_path,
        "4:memory:/job\n3:cpu,cpuacct:/job\n0::/",
        cpu___job___cpu__cfs_quota_us="400000",
        cpu___job___cpu__cfs_period_us="100000",
        cpu___cpu__cfs_quota_us="-1",
        cpu___cpu__cfs_period_us="100000",
    )
    assert cpu_quota(membership, mount) == 4.0


@pytest.mark.parametrize("content", ["max 100000", "", "0 100000", "100000 0", "nonsense", "1 2 3"])
def test_what_is_no_limit_limits_nothing(tmp_path: Path, content: str) -> None:
    assert cpu_quota(*groups(tmp_path, "0::/", cpu__max=content)) is None
    assert cpu_quota(tmp_path / "nothing", tmp_path) is None


def test_a_container_gets_as_many_threads_as_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(64), raising=False)
    monkeypatch.setattr(psutil, "cpu_count", lambda logical=True: 64 if logical else 32)
    for quota, n_cores in ((None, 32), (48.0, 32), (1.5, 2), (0.1, 1), (2.0, 2)):
        monkeypatch.setattr(host, "cpu_quota", lambda quota=quota: quota)
        assert core_count() == n_cores
        assert core_count(within_quota=False) == 32
    # Others compute on the cores that it may not use, which disturbs nothing.
    assert not others_are_busy(OtherPrograms(iter([0.0, 1.0]).__next__, iter([0.0, 4.0]).__next__))


def test_a_look_at_the_cores_reads_nothing_of_models() -> None:
    """Every process does that first."""
    code = "import sys, core.machine.host; print(*sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "core.machine.host" in said
    assert "models.facts" not in said


def test_a_container_has_no_more_memory_than_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    membership, mount = groups(tmp_path, "0::/", memory__max=f"{1 << 30}")
    monkeypatch.setattr(memory, "CGROUP_MEMBERSHIP", membership)
    monkeypatch.setattr(memory, "CGROUP_MOUNT", mount)
    assert known_machine((), 1 << 20).devices[0].total == 1 << 30
