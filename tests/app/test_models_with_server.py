"""The commands below ``models`` where a server runs: its library does what they ask, and its windows see it."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from app.cli import main as cli
from app.client import discovery
from app.environment.exit_codes import ExitCode
from app.environment.paths import models_folder
from models.library import requests as ask
from tests.support.fork_server import forked_library_command
from tests.support.library_client import LibraryClient
from tools.model_factory.gguf_factory import EMBER, EMBER_DRAFT
from tools.stand_ins.hub_server import Fault, HubServer
from tools.stand_ins.library_server import KEY, LibraryServer

ROOT = Path(__file__).resolve().parents[2]
REPO = "acme/fox-GGUF"
PULL = [sys.executable, "-m", "app", "models", "pull", f"{REPO}:Q8_0"]
SLOW = Fault(bytes_per_second=1e6)


@pytest.fixture
def models(home: Path, capsys: pytest.CaptureFixture[str]):
    def run(*arguments: str) -> tuple[int, str, str]:
        code = cli.main(["models", *arguments])
        return int(code), *capsys.readouterr()

    return run


@pytest.fixture
def window(hub_server: HubServer, home: Path, tmp_path: Path, monkeypatch) -> Iterator[LibraryClient]:
    """Another client of the library of a server that is listed as running."""
    hub_server.add(REPO, {"fox-Q8_0.gguf": EMBER.read_bytes()})
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf-home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    client = LibraryClient(LibraryServer(forked_library_command))
    discovery.announce(host="127.0.0.1", port=urlsplit(client.server.url).port or 0, api_key=KEY, model=None)
    client.wait_for(lambda: client.heard("downloads"))
    client.news.clear()
    yield client
    discovery.withdraw()
    client.close()


@pytest.fixture
def mine(home: Path) -> Path:
    """A model of this machine."""
    models_folder().mkdir(parents=True)
    return Path(shutil.copy(EMBER_DRAFT, models_folder() / "mine.gguf"))


def test_a_removed_model_is_gone_from_the_window(models, window, mine) -> None:
    code, out, err = models("rm", str(mine), "--json")
    assert code == ExitCode.OK, err
    assert json.loads(out) == {
        "name": "mine",
        "files": [str(mine)],
        "n_bytes": EMBER_DRAFT.stat().st_size,
        "is_in_trash": True,
    }
    assert not mine.exists()
    window.wait_for(lambda: window.heard("models"))


def test_what_the_library_refuses_has_the_exit_code_of_a_command_alone(models, window) -> None:
    code, _, err = models("rm", "ember-q8_0")
    assert (code, "part of Slipstream" in err) == (ExitCode.USAGE, True)
    code, _, err = models("rm", "none")
    assert (code, "Models: ember-q8_0" in err) == (ExitCode.MODEL, True)


def test_an_imported_folder_is_in_the_window(models, window, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    shutil.copy(EMBER_DRAFT, folder / "own.gguf")
    assert "1 of 1 models can be used.\n  own" in models("import", str(folder))[1]
    window.wait_for(lambda: window.heard("models"))
    assert "own" in [row.name for row in window.get(ask.ListModels()).rows]
    assert "`./slipstream models import FOLDER --forget` does that." in models("rm", "own")[2]
    assert "no longer looked through" in models("import", str(folder), "--forget")[1]
    assert "own" not in [row.name for row in window.get(ask.ListModels()).rows]


def test_a_server_without_a_key_deletes_nothing_for_good(models, hub_server, home, tmp_path, monkeypatch, mine) -> None:
    """Whoever else uses the machine could ask it for that; the command does it itself."""
    open_to_all = LibraryServer(forked_library_command, api_key=None)
    discovery.announce(host="127.0.0.1", port=urlsplit(open_to_all.url).port or 0, api_key=None, model=None)
    refused = LibraryClient(open_to_all)
    assert "--api-key" in refused.ask(ask.RemoveModel("mine", for_good=True)).sentence
    assert mine.exists()
    assert "deleted" in models("rm", "mine", "--delete")[1]
    assert not mine.exists()
    discovery.withdraw()
    refused.close()


def test_a_server_that_has_gone_is_done_without(models, window, mine) -> None:
    window.server.close()
    assert models("rm", "mine", "--delete")[0] == ExitCode.OK
    assert not mine.exists()


def phases(window: LibraryClient) -> list[str]:
    return [download.phase for download in window.downloads]


def started(window: LibraryClient) -> subprocess.Popen[str]:
    """A download that was begun in a terminal and has arrived in part."""
    process = subprocess.Popen(PULL, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    window.wait_for(lambda: window.downloads and window.downloads[0].progress.n_done > 0)
    return process


def test_a_download_of_the_terminal_is_in_the_window(models, window) -> None:
    code, out, err = models("pull", f"{REPO}:Q8_0", "--json")
    assert code == ExitCode.OK, err
    file = models_folder() / REPO / "fox-Q8_0.gguf"
    assert json.loads(out) == {
        "name": "fox-Q8_0",
        "repo_id": REPO,
        "commit": "0" * 40,
        "n_bytes": EMBER.stat().st_size,
        "files": [str(file)],
        "was_there": False,
    }
    assert file.read_bytes() == EMBER.read_bytes()
    assert phases(window) == ["done"]
    window.wait_for(lambda: window.heard("models"))
    assert "is there already" in models("pull", f"{REPO}:Q8_0")[1]


def test_ctrl_c_pauses_what_the_terminal_began(window, hub_server: HubServer) -> None:
    hub_server.fault("fox-Q8_0.gguf", SLOW)
    process = started(window)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (ExitCode.INTERRUPTED, ""), err
    assert "The same command goes on from there." in err
    window.wait_for(lambda: phases(window) == ["paused"])
    hub_server.heal()
    again = subprocess.run(PULL, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert "is there and verified" in again.stdout
    window.wait_for(lambda: phases(window) == ["done"])


def test_a_command_that_is_killed_leaves_its_download_to_the_server(window, hub_server: HubServer) -> None:
    hub_server.fault("fox-Q8_0.gguf", SLOW)
    process = started(window)
    process.kill()
    process.communicate()
    hub_server.heal()
    window.wait_for(lambda: phases(window) == ["done"])


def test_what_the_window_stops_is_stopped_in_the_terminal(window, hub_server: HubServer) -> None:
    hub_server.fault("fox-Q8_0.gguf", SLOW)
    process = started(window)
    window.get(ask.CancelDownload(window.downloads[0].number))
    _, err = process.communicate(timeout=60)
    assert (process.returncode, "stopped in the window" in err) == (ExitCode.INTERRUPTED, True), err


def test_a_library_that_dies_is_done_without(window, hub_server: HubServer) -> None:
    """Whoever has the file's lock goes on where it was; the other waits, and finds it there."""
    hub_server.fault("fox-Q8_0.gguf", SLOW)
    process = started(window)
    window.server.process.kill()
    hub_server.heal()
    out, err = process.communicate(timeout=60)
    assert (process.returncode, "is there" in out) == (ExitCode.OK, True), err


