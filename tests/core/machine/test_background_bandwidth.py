"""The bandwidth is measured when nothing disturbs it, and kept."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from core.engine.engines import Engines
from core.loading.worker import EventSender, _load
from core.machine.bandwidth import BackgroundBandwidth, Bandwidth, TooLittleMemory, remembered
from core.machine.host import Host, others_are_busy
from core.values.engine_options import EngineOptions
from core.values.messages import Event, LoadModel
from core.values.request import Request
from tests.support import measured
from tests.support.prompts import EMBER, EMBER_DRAFT, FOX

MACHINE = Host("A processor", 2, 2, 8 << 30)
MEASURED = Bandwidth(12e9, 2, 1 << 30, MACHINE.cpu, MACHINE.ram)


class Engine:
    is_idle = True
    activity_count = 0


@pytest.fixture(autouse=True)
def quiet_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.machine.bandwidth.others_are_busy", lambda others: False)


def test_a_quiet_engine_is_measured_once_and_the_result_is_kept(tmp_path: Path) -> None:
    found: list[float] = []
    BackgroundBandwidth(Engine(), tmp_path, found.append, quiet=0.0, take=lambda: MEASURED).run()
    assert found == [12e9]
    assert remembered(tmp_path, MACHINE) == MEASURED


def test_a_measurement_that_was_disturbed_is_made_again(tmp_path: Path) -> None:
    engine, found, n_taken = Engine(), [], 0

    def take() -> Bandwidth:
        nonlocal n_taken
        n_taken += 1
        engine.activity_count += n_taken < 3
        return MEASURED

    BackgroundBandwidth(engine, tmp_path, found.append, quiet=0.0, take=take).run()
    assert (n_taken, found) == (3, [12e9])


def test_what_a_load_waits_for_is_the_rest_of_both_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watched: list[Engines] = []

    class NotedFinder:
        def __init__(self, engines: Engines, *rest: object) -> None:
            watched.append(engines)

        def start(self) -> None:
            pass

    monkeypatch.setattr("core.machine.bandwidth.BackgroundBandwidth", NotedFinder)
    measured.give(tmp_path)
    sent: list[Event] = []
    outbox = SimpleNamespace(put=sent.extend)
    options = EngineOptions(str(EMBER), n_slots=1, n_ctx=128, n_threads=1, draft_path=str(EMBER_DRAFT))
    engines = _load(LoadModel(options, tmp_path), cast("EventSender", outbox))
    assert engines is not None
    (seen,) = watched
    request = Request("spark", FOX, 4, by_draft=True)
    counts = [seen.activity_count]
    prepared = engines.prepare(request)
    counts.append(seen.activity_count)
    engines.submit(prepared)
    assert not seen.is_idle
    while not engines.is_idle:
        engines.step()
        counts.append(seen.activity_count)
    engines.close()
    assert counts == sorted(set(counts)), "each deed is seen"


def test_nothing_is_measured_while_the_engine_works(tmp_path: Path) -> None:
    engine, found = Engine(), threading.Event()
    engine.is_idle = False
    BackgroundBandwidth(engine, tmp_path, lambda rate: found.set(), quiet=0.01, take=lambda: MEASURED).start()
    assert not found.wait(0.1)
    engine.is_idle = True
    assert found.wait(60)


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_what_others_disturbed_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    answers = [when == "before", when == "meanwhile", False, False]
    monkeypatch.setattr("core.machine.bandwidth.others_are_busy", lambda others: answers.pop(0))
    found: list[float] = []
    BackgroundBandwidth(Engine(), tmp_path, found.append, quiet=0.0, take=lambda: MEASURED).run()
    assert (found, len(answers)) == ([12e9], 1 if when == "before" else 0)


def test_this_process_must_be_at_rest_before_it_measures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.machine.bandwidth.others_are_busy", others_are_busy)
    n_taken, is_over = 0, threading.Event()

    def take() -> Bandwidth:
        nonlocal n_taken
        n_taken += 1
        return MEASURED

    def work() -> None:
        while not is_over.is_set():
            sum(range(1000))

    busy = threading.Thread(target=work)
    busy.start()
    try:
        finder = BackgroundBandwidth(Engine(), tmp_path, lambda rate: None, quiet=0.3, take=take)
        assert finder._try() is None
    finally:
        is_over.set()
        busy.join()
    assert n_taken == 0


def test_too_little_memory_only_leaves_the_peak_unknown(tmp_path: Path) -> None:
    def take() -> Bandwidth:
        raise TooLittleMemory("Only 1 MB is free.")

    found: list[float] = []
    BackgroundBandwidth(Engine(), tmp_path, found.append, quiet=0.0, take=take).run()
    assert found == []
