"""Texts on disk: they survive a restart, and nothing that a disk does harms a request."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.engine.engine import Engine
from core.kv_cache import disk_cache
from core.kv_cache.disk_cache import FOLDER, Blob, DiskTier, SegmentFolder, SegmentHeader, clear, model_key, size
from core.kv_cache.segment_store import segment_id
from tests.support.engines import complete, open_engine, settle
from tests.support.near_ties import assert_same_up_to_a_near_tie, greedy
from tests.support.prompts import EMBER, EMBER_DRAFT, words
from tests.support.waiting import until

KEY = bytes(range(16))
GB = 1 << 30


# Seconds that a request waits for the disk.
LONG_WAIT = 60.0


def ask(engine: Engine, prompt: tuple[int, ...], n: int = 2) -> int:
    return complete(engine, prompt, max_tokens=n)[1].receipt.n_cached


@contextmanager
def open_on(folder: Path, *, is_awaited: bool = True, **options: Any) -> Iterator[Engine]:
    """Open an engine whose disk is waited for; ``is_awaited`` False: as long as computing would take."""
    options = {"n_slots": 2, "n_ctx": 512, "speculation": "off", "cache_disk": GB, **options}
    with open_engine(EMBER_DRAFT, cache_folder=folder, **options) as engine:
        if is_awaited:
            engine.slots.prefill_seconds = lambda n_tokens: LONG_WAIT
        yield engine


def files(folder: Path) -> list[Path]:
    return sorted((folder / FOLDER).rglob("*.kv"))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two texts that share their beginning."""
    folder = tmp_path_factory.mktemp("written")
    with open_on(folder) as engine:
        for seed in (1, 2):
            ask(engine, words(300) + words(60, seed))
            settle(engine)
    return folder


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    """A copy to do harm to."""
    shutil.copytree(written, tmp_path / "cache")
    return tmp_path / "cache"


@pytest.mark.parametrize("cache_ram", [None, 0])
def test_a_text_is_found_after_a_restart_and_says_the_same(tmp_path: Path, cache_ram: int | None) -> None:
    prompt = words(350)
    with open_on(tmp_path, cache_ram=cache_ram) as engine:
        tokens, _ = greedy(engine, prompt, max_tokens=20)
        settle(engine)
    with open_on(tmp_path, cache_ram=cache_ram) as engine:
        settle(engine)
        again, ended = greedy(engine, prompt, max_tokens=20)
        assert ended.receipt.n_cached == 349
    assert_same_up_to_a_near_tie(again, tokens)


def test_only_their_owner_may_read_the_files(written: Path) -> None:
    found = files(written)
    assert len(found) >= 3
    assert {path.stat().st_mode & 0o777 for path in found} == {0o600}
    assert {path.parent.stat().st_mode & 0o777 for path in found} == {0o700}
    assert (written / FOLDER).stat().st_mode & 0o777 == 0o700


def test_files_of_other_options_are_not_touched_and_not_used(folder: Path) -> None:
    before = files(folder)
    with open_on(folder, kv_type="q8_0", flash_attention="on") as engine:
        settle(engine)
        assert ask(engine, words(300)) == 0
        settle(engine)
    assert set(before) < set(files(folder))


def damage_blob(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-100] ^= 1
    path.write_bytes(data)


def damage_head(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[30] ^= 1
    path.write_bytes(data)


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def replace_by_nonsense(path: Path) -> None:
    path.write_bytes(b"GGUF" + bytes(range(256)) * 100)


def replace_by_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("harm", "which"),
    [
        (damage_blob, "first"),
        (damage_blob, "all"),
        (damage_head, "first"),
        (truncate, "first"),
        (empty, "all"),
        (replace_by_nonsense, "first"),
        (replace_by_a_folder, "first"),
        (Path.unlink, "first"),
        (Path.unlink, "all"),
    ],
)
def test_damaged_files_are_ignored_and_removed_with_what_needs_them(folder: Path, harm, which: str) -> None:
    # The piece that begins at 0 is the largest, and every other one needs it.
    found = sorted(files(folder), key=lambda path: -path.stat().st_size)
    for path in found if which == "all" else found[:1]:
        harm(path)
    with open_on(folder) as engine:
        settle(engine)
        begun_at = time.monotonic()
        text, ended, _ = complete(engine, words(300) + words(60, 1), max_tokens=8)
        assert time.monotonic() - begun_at < LONG_WAIT / 2, "nobody waits for what is lost"
        assert ended.failure is None
        assert ended.receipt.n_cached == 0
        settle(engine)
    with open_on(folder) as engine:
        settle(engine)
        again, ended, _ = complete(engine, words(300) + words(60, 1), max_tokens=8)
        assert (again, ended.receipt.n_cached) == (text, 359), "what was computed anew is kept again"


