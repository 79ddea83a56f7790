"""The library over its routes: models, the Hub and downloads, and what is left of a process that was killed."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from app.fit_reports.fit_reports import CurrentMachine, current_machine
from app.library.find_model import find_model
from app.library_service.downloads import DownloadService
from app.library_service.hub import HubService
from app.library_service.machine import MachineService
from app.library_service.row_reports import RowReporter
from models.catalog.catalog import STARTER_FOLDER
from models.download.model_download import DownloadRequest, ModelDownload
from models.download.progress import DownloadPhase, DownloadProgress
from models.estimate.fit.summary import FitSummary, FitVerdict
from models.estimate.speed.speeds import SpeedPrediction
from models.files.errors import Stopped
from models.formatting.program import IN_WINDOW
from models.library import requests as ask
from models.library.values import Download, ModelFitReport, RowReport
from tests.support.library_client import LibraryClient
from tests.support.waiting import until
from tools.stand_ins.hub_server import TOKEN, Fault, HubServer, SeenRequest

EMBER = (STARTER_FOLDER / "ember-draft-q8_0.gguf").read_bytes()
REPO = "acme/fox-GGUF"
SLOW = Fault(bytes_per_second=1e5)


@pytest.fixture
def fox(hub: HubServer) -> HubServer:
    hub.add(REPO, {"fox-Q8_0.gguf": EMBER, "fox-Q4_0.gguf": EMBER[:200_000], "README.md": b"A fox."}, downloads=7)
    return hub


def names(library: LibraryClient) -> list[str]:
    return [row.name for row in library.get(ask.ListModels()).rows]


def test_many_models_come_in_parts(library: LibraryClient, models_folder: Path) -> None:
    models_folder.mkdir(parents=True)
    for number in range(250):
        (models_folder / f"模型 {number:03}.gguf").write_bytes(b"no model")
    with library.parts(ask.ListModels()) as parts:
        listed = [part.rows for part in parts]
    assert max(map(len, listed)) == 100
    rows = [row for part in listed for row in part]
    assert len(rows) == 252
    assert rows[249].name == "模型 249"
    assert all("模型" in (row.problem or "") for row in rows[:-2])
    assert (rows[-1].is_toy, rows[-1].can_remove) == (True, False)
    assert "secret" not in repr(ask.LogIn("secret"))
    assert "no keyring" in library.ask(ask.LogIn(TOKEN)).sentence


def test_in_the_window_a_folder_that_was_not_imported_is_no_command(open_library) -> None:
    said = open_library(**{IN_WINDOW: "1"}).ask(ask.ForgetFolder("/nowhere")).sentence
    assert said == "/nowhere was not imported."
    assert "`./slipstream models import` lists" in open_library().ask(ask.ForgetFolder("/nowhere")).sentence


def test_a_single_file_is_used_where_it_is(library: LibraryClient, models_folder: Path, tmp_path: Path) -> None:
    files = [tmp_path / folder / "狐.gguf" for folder in ("one", "two")]
    for file in files:
        file.parent.mkdir()
        shutil.copy(STARTER_FOLDER / "ember-draft-q8_0.gguf", file)
    found = [library.get(ask.ImportFile(str(file))) for file in (*files, files[0])]
    assert found[0] == found[2] != found[1]
    assert set(found) <= set(names(library))
    library.get(ask.RemoveModel(found[0]))
    assert files[0].exists(), "the link leaves, the file stays"
    assert len([name for name in names(library) if "狐" in name]) == 1
    (tmp_path / "cut.gguf").write_bytes(files[0].read_bytes()[:90_000])
    says = (("cut.gguf", "cannot be used"), ("none.gguf", "no model file"), ("one", "one is a folder. Import it"))
    for name, words in says:
        assert words in library.ask(ask.ImportFile(str(tmp_path / name))).sentence
    assert not any(models_folder.rglob("cut.gguf"))


def test_downloads_are_paused_resumed_moved_and_cancelled_and_that_is_told_to_all(
    library: LibraryClient, fox: HubServer, models_folder: Path
) -> None:
    fox.add("acme/hen-GGUF", {"hen-Q8_0.gguf": EMBER})
    fox.fault("fox-Q8_0.gguf", SLOW)
    library.get(ask.StartDownload(REPO, "Q8_0"))
    library.get(ask.StartDownload("acme/hen-GGUF", "Q8_0"))
    library.wait_for(lambda: [d.phase for d in library.downloads] == ["downloading", "queued"])
    first, second = library.downloads
    library.get(ask.PauseDownload(second.number))
    library.wait_for(lambda: library.downloads[1].phase == "paused")
    late = LibraryClient(library.server)
    late.wait_for(lambda: [d.phase for d in late.downloads] == ["downloading", "paused"])
    library.get(ask.MoveDownload(second.number, 0))
    library.wait_for(lambda: [d.number for d in library.downloads] == [second.number, first.number])
    library.get(ask.CancelDownload(first.number))
    library.wait_for(lambda: [d.number for d in library.downloads] == [second.number])
    library.get(ask.ResumeDownload(second.number))
    for client in (library, late):
        client.wait_for(lambda client=client: [d.phase for d in client.downloads] == ["done"])
        client.wait_for(lambda client=client: client.heard("models"))
    late.http.close()
    library.get(ask.CancelDownload(first.number))  # it was there: another client may not know yet
    for unknown in (ask.PauseDownload(99), ask.ResumeDownload(0), ask.CancelDownload(3), ask.MoveDownload(-1, 0)):
        assert "no download" in library.ask(unknown).sentence
    assert [path.name for path in models_folder.rglob("*.gguf")] == ["hen-Q8_0.gguf"]
    assert list(models_folder.rglob("*.part")) == []


def test_a_download_waits_for_a_move_and_goes_to_the_new_folder(
    library: LibraryClient, fox: HubServer, models_folder: Path, tmp_path: Path
) -> None:
    models_folder.mkdir(parents=True)
    (models_folder / "mine.gguf").write_bytes(EMBER)
    with open(models_folder / "large.bin", "wb") as large:
        large.truncate(1 << 28)
    with library.parts(ask.MoveModels(str(tmp_path / "new"))) as parts:
        assert next(parts).stage == "copying"
        assert "are being moved" in library.ask(ask.StartDownload(REPO, "Q8_0")).sentence
        *_, last = parts
    assert (last.is_over, last.n_left) == (True, 0)
    assert names(library) == ["mine", "ember-q8_0", "ember-draft-q8_0"]
    library.get(ask.StartDownload(REPO, "Q8_0"))
    library.wait_for(lambda: [d.phase for d in library.downloads] == ["done"])
    assert (tmp_path / "new" / REPO / "fox-Q8_0.gguf").read_bytes() == EMBER
    assert names(library) == ["mine", "fox-Q8_0", "ember-q8_0", "ember-draft-q8_0"]
    assert not models_folder.exists()


TELLING_SECONDS = 0.3  # more than the pause between two pieces of news


def test_what_is_told_last_is_how_downloads_are(open_library, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[Download, ...]] = []
    is_wanted, steps = threading.Semaphore(0), threading.Semaphore(0)

    def run(self: ModelDownload, report: Callable[[DownloadProgress], None]) -> None:
        report(DownloadProgress(DownloadPhase.DOWNLOADING, 1, 2))
        is_wanted.acquire()  # it takes its time to stop
        raise Stopped

    def tell(downloads: tuple[Download, ...]) -> None:
        steps.release()
        time.sleep(TELLING_SECONDS)
        told.append(downloads)

    def phases() -> list[DownloadPhase]:
        return [one.phase for one in told[-1]]

    monkeypatch.setattr(ModelDownload, "run", run)
    service = DownloadService(tell, arrived=lambda: None)
    service.start()
    number = service.add(DownloadRequest("acme/fox")).number
    until(lambda: told and phases() == [DownloadPhase.DOWNLOADING])
    service.pause(number)
    while steps.acquire(blocking=False):
        pass
    service.look()
    steps.acquire()  # it is being told how things are, while they change
    is_wanted.release()
    until(lambda: service.downloads[0].phase is DownloadPhase.PAUSED)
    time.sleep(3 * TELLING_SECONDS)
    assert phases() == [DownloadPhase.PAUSED]
    service.resume(number)
    until(lambda: phases() == [DownloadPhase.DOWNLOADING])
    service.cancel(number)
    time.sleep(3 * TELLING_SECONDS)
    is_wanted.release()
    until(lambda: service.downloads == ())
    until(lambda: told[-1] == ())
    service.stop()


def at_once(library: LibraryClient, requests: list[object]) -> list[object]:
    """Return the answers to requests that are all asked at the same time."""
    ready = threading.Barrier(len(requests))

    def ask_one(request: object) -> object:
        ready.wait()
        return library.ask(request)

    with ThreadPoolExecutor(len(requests)) as threads:
        return list(threads.map(ask_one, requests))


def test_folders_that_are_imported_at_once_are_all_on_the_list(library: LibraryClient, tmp_path: Path) -> None:
    folders = [tmp_path / f"folder {number}" for number in range(8)]
    for folder in folders:
        folder.mkdir()
    for _ in range(5):
        at_once(library, [ask.ImportFolder(str(folder)) for folder in folders])
        places = [place.path for place in library.get(ask.ListPlaces()) if place.is_imported]
        assert sorted(places) == sorted(map(str, folders))
        at_once(library, [ask.ForgetFolder(str(folder)) for folder in folders])
        assert not any(place.is_imported for place in library.get(ask.ListPlaces()))


def test_a_file_that_is_opened_twice_at_once_is_one_model(
    library: LibraryClient, models_folder: Path, tmp_path: Path
) -> None:
    file = Path(shutil.copy(STARTER_FOLDER / "ember-draft-q8_0.gguf", tmp_path / "fox.gguf"))
    assert set(at_once(library, [ask.ImportFile(str(file))] * 8)) == {"fox"}
    assert [path.name for path in models_folder.rglob("*.gguf")] == ["fox.gguf"]


def test_what_a_hub_answers_after_another_was_chosen_is_not_kept(open_library, fox: HubServer) -> None:
    library, other = open_library(HF_ENDPOINT=""), HubServer()
    other.add(REPO, {"hen-Q8_0.gguf": EMBER})

    class Asked(list[SeenRequest]):
        def append(self, seen: SeenRequest) -> None:
            super().append(seen)
            library.get(ask.ChangeHub(other.address))  # before the answer

    library.get(ask.ChangeHub(fox.address))
    fox.asked = Asked()
    assert [model.name for model in library.get(ask.ShowRepository(REPO)).models] == ["fox-Q4_0", "fox-Q8_0"]
    assert library.get(ask.Recommend(REPO)).name == "hen-Q8_0"
    other.stop()


def test_many_may_look_at_repositories_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.library_service.hub.hub", lambda: SimpleNamespace(repository=lambda name: name))
    monkeypatch.setattr("app.library_service.hub._N_KEPT", 1)
    service = HubService(MachineService())

    class Name(str):
        """Lets others go on wherever it is looked up."""

        def __hash__(self) -> int:
            time.sleep(0.001)
            return super().__hash__()

    def look(reader: int) -> None:
        for number in range(30):
            service.repository(Name(f"{reader}/{number}"))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(look, range(4)))


@pytest.mark.parametrize("is_all", [True, False])
def test_what_changes_while_a_row_is_judged_is_judged_again(
    open_library, monkeypatch: pytest.MonkeyPatch, is_all: bool
) -> None:
    entry, told, looks = find_model("ember-q8_0"), list[tuple[RowReport, ...]](), []

    def now(machine: MachineService) -> CurrentMachine:
        if not looks:
            reporter.forget(None if is_all else entry)
        looks.append(current_machine())
        return looks[-1]

    monkeypatch.setattr(MachineService, "now", now)
    reporter = RowReporter(MachineService(), told.append)
    reporter.look([entry])
    until(lambda: len(told) == 2)
    summary = FitSummary(FitVerdict.GREEN, "", speed=SpeedPrediction(1_234.0, 1_000.0, 1_024))
    reporter.take(ModelFitReport(entry.name, summary))
    assert told[-1] == (replace(told[1][0], predicted_rate=1_234.0),), "its details say so too"
    known = reporter.of(entry)
    assert known is not None
    assert known.predicted_rate == 1_234.0
