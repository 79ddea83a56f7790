"""The routes of the library over a real socket, with the library's process, a hub and folders of its own."""

from __future__ import annotations

import shutil
import sys
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.environment.paths import models_folder
from models.catalog.catalog import STARTER_FOLDER
from models.library import requests as ask
from models.library.requests import EVENTS, PREFIX, ROUTES
from tests.app.server.conftest import RunningServer
from tests.support.fork_server import forked_library_command
from tests.support.library_client import LibraryClient
from tests.support.waiting import until
from tools.stand_ins.hub_server import Fault, HubServer
from tools.stand_ins.library_server import LibraryServer

EMBER = (STARTER_FOLDER / "ember-draft-q8_0.gguf").read_bytes()
REPO = "acme/fox-GGUF"


@pytest.fixture
def library(hub_server: HubServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf-home"))
    hub_server.add(REPO, {"fox-Q8_0.gguf": EMBER})
    client = LibraryClient(LibraryServer(forked_library_command))
    yield client
    client.close()


@pytest.fixture
def http(library: LibraryClient) -> httpx.Client:
    return library.http


WRONG: tuple[tuple[str, str, dict[str, Any], int, str | None, str], ...] = (
    ("GET", "models/one", {"params": {"name": "none"}}, 404, "missing", "no model called 'none'"),
    ("GET", "models/one", {}, 400, "missing_required_parameter", "Missing required field: name."),
    ("GET", "models/one", {"params": {"name": "a", "x": "b"}}, 400, "unknown_parameter", "field x is not known"),
    ("POST", "downloads/pause", {"json": {"number": "one"}}, 400, "invalid_value", "number must be"),
    ("POST", "downloads/pause", {"json": {"number": True}}, 400, "invalid_value", "number must be"),
    ("POST", "downloads/pause", {"json": {"number": 7}}, 404, "missing", "no download 7"),
    ("POST", "quantisings/cancel", {"json": {"number": 7}}, 404, "missing", "no copy 7"),
    ("POST", "models/settings", {"json": {"name": "a", "changes": [{}]}}, 400, None, "changes[0].name"),
    ("POST", "downloads", {"json": []}, 400, "invalid_value", "must be an object"),
    ("POST", "downloads", {"content": b"{"}, 400, "invalid_json", "not valid JSON"),
    ("POST", "downloads", {"content": b"x", "headers": {"content-type": "text/plain"}}, 415, None, "as JSON"),
    ("GET", "downloads/pause", {}, 405, "method_not_allowed", "but POST"),
    ("GET", "nowhere", {}, 404, "not_found", "GET /docs lists what there is"),
    ("GET", "hub/repository", {"params": {"repo_id": "acme/none"}}, 404, "missing", "no repository acme/none"),
    ("GET", "hub/repository", {"params": {"repo_id": "../etc"}}, 400, "setting", "no name of a repository"),
    ("POST", "hub/log-in", {"json": {"token": "hf_bad"}}, 403, "access", "does not accept"),
    ("POST", "hub/log-in", {"json": {"token": "two words"}}, 400, "refused", "no access token"),
    ("POST", "hub", {"json": {"address": "no address", "proxy": ""}}, 400, "setting", "no web address"),
    ("POST", "models/remove", {"json": {"name": "ember-q8_0"}}, 400, "refused", "part of Slipstream"),
)


def test_what_is_wrong_is_told_with_its_status(http: httpx.Client) -> None:
    for method, path, given, status, code, words in WRONG:
        headers = {"content-type": "application/json"} | given.get("headers", {})
        answer = http.request(method, PREFIX + path, **given | {"headers": headers})
        assert answer.status_code == status, (path, given, answer.text)
        error = answer.json()["error"]
        assert words in error["message"]
        assert code is None or error["code"] == code
        assert words != "no repository acme/none" or error["remedies"] == ["search", "log_in"]
        assert "./slipstream" not in error["message"]
        assert error["type"] == "invalid_request_error"


def test_without_a_network_it_is_a_503_and_the_rest_works(library: LibraryClient, hub_server: HubServer) -> None:
    hub_server.stop()
    answer = library.http.get(f"{PREFIX}hub/search", params={"words": "fox"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "offline")
    assert len(library.get(ask.ListCurated()).rows) > 20


def test_each_route_asks_for_the_key(http: httpx.Client) -> None:
    with httpx.Client(base_url=http.base_url, trust_env=False) as stranger:
        for method, path in [*((route.method, route.path) for route in ROUTES), ("GET", EVENTS)]:
            answer = stranger.request(method, path)
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key")


def test_who_waits_for_an_answer_of_a_killed_library_is_told(library: LibraryClient, hub_server: HubServer) -> None:
    hub_server.fault("/api/models", Fault(stall_after=0))
    library.wait_for(lambda: library.heard("downloads"))
    answers: list[httpx.Response] = []
    asking = threading.Thread(
        target=lambda: answers.append(library.http.get(f"{PREFIX}hub/search", params={"words": "fox"}))
    )
    asking.start()
    while not any("/api/models" in asked.path for asked in hub_server.asked):
        assert asking.is_alive(), answers
    library.server.process.kill()
    asking.join()
    assert (answers[0].status_code, answers[0].json()["error"]["code"]) == (503, "library_stopped")
    assert answers[0].headers["x-should-retry"] == "true"


def test_a_library_that_cannot_start_says_why(home: Path, tmp_path: Path) -> None:
    client = LibraryClient(LibraryServer(lambda: [str(tmp_path / "none")]))
    answer = client.http.get(f"{PREFIX}models")
    assert answer.status_code == 503
    assert "The library cannot start: " in answer.json()["error"]["message"]
    client.close()


def test_a_library_that_dies_in_the_middle_of_a_line_is_started_again(home: Path) -> None:
    dying = [[sys.executable, "-c", "print('{' * 1_000_000, end='')"]]
    client = LibraryClient(LibraryServer(lambda: dying.pop() if dying else forked_library_command()))
    until(lambda: client.http.get(f"{PREFIX}models").status_code == 200)
    assert not dying
    client.close()


def test_nothing_is_left_of_it_when_the_server_leaves_in_the_middle_of_a_download(
    library: LibraryClient, hub_server: HubServer
) -> None:
    hub_server.fault("fox-Q8_0.gguf", Fault(stall_after=50_000))
    library.get(ask.StartDownload(REPO, "Q8_0"))
    library.wait_for(lambda: library.downloads and library.downloads[0].progress.n_done > 0)
    process = library.server.process
    library.server.close()
    assert not process.is_running()


def test_without_a_key_nobody_changes_how_the_hub_is_reached(hub_server: HubServer, tmp_path: Path) -> None:
    open_to_all = LibraryServer(api_key=None, SLIPSTREAM_HOME=str(tmp_path / "home"), HF_HOME=str(tmp_path / "hf"))
    with httpx.Client(base_url=open_to_all.url) as http:
        for path, fields in (("hub", {"address": "http://evil.example", "proxy": ""}), ("hub/log-in", {"token": "x"})):
            refused = http.post(f"{PREFIX}{path}", json=fields)
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "api_key_needed")
        assert http.get(f"{PREFIX}hub").json()["address"] == hub_server.address
    open_to_all.close()


def test_models_that_are_moved_are_unloaded_and_found_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path / "home"))
    models_folder().mkdir(parents=True)
    shutil.copy(STARTER_FOLDER / "ember-draft-q8_0.gguf", models_folder() / "mine.gguf")
    options = ("--parallel", "1", "--no-draft", "--no-calibration", "--model", "mine")
    with RunningServer(*options) as first:
        assert first.state["model"] == "mine"
        moved = first.http.post("/slipstream/library/models/move", json={"folder": str(tmp_path / "disk")})
        assert (moved.status_code, moved.json()["is_over"], moved.json()["n_left"]) == (200, True, 0)
        first.wait_until(lambda state: state["phase"] == "empty")
    assert (tmp_path / "disk" / "mine.gguf").exists()
    assert not (tmp_path / "home" / "data" / "models").exists()
    with RunningServer(*options) as again:
        assert again.state["model"] == "mine"
        assert again.chat().choices[0].message.content


