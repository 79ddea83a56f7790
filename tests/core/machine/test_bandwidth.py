from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from core.machine import bandwidth
from core.machine.bandwidth import (
    Bandwidth,
    MeasuringStopped,
    TooLittleMemory,
    measure,
    read_pass,
    remember,
    remembered,
    thread_counts,
)
from core.machine.host import Host, name_in

MACHINE = Host(cpu="A chip", n_cores=2, n_threads=3, ram=8 << 30)


@pytest.mark.parametrize("n_words", [1, 7, 1000])
@pytest.mark.parametrize("n_threads", [1, 2, 3, 8])
def test_every_byte_is_read_and_counted_once(n_words: int, n_threads: int) -> None:
    with ThreadPoolExecutor(n_threads) as pool:
        assert read_pass(np.ones(n_words, dtype=np.uint64), n_threads, pool) == 8 * n_words


def test_the_rate_is_bytes_over_the_best_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bandwidth, "LARGEST_SET", 1 << 20)
    monkeypatch.setattr(bandwidth, "SMALLEST_SET", 1 << 10)
    now = iter(range(10_000))
    measured = measure(MACHINE, 1 << 30, seconds=0, clock=lambda: float(next(now)))
    assert measured.n_bytes == 1 << 20
    assert measured.bytes_per_second == 1 << 20  # each pass takes one tick of this clock
    assert (measured.cpu, measured.ram) == (MACHINE.cpu, MACHINE.ram)


@pytest.mark.parametrize("looks", [[True], [False, True], [False, False, True]])
def test_a_measurement_ends_while_memory_is_filled_or_read(monkeypatch: pytest.MonkeyPatch, looks: list[bool]) -> None:
    monkeypatch.setattr(bandwidth, "LARGEST_SET", 1 << 20)
    monkeypatch.setattr(bandwidth, "SMALLEST_SET", 1 << 10)
    with pytest.raises(MeasuringStopped):
        measure(MACHINE, 1 << 30, seconds=60, should_stop=iter(looks).__next__)


def test_a_share_of_the_free_memory_is_used_by_powers_of_two_threads() -> None:
    assert bandwidth.working_set(64 << 30) == 1 << 30
    assert bandwidth.working_set(4 << 30) == 512 << 20
    with pytest.raises(TooLittleMemory, match="100 MB"):
        bandwidth.working_set(100_000_000)
    assert [thread_counts(n) for n in (1, 2, 3, 8)] == [(1,), (1, 2), (1, 2, 3), (1, 2, 4, 8)]


def test_a_measurement_is_remembered_for_this_machine_only(tmp_path: Path) -> None:
    measured = Bandwidth(5e9, 2, 1 << 30, MACHINE.cpu, MACHINE.ram)
    assert remembered(tmp_path / "cache", MACHINE) is None
    remember(tmp_path / "cache", measured)
    assert remembered(tmp_path / "cache", MACHINE) == measured
    assert remembered(tmp_path / "cache", Host("Another chip", 2, 2, MACHINE.ram)) is None
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [bandwidth.FILE_NAME]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"bytes_per_second": "fast"}', "\x00"])
def test_a_broken_note_is_ignored(tmp_path: Path, text: str) -> None:
    (tmp_path / bandwidth.FILE_NAME).write_text(text)
    assert remembered(tmp_path, MACHINE) is None


def test_the_processor_is_named() -> None:
    assert name_in("processor\t: 0\nmodel name\t: A chip\nmodel name\t: A chip\n") == "A chip"
    assert name_in("processor : 0\nModel : Raspberry Pi 5\n") == "Raspberry Pi 5"
    assert name_in("") is None
