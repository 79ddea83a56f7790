"""Downloads onto disks that fill up or are read-only, wrong links and clocks, and files written whole."""

from __future__ import annotations

import os
import random
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from pathlib import Path

import pytest

from models.catalog.catalog import Catalog
from models.download.model_download import DownloadRequest, ModelDownload
from models.download.progress import DownloadOptions, DownloadProgress
from models.files.disk import write_whole
from models.files.errors import DiskFull, FolderRefused, UnsafeName
from models.files.provenance import is_verified
from tests.support.disks import fill_up, make_read_only, small_disk
from tools.stand_ins.hub_server import Fault

REPO, FILE = "acme/fox-GGUF", "fox-Q4_0.gguf"
CONTENT = random.Random(9).randbytes(3_000_000)
OPTIONS = DownloadOptions(
    piece_bytes=64 << 10, record_bytes=16 << 10, patience=3, retry=0.01, longest_wait=0.05, reserve_bytes=0
)


@pytest.fixture
def pull(server, hub):
    server.add(REPO, {FILE: CONTENT})

    def run(folder: Path, report=lambda progress: None):
        return ModelDownload(hub, DownloadRequest(REPO), folder, OPTIONS).run(report)

    return run


def models(folder: Path) -> list[str]:
    return [entry.name for entry in Catalog([folder], starter=None).entries()]


def test_a_disk_that_others_fill_in_the_middle_keeps_what_is_there(pull, server, tmp_path):
    with small_disk(tmp_path / "disk", 5 << 20) as disk:
        server.fault(FILE, Fault(bytes_per_second=2e6))
        other = disk / "other"

        def fill(progress: DownloadProgress) -> None:
            if progress.n_done > 500_000 and not other.exists():
                fill_up(other)

        with pytest.raises(DiskFull, match="is full"):
            pull(disk, fill)
        assert models(disk) == []
        other.unlink()
        server.heal()
        n_before = server.n_content_bytes
        (path,) = pull(disk).files
        assert path.read_bytes() == CONTENT
        assert is_verified(disk, path)
        assert server.n_content_bytes - n_before < len(CONTENT) - 200_000


def test_a_disk_that_may_only_be_read_is_told(pull, server, tmp_path):
    with small_disk(tmp_path / "disk", 8 << 20) as disk:
        make_read_only(disk)
        with pytest.raises(FolderRefused, match="Read-only file system"):
            pull(disk)
        assert server.content_requests() == []


def test_a_link_in_place_of_the_model_is_replaced_and_not_followed(pull, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("mine")
    place = tmp_path / "models" / REPO / FILE
    place.parent.mkdir(parents=True)
    place.symlink_to(precious)
    pull(tmp_path / "models")
    assert precious.read_text() == "mine"
    assert not place.is_symlink()
    assert place.read_bytes() == CONTENT


def test_a_makers_folder_that_leads_out_is_refused(pull, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "acme").symlink_to(outside, target_is_directory=True)
    with pytest.raises(UnsafeName, match="through a link"):
        pull(tmp_path / "models")
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("when", [0.0, 4_000_000_000.0])
def test_a_folder_of_another_time_does_not_matter(pull, tmp_path, when):
    folder = tmp_path / "models"
    (folder / REPO).mkdir(parents=True)
    for path in (folder, folder / REPO):
        os.utime(path, (when, when))
    (path,) = pull(folder).files
    os.utime(path, (when, when))
    assert not is_verified(folder, path)
    assert pull(folder).was_there, "its content is what it was"
    assert is_verified(folder, path)


def test_a_server_whose_clock_is_behind_asks_for_no_wait(pull, server, tmp_path):
    past = formatdate(1_000_000_000, usegmt=True)
    server.fault(FILE, Fault(status=503, headers={"Retry-After": past}, times=2))
    (path,) = pull(tmp_path / "models").files
    assert path.read_bytes() == CONTENT


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
