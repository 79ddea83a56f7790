"""The commands below ``models`` where a server runs: its library does what they ask, and its windows see it."""

from __future__ import annotations

import json
import shutil
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
from tools.model_factory.gguf_factory import EMBER_DRAFT
from tools.stand_ins.hub_server import HubServer
from tools.stand_ins.library_server import KEY, LibraryServer


@pytest.fixture
def models(home: Path, capsys: pytest.CaptureFixture[str]):
    def run(*arguments: str) -> tuple[int, str, str]:
        code = cli.main(["models", *arguments])
        return int(code), *capsys.readouterr()

    return run


@pytest.fixture
def window(hub_server: HubServer, home: Path, tmp_path: Path, monkeypatch) -> Iterator[LibraryClient]:
    """Another client of the library of a server that is listed as running."""
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
