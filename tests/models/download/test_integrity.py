"""Downloaded files that change, move or vanish behind the app's back are noticed; nothing is guessed."""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
from pathlib import Path

import pytest

from models.files.errors import Stopped
from models.files.integrity import (
    GoneFile,
    IntegrityState,
    MovedFile,
    accept_changes,
    integrity_of,
    look_for_changes,
    verify,
)
from models.files.provenance import FileOrigin, read_record, write_record
from tests.support.ordinary_user import ordinary_user

NAME = "acme/fox-GGUF/模型 fox.gguf"


@pytest.fixture
def put(tmp_path):
    def put(name: str = NAME, content: bytes = b"GGUF" * 1000, **fields) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        status = path.stat()
        known = {"repo_id": "acme/fox-GGUF", "commit": "0" * 40, "path": path.name} | fields
        content_hash = f"sha256:{hashlib.sha256(content).hexdigest()}"
        write_record(
            tmp_path,
            path,
            FileOrigin(content=content_hash, n_bytes=status.st_size, mtime_ns=status.st_mtime_ns, **known),
        )
        return path

    return put


def test_untouched_files_are_verified_and_those_of_others_unknown(put, tmp_path):
    own = tmp_path / "own.gguf"
    own.write_bytes(b"GGUF")
    for path, state in ((put(), IntegrityState.VERIFIED), (own, IntegrityState.UNKNOWN)):
        assert integrity_of(tmp_path, [path]) is state
        assert verify(tmp_path, path, lambda n_done, n_total: None) is state
    assert look_for_changes(tmp_path) == ()


@pytest.mark.parametrize("name", [NAME, "acme/fox/FOX.GGUF"])
def test_a_file_that_is_gone_is_missed_however_its_name_is_written(put, tmp_path, name):
    put(name).unlink()
    (change,) = look_for_changes(tmp_path)
    assert isinstance(change, GoneFile)


def test_a_file_in_a_folder_that_may_not_be_read_is_not_missed(put, tmp_path):
    record = read_record(tmp_path, put())
    assert record is not None
    with ordinary_user() as folder:
        path = folder / NAME
        path.parent.mkdir(parents=True)
        write_record(folder, path, record)
        for mode, n_missed in ((0, 0), (0o700, 1)):
            path.parent.chmod(mode)
            assert len(look_for_changes(folder)) == n_missed


@pytest.mark.parametrize("seconds", [0, 1, 4_000_000_000])
def test_a_changed_file_is_noticed_whatever_the_clock(put, tmp_path, seconds):
    path = put()
    path.write_bytes(b"GGUF" * 1001)
    os.utime(path, (seconds, seconds))
    assert integrity_of(tmp_path, [path]) is IntegrityState.CHANGED
    assert verify(tmp_path, path, lambda n_done, n_total: None) is IntegrityState.CHANGED


def test_one_changed_part_is_enough(put, tmp_path):
    paths = [put(f"a/b/m-0000{i}-of-00002.gguf") for i in (1, 2)]
    assert integrity_of(tmp_path, paths) is IntegrityState.VERIFIED
    os.utime(paths[1], (1, 1))
    assert integrity_of(tmp_path, paths) is IntegrityState.CHANGED
    paths[1].unlink()
    assert integrity_of(tmp_path, paths) is IntegrityState.CHANGED


def test_a_touched_file_is_verified_again_by_reading_it(put, tmp_path):
    path = put()
    os.utime(path, (5, 5))
    seen: list[tuple[int, int]] = []
    assert verify(tmp_path, path, lambda n_done, n_total: seen.append((n_done, n_total))) is IntegrityState.VERIFIED
    assert seen == [(4000, 4000)]
    assert integrity_of(tmp_path, [path]) is IntegrityState.VERIFIED


def test_a_bit_that_flipped_is_found_and_remembered(put, tmp_path):
    """The disk changes content, not the time."""
    path = put()
    time = path.stat().st_mtime_ns
    path.write_bytes(b"GGUG" + b"GGUF" * 999)
    os.utime(path, ns=(time, time))
    assert integrity_of(tmp_path, [path]) is IntegrityState.VERIFIED
    assert verify(tmp_path, path, lambda n_done, n_total: None) is IntegrityState.CHANGED
    assert integrity_of(tmp_path, [path]) is IntegrityState.CHANGED


def test_verifying_can_be_stopped(put, tmp_path):
    stop = threading.Event()
    stop.set()
    with pytest.raises(Stopped):
        verify(tmp_path, put(), lambda n_done, n_total: None, stop)


def test_a_moved_file_is_known_again(put, tmp_path):
    path, other = put(), put("acme/other/bear.gguf", b"GGUF" * 7)
    now = tmp_path / "mine" / "renamed.gguf"
    now.parent.mkdir()
    shutil.move(path, now)
    (change,) = look_for_changes(tmp_path)
    assert change == MovedFile(change.record, path, now)
    assert str(now) in change.sentence
    accept_changes(tmp_path, [change])
    assert integrity_of(tmp_path, [now]) is integrity_of(tmp_path, [other]) is IntegrityState.VERIFIED
    assert look_for_changes(tmp_path) == ()


def test_a_copy_of_another_time_is_not_taken_for_the_moved_file(put, tmp_path):
    path = put()
    shutil.copyfile(path, tmp_path / "copy.gguf")
    os.utime(tmp_path / "copy.gguf", (9, 9))
    path.unlink()
    (change,) = look_for_changes(tmp_path)
    assert isinstance(change, GoneFile)


def test_a_deleted_file_is_told_with_how_to_have_it_back(put, tmp_path):
    path = put()
    made = put("quantised/fox-Q4_0.gguf", repo_id="", made_from="fox-F16 (F16)")
    path.unlink()
    made.unlink()
    changes = look_for_changes(tmp_path)
    said = " ".join(change.sentence for change in changes)
    assert str(path) in said
    assert "made from fox-F16" in said
    accept_changes(tmp_path, changes)
    assert look_for_changes(tmp_path) == ()
    assert read_record(tmp_path, path) is None


def test_records_that_are_damaged_or_odd_are_passed_over(put, tmp_path):
    put()
    odd = tmp_path / ".verified" / "acme"
    (odd / "broken.gguf.json").write_text("{")
    (odd / "folder.gguf.json").mkdir()
    assert look_for_changes(tmp_path) == look_for_changes(tmp_path / "nowhere") == ()
