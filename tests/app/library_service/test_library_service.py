"""The library over its routes: models, the Hub and downloads, and what is left of a process that was killed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from app.client.server_process import library_command
from models.catalog.catalog import STARTER_FOLDER
from models.estimate.fit.summary import FitVerdict
from models.library import requests as ask
from models.library.values import FolderPlace, Trouble, TroubleKind
from tests.support.library_client import LibraryClient
from tools.stand_ins.hub_server import TOKEN, Fault, HubServer

EMBER = (STARTER_FOLDER / "ember-draft-q8_0.gguf").read_bytes()
REPO = "acme/fox-GGUF"
SLOW = Fault(bytes_per_second=1e5)


@pytest.fixture
def fox(hub: HubServer) -> HubServer:
    hub.add(REPO, {"fox-Q8_0.gguf": EMBER, "fox-Q4_0.gguf": EMBER[:200_000], "README.md": b"A fox."}, downloads=7)
    return hub


def names(library: LibraryClient) -> list[str]:
    return [row.name for row in library.get(ask.ListModels()).rows]


def test_models_are_listed_with_where_they_are_looked_for(open_library, models_folder: Path) -> None:
    library = open_library(library_command)
    listed = library.get(ask.ListModels())
    rows = listed.rows
    assert [row.name for row in rows] == ["ember-q8_0", "ember-draft-q8_0"]
    assert rows[0].is_toy
    assert not rows[0].can_remove
    assert rows[0].header.n_active_params == rows[0].header.n_params > 11e6
    assert listed.folders == (str(models_folder),)
    with library.parts(ask.ListModels()) as parts:
        *some, last = parts
    assert [row.name for part in some for row in part.rows] == [row.name for row in rows]
    assert last.folders == listed.folders


def test_many_models_come_in_parts(library: LibraryClient, models_folder: Path) -> None:
    models_folder.mkdir(parents=True)
    for number in range(250):
        (models_folder / f"模型 {number:03}.gguf").write_bytes(b"no model")
    with library.parts(ask.ListModels()) as parts:
        listed = [part.rows for part in parts]
    assert max(map(len, listed)) == 100
    rows = [row for part in listed for row in part]
    assert len(rows) == 252
    assert rows[-1].name == "模型 249"
    assert all("模型" in (row.problem or "") for row in rows[2:])


def test_a_model_is_described_by_its_header(library: LibraryClient) -> None:
    row = library.get(ask.ShowModel("ember-q8_0"))
    header = row.header
    assert header.n_layers > 0
    assert header.kv_bytes_per_token > 0
    assert 0 < header.weight_bytes <= row.n_bytes
    assert header.has_chat_template
    assert "any more" in library.ask(ask.ShowModel("gone")).sentence


def test_a_removed_model_is_in_the_trash_and_the_bundled_one_stays(
    library: LibraryClient, models_folder: Path, tmp_path: Path
) -> None:
    models_folder.mkdir(parents=True)
    shutil.copy(STARTER_FOLDER / "ember-draft-q8_0.gguf", models_folder / "mine.gguf")
    assert "mine" in names(library)
    assert library.get(ask.RemoveModel("mine")) == (str(models_folder / "mine.gguf"),)
    assert not (models_folder / "mine.gguf").exists()
    assert list((tmp_path / "xdg").rglob("mine.gguf")) != []
    library.wait_for(lambda: library.heard("models"))
    assert "mine" not in names(library)
    assert "part of Slipstream" in library.ask(ask.RemoveModel("ember-q8_0")).sentence


def test_folders_are_imported_in_place_and_forgotten(library: LibraryClient, tmp_path: Path) -> None:
    folder = tmp_path / "Modèles d'ici"
    folder.mkdir()
    shutil.copy(STARTER_FOLDER / "ember-draft-q8_0.gguf", folder / "狐.gguf")
    assert library.get(ask.ImportFolder(str(folder))) == FolderPlace(str(folder), "folder", is_imported=True)
    assert "狐" in names(library)
    assert [(place.path, place.is_imported) for place in library.get(ask.ListPlaces())] == [(str(folder), True)]
    assert library.get(ask.ForgetFolder(str(folder))) == str(folder)
    assert "狐" not in names(library)
    assert "does not exist" in library.ask(ask.ImportFolder(str(tmp_path / "nowhere"))).sentence


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
    for name, words in (("cut.gguf", "cannot be used"), ("none.gguf", "no model file")):
        assert words in library.ask(ask.ImportFile(str(tmp_path / name))).sentence
    assert not any(models_folder.rglob("cut.gguf"))


def test_the_hub_is_searched_shown_and_judged(library: LibraryClient, fox: HubServer) -> None:
    (found,) = library.get(ask.SearchHub("fox"))
    repository = found.repository
    assert (repository.repo_id, repository.downloads, repository.n_models) == (REPO, 7, 2)
    repository = library.get(ask.ShowRepository(REPO))
    assert [(model.quantisation, model.n_bytes) for model in repository.models] == [
        ("Q4_0", 200_000),
        ("Q8_0", len(EMBER)),
    ]
    judged = library.get(ask.GetRemoteFit(REPO, "Q8_0"))
    assert (judged.header.architecture, judged.header.quantisation) == ("llama", "Q8_0")
    assert judged.n_bytes == len(EMBER)
    assert (judged.fit.verdict, "memory" in judged.fit.sentence or "free" in judged.fit.sentence) == (
        FitVerdict.GREEN,
        True,
    )
    # The header and no more than it needs.
    assert fox.n_content_bytes < len(EMBER) + (1 << 20)


def test_the_curated_list_is_there_without_a_network(open_library) -> None:
    library = open_library(HF_HUB_OFFLINE="1")
    listed = library.get(ask.ListCurated())
    assert len(listed.rows) > 20
    assert {row.verdict for row in listed.rows} <= set(FitVerdict)
    assert {row.title for row in listed.rows if "own file" in row.drafting} >= {"Qwen3.5 4B", "Qwen3.6 35B-A3B"}
    trouble = library.ask(ask.SearchHub("fox"))
    assert (trouble.kind, "HF_HUB_OFFLINE" in trouble.sentence) == (TroubleKind.OFFLINE, True)
    assert library.get(ask.ShowHub()).is_offline


def test_trouble_is_a_sentence_that_says_what_to_do(library: LibraryClient) -> None:
    for request, kind, words in (
        (ask.ChangeHub("no address", ""), TroubleKind.SETTING, "no web address"),
        (ask.LogIn("two words"), TroubleKind.REFUSED, "no access token"),
        (ask.LogIn(TOKEN), TroubleKind.SETTING, "no keyring"),
    ):
        trouble = library.ask(request)
        assert isinstance(trouble, Trouble)
        assert (trouble.kind, words in trouble.sentence) == (kind, True), trouble


def test_a_gated_repository_asks_for_access(library: LibraryClient, hub: HubServer) -> None:
    hub.add("acme/gated", {"gated-Q8_0.gguf": EMBER}, gated="manual")
    assert library.get(ask.ShowRepository("acme/gated")).access == "gated"
    trouble = library.ask(ask.GetRemoteFit("acme/gated", "Q8_0"))
    assert trouble.kind is TroubleKind.ACCESS


def test_a_model_is_downloaded_with_news_and_then_listed(library: LibraryClient, fox: HubServer) -> None:
    fox.fault("fox-Q8_0.gguf", Fault(bytes_per_second=1.5e6))
    assert library.get(ask.StartDownload(REPO, "Q8_0")).phase == "queued"
    library.wait_for(lambda: [download.phase for download in library.downloads] == ["done"])
    told = (one for news in library.news if news["news"] == "downloads" for one in news["value"])
    assert any(one["progress"]["n_done"] not in (0, len(EMBER)) for one in told)
    library.wait_for(lambda: library.heard("models"))
    rows = library.get(ask.ListModels()).rows
    (row,) = [row for row in rows if row.name == "fox-Q8_0"]
    assert row.is_verified
    assert (row.source or "").startswith(REPO)
    library.ask(ask.RemoveModel("fox-Q8_0"))
    library.wait_for(lambda: library.downloads == ())
    assert library.get(ask.StartDownload(REPO, "Q8_0")).phase == "queued"
    library.wait_for(lambda: [download.phase for download in library.downloads] == ["done"])
    library.ask(ask.ClearEnded())
    library.wait_for(lambda: library.downloads == ())


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
    library.get(ask.CancelDownload(99))
    assert [path.name for path in models_folder.rglob("*.gguf")] == ["hen-Q8_0.gguf"]
    assert list(models_folder.rglob("*.part")) == []


def test_after_kill_9_the_next_one_goes_on_where_it_was(open_library, fox: HubServer, models_folder: Path) -> None:
    large = (STARTER_FOLDER / "ember-q8_0.gguf").read_bytes()
    fox.add(REPO, {"fox-Q8_0.gguf": large})
    fox.fault("fox-Q8_0.gguf", Fault(bytes_per_second=2e6))
    library = open_library()
    library.get(ask.StartDownload(REPO, "Q8_0"))
    library.wait_for(lambda: library.downloads and library.downloads[0].progress.n_done > 7_000_000)
    library.server.process.kill()
    library.wait_for(lambda: library.heard("lost"))
    assert not (models_folder / REPO / "fox-Q8_0.gguf").exists()
    fox.heal()
    library.wait_for(lambda: [download.phase for download in library.downloads] == ["done"])
    assert library.heard("returned")
    assert (models_folder / REPO / "fox-Q8_0.gguf").read_bytes() == large
    # Each of four connections may lose what it had not yet recorded, and what was on its way.
    assert fox.n_content_bytes < len(large) + 4 * (1 << 20) + 1_000_000


def test_what_was_paused_stays_so_in_the_next_one(open_library, fox: HubServer) -> None:
    fox.fault("fox-Q8_0.gguf", SLOW)
    library = open_library()
    library.get(ask.StartDownload(REPO, "Q8_0"))
    library.wait_for(lambda: library.downloads and library.downloads[0].progress.n_done > 0)
    library.get(ask.PauseDownload(library.downloads[0].number))
    library.wait_for(lambda: library.downloads[0].phase == "paused")
    library.close()
    again = open_library()
    again.wait_for(lambda: [download.phase for download in again.downloads] == ["paused"])


def test_the_token_is_in_no_repr() -> None:
    assert "secret" not in repr(ask.LogIn("secret"))