def test_what_fails_there_has_the_exit_code_of_a_command_alone(models, window, hub_server: HubServer) -> None:
    for name, code, words in (
        ("acme/none", ExitCode.MODEL, "no repository acme/none"),
        ("acme/none", ExitCode.MODEL, "`./slipstream models login` logs in."),
        (f"{REPO}:Q2_K", ExitCode.MODEL, "not one of them"),
        ("a b", ExitCode.USAGE, "no name of a repository"),
    ):
        found, _, err = models("pull", name)
        assert (found, words in err) == (code, True), err
    hub_server.fault("/api/models", Fault(status=429, headers={"Retry-After": "33"}))
    code, _, err = models("pull", f"{REPO}:Q8_0")
    assert (code, "33 seconds" in err) == (ExitCode.ERROR, True)


def test_a_terminal_with_another_hub_downloads_by_itself(models, window, monkeypatch) -> None:
    other = HubServer()
    other.add("acme/hen-GGUF", {"hen-Q8_0.gguf": EMBER_DRAFT.read_bytes()})
    monkeypatch.setenv("HF_ENDPOINT", other.address)
    assert "is there and verified" in models("pull", "acme/hen-GGUF")[1]
    assert window.downloads == ()
    other.stop()


def test_a_terminal_does_not_wait_for_other_downloads(models, window, hub_server: HubServer) -> None:
    hub_server.add("acme/hen-GGUF", {"hen-Q8_0.gguf": EMBER_DRAFT.read_bytes()})
    hub_server.fault("fox-Q8_0.gguf", SLOW)
    window.get(ask.StartDownload(REPO, "Q8_0"))
    assert "is there and verified" in models("pull", "acme/hen-GGUF")[1]
    window.wait_for(lambda: phases(window) == ["downloading"])
