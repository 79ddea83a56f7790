"""Measurements that outlive the process, and how many cores others keep busy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from core.machine.host import OtherPrograms, core_count, others_are_busy
from core.machine.known_machine import Measurements, measurement_key
from tests.support.waiting import until


@pytest.fixture(autouse=True)
def quiet_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.machine.known_machine.others_are_busy", lambda others: False)


class Clock:
    """A clock, and a counter of what all cores together did for others."""

    def __init__(self) -> None:
        self.now = self.seconds = 0.0

    def others(self) -> OtherPrograms:
        return OtherPrograms(lambda: self.now, lambda: self.seconds)


def test_entries_are_kept_and_a_broken_file_is_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "measured.json"
    store = Measurements(path)
    assert store.recall("a") is None
    store.keep("a", {"x": 1})
    store.keep("b", {"y": 2})
    assert (store.recall("a"), store.recall("b")) == ({"x": 1}, {"y": 2})
    for text in ("{", "[]", '{"a": 3}', "[" * 100_000, "\x00", " " * (5 << 20)):
        path.write_text(text)
        assert Measurements(path).recall("a") is None
    path.write_bytes(b'{"a": {"x": "\xff"}}')
    assert Measurements(path).recall("a") is None
    store.keep("a", {"x": 3})
    assert Measurements(path).recall("a") == {"x": 3}


def test_nothing_is_kept_without_a_file_or_while_others_use_the_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Measurements(None).keep("a", {"x": 1})
    monkeypatch.setattr("core.machine.known_machine.others_are_busy", lambda others: True)
    assert not Measurements(tmp_path / "m.json").keep("a", {"x": 1})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("share", "is_kept"), [(0.0, True), (0.2, True), (0.3, False), (1.0, False)])
def test_who_else_worked_counts_from_when_nothing_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: float, is_kept: bool
) -> None:
    monkeypatch.setattr("core.machine.known_machine.others_are_busy", others_are_busy)
    clock = Clock()
    store = Measurements(tmp_path / "m.json", others=clock.others())
    clock.now, clock.seconds = 30.0, 30.0 * core_count()  # before: a start, or another program
    assert store.recall("a") is None
    clock.now += 0.5
    clock.seconds += 0.5 * share * core_count()
    store.keep("a", {"x": 1})
    assert Measurements(tmp_path / "m.json").recall("a") == ({"x": 1} if is_kept else None)
    assert store.recall("a") == {"x": 1}


def test_a_folder_that_cannot_be_written_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "m.json"
    for key in ("a", "b"):
        assert Measurements(path).keep(key, {"x": 1})
    assert Measurements(path).recall("a") is None
    (told,) = caplog.messages
    assert told.startswith(f"Measurements are not kept: {path} cannot be written: ")
    assert "Errno" not in told


def test_keys_differ_with_what_they_depend_on(monkeypatch: pytest.MonkeyPatch) -> None:
    here = measurement_key("a", 1)
    assert here == measurement_key("a", 1)
    assert here != measurement_key("a", 2)
    monkeypatch.setattr("core.machine.known_machine.cpu_name", lambda: "another processor")
    assert measurement_key("a", 1) != here


def test_the_average_since_it_was_asked_last_where_clocks_go() -> None:
    now, seconds = 100.0, 5_000.0
    others = OtherPrograms(lambda: now, lambda: seconds)
    now, seconds = 102.0, 5_003.0
    assert others.busy_cores() == pytest.approx(1.5)
    now = 104.0
    assert others.busy_cores() == 0.0
    now, seconds = 100.0, 5_000.0
    others = OtherPrograms(lambda: now, lambda: seconds)
    seconds = 5_001.0
    assert others.busy_cores() == 0.0
    now, seconds = 101.0, 4_000.0
    assert others.busy_cores() == 0.0


def test_a_busy_process_is_seen_and_ones_own_work_is_not() -> None:
    child = subprocess.Popen([sys.executable, "-c", "print(flush=True)\nwhile True: pass"], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        others = OtherPrograms()
        until(lambda: others.busy_cores() > 0.2, pause=0.1)
    finally:
        child.kill()
        child.communicate()
    others = OtherPrograms(others_seconds=lambda: 0.0)
    assert others.busy_cores() == 0.0