def test_what_is_no_piece_is_removed_from_the_folder(folder: Path) -> None:
    home = files(folder)[0].parent
    (home / "readme.txt").write_text("hello")
    (home / "0011.99999999.partial").write_bytes(b"half")
    shutil.copy(files(folder)[0], home / f"{bytes(16).hex()}.kv")
    with open_on(folder) as engine:
        settle(engine)
        assert ask(engine, words(300) + words(60, 1)) == 359
    assert {path.suffix for path in home.iterdir()} == {".kv"}
    assert not (home / f"{bytes(16).hex()}.kv").exists()


def test_files_that_vanish_while_they_are_needed_cost_only_time(folder: Path) -> None:
    with open_on(folder) as engine:
        settle(engine)
        for path in files(folder):
            path.unlink()
        assert ask(engine, words(300) + words(60, 1)) == 0


def test_a_file_where_the_folder_should_be_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / FOLDER).write_text("not a folder")
    with caplog.at_level(logging.WARNING), open_on(tmp_path) as engine:
        for seed in range(3):
            ask(engine, words(100, seed))
            settle(engine)
        assert ask(engine, words(100, 2)) == 99
    assert sum("not kept on disk" in record.message for record in caplog.records) == 1


def test_a_full_disk_is_told_once_and_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_tries = 0

    def full(*arguments: object) -> None:
        nonlocal n_tries
        n_tries += 1
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk_cache.os, "replace", full)
    with caplog.at_level(logging.WARNING), open_on(tmp_path) as engine:
        for seed in range(3):
            ask(engine, words(100, seed))
            settle(engine)
        assert ask(engine, words(100, 2)) == 99
        assert engine.slots.store.n_disk_bytes == 0
    assert sum("not kept on disk: No space left" in record.message for record in caplog.records) == 1
    assert n_tries == 1
    assert [path for path in (tmp_path / FOLDER).rglob("*") if path.is_file()] == []


def test_a_slow_disk_delays_no_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, is_at_it = threading.Event(), threading.Event()
    write = SegmentFolder.write

    def slow(self: SegmentFolder, piece: SegmentHeader, blob: Blob) -> None:
        is_at_it.set()
        assert gate.wait(60)
        write(self, piece, blob)

    monkeypatch.setattr(SegmentFolder, "write", slow)
    with open_on(tmp_path) as engine:
        try:
            ask(engine, words(100))
            while not is_at_it.is_set():
                engine.write_back()
            for seed in range(5):
                assert complete(engine, words(100, seed), max_tokens=4)[1].failure is None
                engine.write_back()
        finally:
            gate.set()
        settle(engine)
    assert files(tmp_path)


def test_a_disk_that_reads_for_longer_than_computing_takes_is_not_waited_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    read = SegmentFolder.read

    def slow(self: SegmentFolder, name: bytes) -> Blob | None:
        assert gate.wait(60)
        return read(self, name)

    monkeypatch.setattr(SegmentFolder, "read", slow)
    with open_on(folder, is_awaited=False) as engine:
        try:
            settle(engine)
            assert ask(engine, words(300) + words(60, 1)) == 0
        finally:
            gate.set()