def test_a_model_that_is_removed_while_it_answers_leaves_memory_before_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "trash"))
    models_folder().mkdir(parents=True)
    file = models_folder() / "mine.gguf"
    shutil.copy(STARTER_FOLDER / "ember-draft-q8_0.gguf", file)
    asked = {"messages": [{"role": "user", "content": "Tell me a story."}], "max_tokens": 300, "ignore_eos": True}
    removed: list[httpx.Response] = []
    with RunningServer("--parallel", "1", "--no-draft", "--no-calibration", "--model", "mine") as server:
        with server.http.stream("POST", "/v1/chat/completions", json=asked | {"stream": True}) as stream:
            lines = stream.iter_lines()
            next(lines)

            def remove() -> None:
                removed.append(server.http.post(f"{PREFIX}models/remove", json={"name": "mine"}))

            removing = threading.Thread(target=remove)
            removing.start()
            rest = list(lines)
        assert rest[-2] == "data: [DONE]", "the reply that was under way is whole"
        removing.join(60)
        assert removed[0].status_code == 200
        assert not file.exists()
        assert server.engines == []
        assert (server.state["phase"], server.state["model"]) == ("empty", None)
        nobody = server.http.post("/v1/chat/completions", json=asked)
        assert (nobody.status_code, "name one" in nobody.json()["error"]["message"]) == (503, True)
        assert server.chat(model="ember-q8_0").choices[0].message.content
