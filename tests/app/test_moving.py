"""The folder of models is moved: every file arrives, and whatever goes wrong, nothing is lost."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.environment.paths import models_folder
from app.library.errors import LibraryError
from app.library.moving import FOLDER, ModelsMove, MoveCancelled, no_other_move
from models.catalog.catalog import STARTER
from models.library import requests as ask
from models.library.values import MoveStep, Trouble
from tests.support.disks import small_disk
from tests.support.fork_server import forked_library_command
from tests.support.library_client import LibraryClient
from tests.support.ordinary_user import ordinary_user
from tests.support.waiting import until
from tools.stand_ins.library_server import LibraryServer

N_BYTES = 20 << 20
BEING_MOVED = "The models are being moved: wait until that has ended."


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a large model, a record of it, an empty file and a link."""
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path / "home"))
    folder = models_folder()
    (folder / "owner" / "repo").mkdir(parents=True)
    (folder / ".verified" / "owner").mkdir(parents=True)
    (folder / "owner" / "repo" / "model.gguf").write_bytes(os.urandom(N_BYTES))
    (folder / "owner" / "repo" / "empty").touch()
    (folder / ".verified" / "owner" / "model.json").write_text("{}")
    (folder / "opened").mkdir()
    (folder / "opened" / "link.gguf").symlink_to(tmp_path / "elsewhere.gguf")
    os.utime(folder / "owner" / "repo" / "model.gguf", ns=(1_000, 123_456_789_123))
    return folder


def contents(folder: Path) -> dict[str, bytes | str]:
    """All files and links below a folder."""
    paths = [path for path in folder.rglob("*") if path.is_symlink() or path.is_file()]
    return {
        str(path.relative_to(folder)): os.readlink(path) if path.is_symlink() else path.read_bytes() for path in paths
    }


def run(move: ModelsMove, meanwhile: Callable[[MoveStep], object]) -> None:
    for step in move.run():
        meanwhile(step)


def test_all_files_arrive_and_the_old_ones_are_gone(source: Path, tmp_path: Path) -> None:
    before = contents(source)
    steps = list(ModelsMove(tmp_path / "new" / "models").run())
    assert steps[-1] == MoveStep("moved", N_BYTES + 2, N_BYTES + 2, str(tmp_path / "new" / "models"), is_over=True)
    assert contents(tmp_path / "new" / "models") == before
    assert (tmp_path / "new" / "models" / "owner" / "repo" / "model.gguf").stat().st_mtime_ns == 123_456_789_123
    assert not source.exists()
    assert models_folder() == tmp_path / "new" / "models"
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / "mine").touch()
    assert list(ModelsMove(tmp_path / "disk").run())[-1].is_over  # from the new place, to one with other files
    assert contents(tmp_path / "disk") == {"mine": b""} | {f"{FOLDER}/{name}": what for name, what in before.items()}


@pytest.mark.parametrize("stage", ["copying", "checking"])
def test_cancelling_leaves_all_as_it_was(source: Path, tmp_path: Path, stage: str, monkeypatch) -> None:
    monkeypatch.setattr("app.library.moving._TELL_SECONDS", 0.0)
    before = contents(source)
    move = ModelsMove(tmp_path / "new" / "models")
    with pytest.raises(MoveCancelled, match="The models are where they were"):
        run(move, lambda step: move.cancel() if step.stage == stage else None)
    assert contents(source) == before
    assert not (tmp_path / "new").exists()
    assert models_folder() == source


def test_what_has_not_arrived_of_a_download_takes_no_room(source: Path, tmp_path: Path) -> None:
    (source / "owner" / "repo" / "model.gguf").unlink()
    part = source / ".partial" / "owner" / "large.gguf.part"
    part.parent.mkdir(parents=True)
    with open(part, "wb") as file:
        file.write(b"begun")
        file.seek(40 << 20)
        file.write(b"and its end")
        file.truncate(60 << 20)
    with small_disk(tmp_path / "disk", 100 << 20) as disk:
        assert list(ModelsMove(disk).run())[-1].is_over
        moved = disk / ".partial" / "owner" / "large.gguf.part"
        assert moved.stat().st_size == 60 << 20
        assert moved.stat().st_blocks * 512 < 30 << 20
        with open(moved, "rb") as file:
            assert file.read(5) == b"begun"
            file.seek(40 << 20)
            assert file.read(11) == b"and its end"


def test_a_disk_without_room_is_refused_at_once(source: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 10 << 20) as disk, pytest.raises(LibraryError, match="has room for") as error:
        ModelsMove(disk)
    assert str(N_BYTES)[:1] in str(error.value)
    assert models_folder() == source