def test_the_disk_keeps_to_its_limit_over_restarts_and_models(folder: Path) -> None:
    most = 173_000
    with open_on(folder, cache_disk=most) as engine:
        settle(engine)
        for seed in range(3, 8):
            ask(engine, words(200, seed))
            settle(engine)
    heads = 2_000 * len(files(folder))
    assert 0 < size(folder) <= most + heads
    with open_on(folder, cache_disk=most, kv_type="q8_0", flash_attention="on") as engine:
        settle(engine)
        for seed in range(3, 8):
            ask(engine, words(200, seed))
            settle(engine)
    assert 0 < size(folder) <= most + 2_000 * len(files(folder))


def test_files_that_another_engine_deletes_meanwhile_keep_no_folder_from_being_opened(tmp_path: Path) -> None:
    theirs = SegmentFolder(tmp_path, bytes(16), GB)
    theirs.make()
    is_over = threading.Event()

    def come_and_go() -> None:
        while not is_over.is_set():
            for number in range(50):
                path = tmp_path / bytes(16).hex() / f"{number}.kv"
                path.touch()
                path.unlink()

    other = threading.Thread(target=come_and_go)
    other.start()
    try:
        for _ in range(200):
            SegmentFolder(tmp_path, KEY, GB).open()
    finally:
        is_over.set()
        other.join()


def test_forgetting_texts_deletes_their_files(folder: Path) -> None:
    with open_on(folder) as engine:
        settle(engine)
        engine.forget_texts()
        settle(engine)
        assert files(folder) == []
        assert ask(engine, words(300)) == 0


def test_the_files_of_all_models_can_be_deleted(folder: Path) -> None:
    n_bytes = size(folder)
    assert n_bytes > 200_000
    assert clear(folder) == n_bytes
    assert files(folder) == []
    assert clear(folder) == 0


def test_the_key_follows_the_file_and_the_options(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    shutil.copy(EMBER, path)
    key = model_key((path,), "f16")
    assert model_key((path,), "f16") == key
    assert model_key((path,), "q8_0") != key
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"x")
    assert model_key((path,), "f16") != key


WRITER = """
import sys
from pathlib import Path
import numpy as np
from core.kv_cache.disk_cache import SegmentFolder
from core.kv_cache.segment_store import segment_id
from core.kv_cache.disk_cache import SegmentHeader
folder = SegmentFolder(Path(sys.argv[1]), bytes(range(16)), 1 << 30)
folder.open()
print("ready", flush=True)
for turn in range(1_000_000):
    tokens = np.arange(turn, turn + 40, dtype=np.int32)
    blob = np.full(4_000_000, turn % 251, np.uint8)
    folder.write(SegmentHeader(segment_id(None, 0, tokens, is_whole=False), None, 0, tokens, blob.nbytes, False), blob)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_writer_that_is_killed_at_any_moment_leaves_whole_files_only(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[3]
    for delay in (0.01, 0.03, 0.05):
        command = [sys.executable, "-c", WRITER, str(tmp_path)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=root, env={**os.environ, "PYTHONPATH": str(root)})
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        until(lambda: any(tmp_path.rglob("*.kv")))
        time.sleep(delay)
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        folder = SegmentFolder(tmp_path, KEY, GB)
        folder.open()
        pieces = list(folder.scan())
        assert not list(tmp_path.rglob("*.partial"))
        for piece in pieces:
            blob = folder.read(piece.id)
            assert blob is not None
            assert set(blob.tolist()[::1000]) == {int(piece.tokens[0]) % 251}
    assert pieces, "some were written"


@pytest.fixture
def tier(tmp_path: Path) -> Iterator[DiskTier]:
    made = DiskTier(SegmentFolder(tmp_path, KEY, GB))
    try:
        yield made
    finally:
        made.close()


def test_more_than_the_queue_holds_is_refused_at_once(tier: DiskTier, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    monkeypatch.setattr(SegmentFolder, "write", lambda *arguments: gate.wait(60))
    while not tier.is_ready:
        tier.wait(0.01)
    blob = np.zeros(64 << 20, np.uint8)
    tokens = np.arange(20, dtype=np.int32)
    piece = SegmentHeader(segment_id(None, 0, tokens, is_whole=False), None, 0, tokens, blob.nbytes, False)
    try:
        assert [tier.write(piece, blob) for _ in range(4)] == [True, True, False, False]
    finally:
        gate.set()
