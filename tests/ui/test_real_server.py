"""The window with the real server and the bundled model: everything for real."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.server_process import new_api_key, serve_command, serve_environment, serve_folder
from ui.api import Api
from ui.chat.records import Status
from ui.main_window import MainWindow
from ui.private_server import PrivateServer
from ui.server_link import ServerLink


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path))
    key = new_api_key()
    server = PrivateServer(serve_command(["--parallel", "2"]), serve_environment(key), str(serve_folder()))
    server.key = key  # type: ignore[attr-defined]
    yield server
    server.stop()
    assert server.process_id == 0


def test_a_newcomer_asks_and_ember_answers(qtbot, window: MainWindow, api: Api, server: PrivateServer) -> None:
    link = ServerLink(server, server.key, api, window.watch, window.page.server_banner)  # type: ignore[attr-defined]
    link.start()
    # Sent before the server is there: it waits.
    window.desk.send("Tell me a story about a fox.")
    ends: list[object] = []
    window.desk.ended.connect(ends.append)
    qtbot.waitUntil(lambda: ends != [], timeout=60_000)
    reply = window.desk.current.tree.path[-1]
    assert (reply.status, reply.problem) == (Status.DONE, None)
    assert "fox" in reply.content
    assert reply.timings is not None
    assert reply.timings.decode_tokens > 5
    qtbot.waitUntil(lambda: not window.page.picker.badge.isHidden(), timeout=10_000)
    assert window.page.picker.shown_model == "ember-q8_0"
    _stops_in_the_middle(qtbot, window)
    _survives_the_death_of_the_server(qtbot, window, server)


def _stops_in_the_middle(qtbot, window: MainWindow) -> None:
    window.desk.send("Count from one to a hundred.")
    qtbot.waitUntil(lambda: window.desk.current.live_ttft is not None, timeout=30_000)
    window.desk.stop()
    assert window.desk.current.tree.path[-1].status in (Status.STOPPED, Status.DONE)


def _survives_the_death_of_the_server(qtbot, window: MainWindow, server: PrivateServer) -> None:
    os.kill(server.process_id, 9)
    qtbot.waitUntil(lambda: "starting again" in window.page.server_banner.text, timeout=10_000)
    window.desk.send("Who are you?")
    qtbot.waitUntil(lambda: not window.desk.current.is_running, timeout=60_000)
    reply = window.desk.current.tree.path[-1]
    assert (reply.status, reply.problem) == (Status.DONE, None)
    assert window.page.server_banner.text == ""
