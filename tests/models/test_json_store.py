"""A small file of entries: written whole, shared by processes, and never lost when it is damaged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from models.files.json_store import JsonStore, StoreRefused
from tests.support.disks import small_disk

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
