"""A file that is written as a whole: its folders, what was there, and what is left when writing fails."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from models.files.disk import write_whole


@pytest.mark.parametrize("is_durable", [False, True])
def test_folders_are_made_and_what_was_there_is_replaced(tmp_path: Path, is_durable: bool) -> None:
    place = tmp_path / "a" / "b" / "list.json"
    for text in ("first, and longer", "zwölf"):
        write_whole(place, text, is_durable=is_durable)
        assert place.read_text(encoding="utf-8") == text
    assert list(place.parent.iterdir()) == [place]


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
