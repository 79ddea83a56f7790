"""Measurements that outlive the process."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.measurements import Measurements, measurement_key


@pytest.fixture(autouse=True)
def quiet_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.measurements.cores_are_shared", lambda: False)


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
    Measurements(None).keep("a", {"x": 1})
    monkeypatch.setattr("core.measurements.cores_are_shared", lambda: True)
    Measurements(tmp_path / "m.json").keep("a", {"x": 1})
    assert not list(tmp_path.iterdir())


def test_what_was_told_or_just_measured_counts_where_the_file_has_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.json"
    Measurements(path).keep("quiet", {"x": 1})
    monkeypatch.setattr("core.measurements.cores_are_shared", lambda: True)
    store = Measurements(path, {"told": {"x": 2}, "quiet": {"x": 3}})
    store.keep("busy", {"x": 4})
    assert [store.recall(key) for key in ("told", "quiet", "busy")] == [{"x": 2}, {"x": 1}, {"x": 4}]
    assert Measurements(path).recall("busy") is None
    assert Measurements(None, store.entries).recall("busy") == {"x": 4}


def test_a_folder_that_cannot_be_written_is_no_harm(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "m.json"
    Measurements(path).keep("a", {"x": 1})
    assert Measurements(path).recall("a") is None


def test_keys_differ_with_what_they_depend_on(monkeypatch: pytest.MonkeyPatch) -> None:
    here = measurement_key("a", 1)
    assert here == measurement_key("a", 1)
    assert here != measurement_key("a", 2)
    monkeypatch.setattr("core.measurements.cpu_name", lambda: "another processor")
    assert measurement_key("a", 1) != here
