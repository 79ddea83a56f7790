"""The commands below ``models`` where a server runs: its library does what they ask, and its windows see it."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import keyring
import pytest

from app.cli.models import library
from app.client import discovery
from app.environment.exit_codes import ExitCode
from app.environment.paths import models_folder
from app.environment.standard_streams import PROGRESS_AS_JSON
from models.library import requests as ask
from models.library.values import Choosing, Download, PairStep, Quantising
from tests.support.commands import ran, started
from tests.support.file_keyring import FileKeyring
from tests.support.fork_server import forked_library_command
from tests.support.library_client import LibraryClient
from tests.support.quantised import ember_f16
from tests.support.waiting import until
from tools.model_factory.gguf_factory import EMBER, EMBER_DRAFT, Recipe, cached
from tools.stand_ins.hub_server import TOKEN, Fault, HubServer
from tools.stand_ins.library_server import KEY, LibraryServer

REPO = "acme/fox-GGUF"
PULL = ("models", "pull", f"{REPO}:Q8_0")
SLOW = Fault(bytes_per_second=1e6)


@pytest.fixture
def window(hub_server: HubServer, home: Path, tmp_path: Path, monkeypatch) -> Iterator[LibraryClient]:
    """Another client of the library of a server that is listed as running."""
    hub_server.add(REPO, {"fox-Q8_0.gguf": EMBER.read_bytes()})
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf-home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "tests.support.file_keyring.FileKeyring")
    monkeypatch.setenv("KEYRING_FILE", str(tmp_path / "keys.json"))
    client = LibraryClient(LibraryServer(forked_library_command))
    discovery.enlist(host="127.0.0.1", port=urlsplit(client.server.url).port or 0, api_key=KEY, model=None)
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


@pytest.fixture
def at_the_server(window: LibraryClient, monkeypatch) -> LibraryClient:
    """The window, where a command that would do it in its own process fails."""
    monkeypatch.setattr(library, "own_library", lambda: pytest.fail("the server was not asked"))
    return window


def test_a_removed_model_is_gone_from_the_window(models, window, mine, tmp_path: Path) -> None:
    code, out, err = models("rm", str(mine), "--json")
    assert code == ExitCode.OK, err
    n_bytes = EMBER_DRAFT.stat().st_size
    assert json.loads(out) == {"name": "mine", "files": [str(mine)], "n_bytes": n_bytes, "is_in_trash": True}
    assert not mine.exists()
    assert [file.name for file in (tmp_path / "xdg" / "Trash" / "files").iterdir()] == [mine.name]
    window.wait_for(lambda: window.heard("models"))
    for name, expected, words in (
        ("ember-q8_0", ExitCode.USAGE, "part of Slipstream"),
        ("none", ExitCode.MODEL, "Models: ember-q8_0"),
    ):
        code, _, err = models("rm", name)
        assert (code, words in err) == (expected, True), "as of a command alone"


def test_an_imported_folder_is_in_the_window(models, window, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    shutil.copy(EMBER_DRAFT, folder / "own.gguf")
    assert "1 of 1 model can be used.\n  own" in models("import", str(folder))[1]
    window.wait_for(lambda: window.heard("models"))
    assert "own" in [row.name for row in window.get(ask.ListModels()).rows]
    assert "`./slipstream models import FOLDER --forget` does that." in models("rm", "own")[2]
    assert "no longer looked through" in models("import", str(folder), "--forget")[1]
    assert "own" not in [row.name for row in window.get(ask.ListModels()).rows]


def test_a_folder_whose_name_is_not_utf8_is_imported(window, tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"F\xfcchse")
    folder.mkdir()
    shutil.copy(EMBER_DRAFT, folder / os.fsdecode(b"F\xfc.gguf"))
    told = ran("models", "import", str(folder)).stdout
    assert told == f"{tmp_path}/F\ufffdchse: 1 of 1 model can be used.\n  F%FC\n"
    (row,) = [row for row in window.get(ask.ListModels()).rows if row.name == "F%FC"]
    assert os.fsencode(row.path) == os.fsencode(tmp_path) + b"/F\xfcchse/F\xfc.gguf"
    for words, field in (((), "folder"), (("--forget",), "forgotten")):
        told = json.loads(ran("models", "import", str(folder), *words, "--json").stdout)
        assert told[field] == str(folder)
    assert "F%FC" not in [row.name for row in window.get(ask.ListModels()).rows]


def test_a_server_without_a_key_deletes_nothing_for_good(models, hub_server, home, tmp_path, monkeypatch, mine) -> None:
    """Whoever else uses the machine could ask it for that; the command does it itself."""
    open_to_all = LibraryServer(forked_library_command, api_key=None)
    discovery.enlist(host="127.0.0.1", port=urlsplit(open_to_all.url).port or 0, api_key=None, model=None)
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


def test_a_login_is_the_servers_and_its_token_is_in_no_log(models, at_the_server, monkeypatch, caplog) -> None:
    caplog.set_level("DEBUG")
    before = keyring.get_keyring()
    keyring.set_keyring(FileKeyring())
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{TOKEN}\n"))
    code, out, err = models("login", "--json")
    assert (code, json.loads(out)["user"]) == (ExitCode.OK, "tester"), err
    assert at_the_server.get(ask.ShowHub()).token == "the system keyring"
    assert TOKEN not in f"{out}{err}{caplog.text}"
    assert "Logged out of" in models("logout")[1]
    assert at_the_server.get(ask.ShowHub()).token is None
    assert "There was no token" in models("logout")[1]
    keyring.set_keyring(before)


def test_how_the_hub_is_reached_is_changed_at_the_server(models, at_the_server) -> None:
    assert models("hub", "--proxy", "http://me:secret@proxy.example:8080")[0] == ExitCode.OK
    assert at_the_server.get(ask.ShowHub()).proxy == "http://***@proxy.example:8080"
    assert json.loads(models("hub", "--proxy", "", "--json")[1])["proxy"] is None
    code, _, err = models("hub", "--address", "nowhere")
    assert (code, "no web address" in err) == (ExitCode.USAGE, True)


def test_settings_and_drafts_are_changed_at_the_server(models, at_the_server, tmp_path: Path, monkeypatch) -> None:
    """Files are meant as seen from the terminal's folder, which is not the server's."""
    own = Path(shutil.copy(cached(Recipe(tensor_type="F16", source=EMBER_DRAFT)), tmp_path / "own.gguf"))
    monkeypatch.chdir(tmp_path)
    out = models("settings", "ember", "--set", "temperature=0.5", "--set", "draft=own.gguf", "--json")[1]
    assert json.loads(out)["settings"] == {"draft": str(own), "temperature": 0.5}
    sheet = at_the_server.get(ask.GetSettings("ember-q8_0"))
    assert {one.name: one.text for one in sheet.settings if one.text} == {"temperature": "0.5", "draft": str(own)}
    code, _, err = models("settings", "ember", "--set", "temperature=hot")
    assert (code, "must be a number" in err) == (ExitCode.USAGE, True)
    assert json.loads(models("settings", "ember", "--reset", "all", "--json")[1])["settings"] == {}
    for arguments, choosing, used in (
        (("--use", "own.gguf"), Choosing.NAMED, "own"),
        (("--none",), Choosing.NONE, None),
        (("--auto",), Choosing.AUTOMATIC, "ember-draft-q8_0"),
    ):
        assert models("pair", "ember-q8_0", *arguments)[0] == ExitCode.OK
        found = at_the_server.get(ask.ShowPartners("ember-q8_0"))
        assert (found.choosing, found.used) == (choosing, used)


def can_test_a_pair(window: LibraryClient) -> bool:
    with window.parts(ask.TestPair("ember-q8_0")) as parts:
        if not isinstance(next(parts), PairStep):
            return False
        window.get(ask.StopPairTest())
        return list(parts) != []


def test_ctrl_c_stops_the_test_of_a_pair_at_the_server(window) -> None:
    process = started("models", "pair", "ember-q8_0", "--test", env={**os.environ, PROGRESS_AS_JSON: "1"})
    assert process.stderr is not None
    assert "ember-draft-q8_0" in process.stderr.readline()
    assert not can_test_a_pair(window)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, "who drafts is as before" in err) == (ExitCode.INTERRUPTED, "", True), err
    until(lambda: can_test_a_pair(window))


def test_a_smaller_copy_is_made_at_the_server(models, at_the_server) -> None:
    models_folder().mkdir(parents=True)
    shutil.copy(ember_f16(), models_folder() / "fox-F16.gguf")
    code, out, err = models("quantize", "fox-F16", "q4_0", "--threads", "1", "--json")
    assert code == ExitCode.OK, err
    at_the_server.wait_for(lambda: phases_of(at_the_server.quantisings) == ["done"])
    made = at_the_server.quantisings[0].done
    told = json.loads(out)
    assert (told["name"], told["type"], told["source"]) == ("fox-Q4_0", "Q4_0", "fox-F16")
    assert told["path"] == str(models_folder() / "quantised" / "fox-Q4_0.gguf")
    assert (told["n_bytes"], told["n_fallback"]) == (made.path.stat().st_size, made.n_fallback)
    code, _, err = models("quantize", "ember-q8_0", "Q4_0")
    assert (code, "The option for that is --allow-requantize." in err) == (ExitCode.USAGE, True), err


@pytest.mark.parametrize("stops", ["the terminal", "the window"])
def test_a_smaller_copy_that_is_stopped_leaves_nothing(window, stops: str) -> None:
    process = started("models", "quantize", str(cached(Recipe(n_layers=48, tensor_type="F16"))), "Q4_K_M")
    window.wait_for(lambda: window.quantisings and window.quantisings[0].progress.n_done > 0)
    if stops == "the terminal":
        process.send_signal(signal.SIGINT)
    else:
        window.get(ask.CancelQuantise(window.quantisings[0].number))
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, "Nothing of it is left" in err) == (ExitCode.INTERRUPTED, "", True), err
    window.wait_for(lambda: window.quantisings == ())
    assert list(models_folder().rglob("*.gguf")) == []


def phases(window: LibraryClient) -> list[str]:
    return phases_of(window.downloads)


def phases_of(works: Iterable[Download | Quantising]) -> list[str]:
    return [work.phase for work in works]


def pulling(window: LibraryClient) -> subprocess.Popen[str]:
    """A download that was begun in a terminal and has arrived in part."""
    process = started(*PULL)
    window.wait_for(lambda: window.downloads and window.downloads[0].progress.n_done > 0)
    return process


def test_a_download_of_the_terminal_is_in_the_window(models, window) -> None:
    code, out, err = models("pull", f"{REPO}:Q8_0", "--json")
    assert code == ExitCode.OK, err
    file = models_folder() / REPO / "fox-Q8_0.gguf"
    told = {"name": "fox-Q8_0", "repo_id": REPO, "commit": "0" * 40, "n_bytes": EMBER.stat().st_size}
    assert json.loads(out) == told | {"files": [str(file)], "was_there": False}
    assert file.read_bytes() == EMBER.read_bytes()
    window.wait_for(lambda: phases(window) == ["done"])
    window.wait_for(lambda: window.heard("models"))
    assert "is there already" in models("pull", f"{REPO}:Q8_0")[1]


@pytest.mark.parametrize("end", ["Ctrl-C", "kill", "the window", "the library dies"])
def test_a_download_of_the_terminal_ends_in_order_whoever_ends_it(window, hub_server: HubServer, end: str) -> None:
    hub_server.fault("fox-Q8_0.gguf", SLOW)
    process = pulling(window)
    if end == "Ctrl-C":
        process.send_signal(signal.SIGINT)
    elif end == "kill":
        process.kill()
    elif end == "the window":
        window.get(ask.CancelDownload(window.downloads[0].number))
    else:
        window.server.process.kill()
        hub_server.heal()
    out, err = process.communicate(timeout=60)
    if end == "the window":
        assert (process.returncode, "stopped in the window" in err) == (ExitCode.INTERRUPTED, True), err
    elif end == "the library dies":
        # Whoever has the file's lock goes on where it was; the other waits, and finds it there.
        assert (process.returncode, "is there" in out) == (ExitCode.OK, True), err
    else:
        if end == "Ctrl-C":
            assert (process.returncode, out) == (ExitCode.INTERRUPTED, ""), err
            assert "The same command goes on from there." in err
            window.wait_for(lambda: phases(window) == ["paused"])
        hub_server.heal()
        assert end == "kill" or "is there and verified" in ran(*PULL).stdout
        window.wait_for(lambda: phases(window) == ["done"])


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
    assert (code, "in 33 s," in err) == (ExitCode.ERROR, True)


def test_a_terminal_waits_for_no_other_download_and_uses_its_own_hub(models, window, hub_server, monkeypatch) -> None:
    hub_server.add("acme/hen-GGUF", {"hen-Q8_0.gguf": EMBER_DRAFT.read_bytes()})
    hub_server.fault("fox-Q8_0.gguf", SLOW)
    window.get(ask.StartDownload(REPO, "Q8_0"))
    assert "is there and verified" in models("pull", "acme/hen-GGUF")[1]
    window.wait_for(lambda: phases(window) == ["downloading"])
    other = HubServer()
    other.add("acme/owl-GGUF", {"owl-Q8_0.gguf": EMBER_DRAFT.read_bytes()})
    monkeypatch.setenv("HF_ENDPOINT", other.address)
    assert "is there and verified" in models("pull", "acme/owl-GGUF")[1]
    assert phases(window) == ["downloading"], "the server knows nothing of it"
    other.stop()