def test_a_disk_that_fills_up_meanwhile_loses_nothing(source: Path, tmp_path: Path, monkeypatch) -> None:
    before = contents(source)
    monkeypatch.setattr("app.library.moving._SPARE", -(1 << 30))  # as if others had written there since
    with small_disk(tmp_path / "disk", 10 << 20) as disk:
        with pytest.raises(LibraryError, match=r"No space left on device\. The models are where they were"):
            list(ModelsMove(disk).run())
        assert contents(disk) == {}
    assert contents(source) == before
    assert models_folder() == source


def test_a_file_that_is_written_meanwhile_is_not_lost(source: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("app.library.moving._TELL_SECONDS", 0.0)
    with pytest.raises(LibraryError, match="has changed while its files were copied"):
        run(ModelsMove(tmp_path / "new"), lambda step: (source / "late.gguf").write_bytes(b"late"))
    assert (source / "late.gguf").read_bytes() == b"late"
    assert (source / "owner" / "repo" / "model.gguf").stat().st_size == N_BYTES
    assert not (tmp_path / "new").exists()


def test_a_copy_that_is_not_the_same_is_found(source: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("app.library.moving._TELL_SECONDS", 0.0)
    before, target = contents(source), tmp_path / "new"

    def spoil(step: MoveStep) -> None:
        if step.stage == "checking":
            (target / ".verified" / "owner" / "model.json").write_text("xx")
            (target / "owner" / "repo" / "empty").write_text("x")

    with pytest.raises(LibraryError, match="is not the same there as here"):
        run(ModelsMove(target), spoil)
    assert contents(source) == before
    assert models_folder() == source


def test_places_that_cannot_be_are_refused(source: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "taken" / FOLDER).mkdir(parents=True)
    (tmp_path / "taken" / FOLDER / "mine").touch()
    for place, why in (
        (tmp_path / "file", "is no folder"),
        (source, "already"),
        (source / "below", "is inside the present folder"),
        (tmp_path / "taken", "has files already"),
        (Path("/proc/nowhere"), "Nothing can be written"),
    ):
        with pytest.raises(LibraryError, match=why):
            ModelsMove(place)
    assert not (source / "below").exists()
    with ordinary_user() as folder:
        folder.chmod(0)
        with pytest.raises(LibraryError, match="mine cannot be read: Permission denied"):
            ModelsMove(folder / "mine")
        folder.chmod(0o700)


@pytest.fixture
def library(source: Path) -> Iterator[LibraryClient]:
    client = LibraryClient(LibraryServer(forked_library_command))
    yield client
    client.close()


def test_of_two_moves_at_once_one_is_refused(library: LibraryClient, source: Path, tmp_path: Path) -> None:
    for number in range(2_000):  # looking at them takes a while
        (source / f"{number}.txt").touch()
    found = {}

    def move(name: str) -> None:
        with library.parts(ask.MoveModels(str(tmp_path / name))) as parts:
            *_, found[name] = parts

    threads = [threading.Thread(target=move, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (refused,) = [name for name, last in found.items() if isinstance(last, Trouble)]
    assert found.pop(refused).sentence == BEING_MOVED
    ((moved, last),) = found.items()
    assert last.is_over
    assert models_folder() == tmp_path / moved
    assert len(contents(tmp_path / moved)) == 2_004
    assert not (tmp_path / refused).exists()
    assert not source.exists()


@pytest.mark.parametrize(
    "request_",
    [
        ask.StartDownload("acme/fox-GGUF", "Q8_0"),
        ask.ResumeDownload(1),
        ask.RemoveModel("model"),
        ask.ImportFile(str(STARTER)),
        ask.Quantise("ember-q8_0", "Q4_K_M"),
    ],
)
def test_nothing_is_written_into_the_folder_while_it_is_moved(library: LibraryClient, request_: object) -> None:
    with no_other_move():
        assert library.ask(request_).sentence == BEING_MOVED
    assert getattr(library.ask(request_), "sentence", "") != BEING_MOVED


def test_a_move_is_cancelled_when_its_client_leaves(library: LibraryClient, source: Path, tmp_path: Path) -> None:
    with open(source / "large.gguf", "wb") as large:
        large.truncate(1 << 30)
    before = sorted(source.rglob("*"))
    with library.parts(ask.MoveModels(str(tmp_path / "new"))) as parts:
        assert next(parts).stage == "copying"
    until(lambda: not (tmp_path / "new").exists())
    assert sorted(source.rglob("*")) == before
    assert models_folder() == source
