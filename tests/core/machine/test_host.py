"""How many cores others keep busy: with made counters, and beside a real busy process."""

from __future__ import annotations

import subprocess
import sys

import pytest

from core.machine.host import OtherPrograms
from tests.support.waiting import until


def test_the_average_since_it_was_asked_last_where_clocks_go() -> None:
    now, seconds = 100.0, 5_000.0
    rivals = OtherPrograms(lambda: now, lambda: seconds)
    now, seconds = 102.0, 5_003.0
    assert rivals.busy_cores() == pytest.approx(1.5)
    now = 104.0
    assert rivals.busy_cores() == 0.0
    now, seconds = 100.0, 5_000.0
    rivals = OtherPrograms(lambda: now, lambda: seconds)
    seconds = 5_001.0
    assert rivals.busy_cores() == 0.0
    now, seconds = 101.0, 4_000.0
    assert rivals.busy_cores() == 0.0


def test_a_busy_process_is_seen_and_ones_own_work_is_not() -> None:
    child = subprocess.Popen([sys.executable, "-c", "print(flush=True)\nwhile True: pass"], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        rivals = OtherPrograms()
        until(lambda: rivals.busy_cores() > 0.2, pause=0.1)
    finally:
        child.kill()
        child.communicate()
    rivals = OtherPrograms(others_seconds=lambda: 0.0)
    assert rivals.busy_cores() == 0.0
