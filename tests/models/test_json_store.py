"""Files written whole, and a small file of entries: shared by processes, never lost when it is damaged."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from models.files.disk import hold_folder_lock, write_whole
from models.files.errors import FolderRefused
from models.files.json_store import JsonStore, StoreRefused
from tests.support.disks import failing_disk, small_disk

ROOT = Path(__file__).resolve().parents[2]


def store(folder: Path) -> JsonStore:
    return JsonStore(folder / "things.json", what="things of the test")


def test_what_is_written_is_read(tmp_path):
    one = store(tmp_path / "new" / "folder")
    assert one.read() == {}
    one.update(lambda entries: entries.update({"é🦊": {"a": 1}}))
    assert store(tmp_path / "new" / "folder").read() == {"é🦊": {"a": 1}}
    assert one.problem is None
    assert not [path for path in one.path.parent.iterdir() if path.suffix == ".new"]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b'{"version": 1}', b'{"version": 1, "entries": []}', b"\xff\xfe", b"[" * 100_000],
    ids=["empty", "cut", "list", "null", "no entries", "wrong entries", "not utf-8", "nested"],
)
def test_a_damaged_file_is_set_aside_with_a_message(tmp_path, content):
    one = store(tmp_path)
    one.path.write_bytes(content)
    assert one.read() == {}
    aside = tmp_path / "things.json.broken-1"
    assert aside.read_bytes() == content
    assert one.problem is not None
    assert str(aside) in one.problem
    one.update(lambda entries: entries.update({"a": 1}))
    assert one.read() == {"a": 1}
    one.path.write_bytes(content)
    one.update(lambda entries: entries.update({"b": 2}))
    assert one.read() == {"b": 2}
    assert (tmp_path / "things.json.broken-2").read_bytes() == content


def test_a_file_of_a_newer_version_is_left_as_it_is(tmp_path):
    one = store(tmp_path)
    content = json.dumps({"version": 2, "entries": {"a": "from the future"}})
    one.path.write_text(content)
    assert one.read() == {}
    assert "newer Slipstream" in (one.problem or "")
    with pytest.raises(StoreRefused, match="newer Slipstream"):
        one.update(lambda entries: entries.clear())
    assert one.path.read_text() == content


def test_a_file_that_its_disk_does_not_give_now_is_not_begun_anew(tmp_path):
    one = store(tmp_path)
    one.update(lambda entries: entries.update({"a": 1}))
    with failing_disk(one.path), pytest.raises(StoreRefused, match="Input/output error"):
        one.update(lambda entries: entries.update({"b": 2}))
    assert one.read() == {"a": 1}


def test_it_tells_each_reader_once_that_the_file_is_another(tmp_path):
    reader, writer = store(tmp_path), store(tmp_path)
    assert (reader.changed(), reader.changed()) == ({}, None)
    writer.update(lambda entries: entries.update({"a": 1}))
    assert (reader.changed(), reader.changed()) == ({"a": 1}, None)
    writer.path.unlink()
    assert (reader.changed(), reader.changed()) == ({}, None)


def test_a_change_that_fails_changes_nothing(tmp_path):
    one = store(tmp_path)
    one.update(lambda entries: entries.update({"a": 1}))

    def fail(entries) -> None:
        entries.clear()
        raise KeyError("no")

    with pytest.raises(KeyError):
        one.update(fail)
    assert one.read() == {"a": 1}


def test_a_full_disk_loses_nothing(tmp_path):
    with small_disk(tmp_path / "disk", 256 << 10) as disk:
        one = store(disk)
        one.update(lambda entries: entries.update({"a": 1}))
        with pytest.raises(StoreRefused, match="cannot be written"):
            one.update(lambda entries: entries.update({"b": "x" * 500_000}))
        assert one.read() == {"a": 1}


def test_a_folder_that_cannot_be_made_is_said(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreRefused, match="cannot be written"):
        store(tmp_path / "file").update(lambda entries: None)


def test_processes_and_threads_do_not_lose_each_others_changes(tmp_path):
    code = (
        "import sys; from pathlib import Path; from models.files.json_store import JsonStore\n"
        "store = JsonStore(Path(sys.argv[1]), what='things')\n"
        "for i in range(10): store.update(lambda entries: entries.update({f'{sys.argv[2]}-{i}': i}))"
    )
    one = store(tmp_path)
    runs = [
        subprocess.Popen([sys.executable, "-c", code, str(one.path), name], cwd=ROOT, env={**os.environ})
        for name in "ab"
    ]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: one.update(lambda entries: entries.update({str(i): i})), range(8)))
    assert [run.wait(60) for run in runs] == [0, 0]
    assert len(one.read()) == 28


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_disk_that_knows_no_locks_keeps_things_and_takes_downloads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(pytest.importorskip("fcntl"), "flock", refuse)
    one = store(tmp_path)
    one.update(lambda entries: entries.update({"a": 1}))
    one.update(lambda entries: entries.update({"b": 2}))
    assert one.read() == {"a": 1, "b": 2}
    waits: list[None] = []
    with hold_folder_lock(tmp_path / "x.lock", threading.Event(), lambda: waits.append(None)):
        assert waits == []
    number = errno.EIO
    with pytest.raises(FolderRefused), hold_folder_lock(tmp_path / "x.lock", threading.Event(), lambda: None):
        pass
    with pytest.raises(StoreRefused, match=r"things\.json\.lock cannot be written: Input/output error"):
        one.update(lambda entries: entries.update({"c": 3}))
    assert one.read() == {"a": 1, "b": 2}


@pytest.mark.parametrize("is_durable", [False, True])
def test_folders_are_made_and_what_was_there_is_replaced(tmp_path: Path, is_durable: bool) -> None:
    place = tmp_path / "a" / "b" / "list.json"
    for text in ("first, and longer", "zwölf"):
        write_whole(place, text, is_durable=is_durable)
        assert place.read_text(encoding="utf-8") == text
    assert list(place.parent.iterdir()) == [place]


def test_threads_that_write_at_once_leave_one_of_their_texts(tmp_path: Path) -> None:
    place, texts = tmp_path / "list.json", [str(number) * 50_000 for number in range(8)]
    with ThreadPoolExecutor(len(texts)) as pool:
        for _ in range(10):
            list(pool.map(lambda text: write_whole(place, text), texts))
            assert place.read_text() in texts
    assert list(tmp_path.iterdir()) == [place]


def test_what_was_there_stays_when_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "list.json"
    write_whole(place, "old")

    def full(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="full"):
        write_whole(place, "new")
    assert place.read_text() == "old"
    assert list(tmp_path.iterdir()) == [place]
