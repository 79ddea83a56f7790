"""The bandwidth is measured when nothing disturbs it, and kept."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from core.bandwidth import Bandwidth, TooLittleMemory, remembered
from core.machine import Machine
from core.peak_finder import PeakFinder

MACHINE = Machine("A processor", 2, 2, 8 << 30)
MEASURED = Bandwidth(12e9, 2, 1 << 30, MACHINE.cpu, MACHINE.ram)


class Engine:
    is_idle = True
    n_steps = 0


@pytest.fixture(autouse=True)
def quiet_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.peak_finder.are_disturbing", lambda rivals: False)


def test_a_quiet_engine_is_measured_once_and_the_result_is_kept(tmp_path: Path) -> None:
    found: list[float] = []
    PeakFinder(Engine(), tmp_path, found.append, quiet=0.0, take=lambda: MEASURED)._work()
    assert found == [12e9]
    assert remembered(tmp_path, MACHINE) == MEASURED


def test_a_measurement_that_was_disturbed_is_made_again(tmp_path: Path) -> None:
    engine, found, n_taken = Engine(), [], 0

    def take() -> Bandwidth:
        nonlocal n_taken
        n_taken += 1
        engine.n_steps += n_taken < 3
        return MEASURED

    PeakFinder(engine, tmp_path, found.append, quiet=0.0, take=take)._work()
    assert (n_taken, found) == (3, [12e9])


def test_nothing_is_measured_while_the_engine_works(tmp_path: Path) -> None:
    engine, found = Engine(), threading.Event()
    engine.is_idle = False
    PeakFinder(engine, tmp_path, lambda rate: found.set(), quiet=0.01, take=lambda: MEASURED).start()
    assert not found.wait(0.1)
    engine.is_idle = True
    assert found.wait(60)


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_what_others_disturbed_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    answers = [when == "before", when == "meanwhile", False, False]
    monkeypatch.setattr("core.peak_finder.are_disturbing", lambda rivals: answers.pop(0))
    found: list[float] = []
    PeakFinder(Engine(), tmp_path, found.append, quiet=0.0, take=lambda: MEASURED)._work()
    assert (found, len(answers)) == ([12e9], 1 if when == "before" else 0)


def test_too_little_memory_only_leaves_the_peak_unknown(tmp_path: Path) -> None:
    def take() -> Bandwidth:
        raise TooLittleMemory("Only 1 MB is free.")

    found: list[float] = []
    PeakFinder(Engine(), tmp_path, found.append, quiet=0.0, take=take)._work()
    assert found == []
