"""The bandwidth of memory: how it is measured, when nothing disturbs that, and that it is kept."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from core.loading.worker import EventSender, _load
from core.machine import bandwidth
from core.machine.bandwidth import (
    Bandwidth,
    MeasuringStopped,
    TooLittleMemory,
    measure,
    measure_when_idle,
    read_pass,
    remember,
    remembered,
    thread_counts,
)
from core.machine.host import Host, name_in, others_are_busy, this_machine
from core.values.engine_options import EngineOptions
from core.values.messages import Event, LoadModel
from core.values.request import Request
from tests.support import measured
from tests.support.prompts import EMBER, EMBER_DRAFT, FOX

MACHINE = Host("A processor", 2, 2, 8 << 30)
MEASURED = Bandwidth(12e9, 2, 1 << 30, MACHINE.cpu, MACHINE.ram, is_estimate=False)
SLOW = replace(MEASURED, bytes_per_second=6e9, is_estimate=True)


class Engine:
    is_idle = True
    n_steps = 0

    def activity(self) -> int | None:
        return self.n_steps if self.is_idle else None


@pytest.fixture(autouse=True)
def quiet_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.machine.bandwidth.others_are_busy", lambda others: False)


def test_a_quiet_engine_is_measured_once_and_the_result_is_kept(tmp_path: Path) -> None:
    found: list[float] = []
    measure_when_idle(Engine().activity, tmp_path, found.append, quiet=0.0, take=lambda: MEASURED)
    assert found == [12e9]
    assert remembered(tmp_path, MACHINE) == MEASURED


def test_a_measurement_that_was_disturbed_is_made_again(tmp_path: Path) -> None:
    engine, found, n_taken = Engine(), [], 0

    def take() -> Bandwidth:
        nonlocal n_taken
        n_taken += 1
        engine.n_steps += n_taken < 3
        return MEASURED

    measure_when_idle(engine.activity, tmp_path, found.append, quiet=0.0, take=take)
    assert (n_taken, found) == (3, [12e9])


def test_what_a_load_waits_for_is_the_rest_of_both_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watched: queue.SimpleQueue[Callable[[], int | None]] = queue.SimpleQueue()
    monkeypatch.setattr("core.machine.bandwidth.measure_when_idle", lambda activity, *rest: watched.put(activity))
    measured.give(tmp_path)
    here = this_machine()
    remember(tmp_path, replace(SLOW, cpu=here.cpu, ram=here.ram))  # which is to be measured again
    sent: list[Event] = []
    outbox = SimpleNamespace(put=sent.extend)
    options = EngineOptions(str(EMBER), n_slots=1, n_ctx=128, n_threads=1, draft_path=str(EMBER_DRAFT))
    engines = _load(LoadModel(options, tmp_path), cast("EventSender", outbox))
    assert engines is not None
    seen = watched.get(timeout=60)
    request = Request("spark", FOX, 4, by_draft=True)
    counts = [seen() or 0]
    prepared = engines.prepare(request)
    counts.append(seen() or 0)
    engines.submit(prepared)
    while not engines.is_idle:
        assert seen() is None
        engines.step()
    counts.append(seen() or 0)
    engines.close()
    assert counts == sorted(set(counts)), "each deed is seen"


def test_nothing_is_measured_while_the_engine_works(tmp_path: Path) -> None:
    engine, found = Engine(), threading.Event()
    engine.is_idle = False
    arguments = (engine.activity, tmp_path, lambda rate: found.set())
    options = {"quiet": 0.01, "take": lambda: MEASURED}
    threading.Thread(target=measure_when_idle, args=arguments, kwargs=options, daemon=True).start()
    assert not found.wait(0.1)
    engine.is_idle = True
    assert found.wait(60)


def test_what_others_disturb_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    is_busy, taken = [True, False, False], [SLOW, MEASURED]
    monkeypatch.setattr("core.machine.bandwidth.others_are_busy", lambda others: is_busy.pop(0))
    found: list[float] = []
    measure_when_idle(Engine().activity, tmp_path, found.append, quiet=0.0, take=lambda: taken.pop(0))
    assert (found, is_busy, taken) == ([12e9], [], [])


def test_what_is_measured_beside_busy_programs_is_an_estimate_that_better_ones_replace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bandwidth, "LARGEST_SET", 1 << 20)
    monkeypatch.setattr(bandwidth, "SMALLEST_SET", 1 << 10)
    assert not measure(MACHINE, 1 << 30, seconds=0).is_estimate
    monkeypatch.setattr("core.machine.bandwidth.others_are_busy", lambda others: True)
    assert measure(MACHINE, 1 << 30, seconds=0).is_estimate
    lower, higher = replace(SLOW, bytes_per_second=5e9), replace(SLOW, bytes_per_second=99e9)
    for found, kept in ((SLOW, SLOW), (lower, SLOW), (MEASURED, MEASURED), (higher, MEASURED)):
        assert remember(tmp_path, found) == remembered(tmp_path, MACHINE) == kept


def test_this_process_must_be_at_rest_before_it_measures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.machine.bandwidth.others_are_busy", others_are_busy)
    n_taken, is_over, counts = 0, threading.Event(), [0, 0]

    def take() -> Bandwidth:
        nonlocal n_taken
        n_taken += 1
        return MEASURED

    def activity() -> int:
        if not counts:
            raise OSError("one look is enough")
        return counts.pop()

    def work() -> None:
        while not is_over.is_set():
            sum(range(1000))

    busy = threading.Thread(target=work)
    busy.start()
    try:
        measure_when_idle(activity, tmp_path, lambda rate: None, quiet=0.3, take=take)
    finally:
        is_over.set()
        busy.join()
    assert n_taken == 0


def test_too_little_memory_only_leaves_the_peak_unknown(tmp_path: Path) -> None:
    def take() -> Bandwidth:
        raise TooLittleMemory("Only 1 MB is free.")

    found: list[float] = []
    measure_when_idle(Engine().activity, tmp_path, found.append, quiet=0.0, take=take)
    assert found == []


CHIP = Host(cpu="A chip", n_cores=2, n_threads=3, ram=8 << 30)


@pytest.mark.parametrize("n_words", [1, 7, 1000])
@pytest.mark.parametrize("n_threads", [1, 2, 3, 8])
def test_every_byte_is_read_and_counted_once(n_words: int, n_threads: int) -> None:
    with ThreadPoolExecutor(n_threads) as pool:
        assert read_pass(np.ones(n_words, dtype=np.uint64), n_threads, pool) == 8 * n_words


def test_the_rate_is_bytes_over_the_best_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bandwidth, "LARGEST_SET", 1 << 20)
    monkeypatch.setattr(bandwidth, "SMALLEST_SET", 1 << 10)
    now = iter(range(10_000))
    measured = measure(CHIP, 1 << 30, seconds=0, clock=lambda: float(next(now)))
    assert measured.n_bytes == 1 << 20
    assert measured.bytes_per_second == 1 << 20  # each pass takes one tick of this clock
    assert (measured.cpu, measured.ram) == (CHIP.cpu, CHIP.ram)


@pytest.mark.parametrize("looks", [[True], [False, True], [False, False, True]])
def test_a_measurement_ends_while_memory_is_filled_or_read(monkeypatch: pytest.MonkeyPatch, looks: list[bool]) -> None:
    monkeypatch.setattr(bandwidth, "LARGEST_SET", 1 << 20)
    monkeypatch.setattr(bandwidth, "SMALLEST_SET", 1 << 10)
    with pytest.raises(MeasuringStopped):
        measure(CHIP, 1 << 30, seconds=60, should_stop=iter(looks).__next__)


def test_a_share_of_the_free_memory_is_used_by_powers_of_two_threads() -> None:
    assert bandwidth.working_set(64 << 30) == 1 << 30
    assert bandwidth.working_set(4 << 30) == 512 << 20
    with pytest.raises(TooLittleMemory, match="100 MB"):
        bandwidth.working_set(100_000_000)
    assert [thread_counts(n) for n in (1, 2, 3, 8)] == [(1,), (1, 2), (1, 2, 3), (1, 2, 4, 8)]


def test_a_measurement_is_remembered_for_this_machine_only(tmp_path: Path) -> None:
    measured = Bandwidth(5e9, 2, 1 << 30, CHIP.cpu, CHIP.ram, is_estimate=False)
    assert remembered(tmp_path / "cache", CHIP) is None
    remember(tmp_path / "cache", measured)
    assert remembered(tmp_path / "cache", CHIP) == measured
    assert remembered(tmp_path / "cache", Host("Another chip", 2, 2, CHIP.ram)) is None
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [bandwidth.FILE_NAME]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"bytes_per_second": "fast"}', "\x00"])
def test_a_broken_note_is_ignored(tmp_path: Path, text: str) -> None:
    (tmp_path / bandwidth.FILE_NAME).write_text(text)
    assert remembered(tmp_path, CHIP) is None


def test_a_note_that_does_not_say_whether_others_were_busy_is_ignored(tmp_path: Path) -> None:
    note = asdict(Bandwidth(5e9, 2, 1 << 30, CHIP.cpu, CHIP.ram, is_estimate=False))
    del note["is_estimate"]
    (tmp_path / bandwidth.FILE_NAME).write_text(json.dumps(note))
    assert remembered(tmp_path, CHIP) is None


def test_the_processor_is_named() -> None:
    assert name_in("processor\t: 0\nmodel name\t: A chip\nmodel name\t: A chip\n") == "A chip"
    assert name_in("processor : 0\nModel : Raspberry Pi 5\n") == "Raspberry Pi 5"
    assert name_in("") is None
