"""The window's own server as a process: started, lost, started again, ended."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.chat_window import pid_of
from tools.stand_ins.fake_openai import FakeServer
from ui.client.api import Api
from ui.client.private_server import PrivateServer, last_line
from ui.client.server_watch import CALM_MS, ServerWatch
from ui.widgets.banner import Banner
from ui.window.server_link import ServerLink

FAKE = Path(__file__).resolve().parents[2] / "tools" / "stand_ins" / "fake_openai.py"
KEY = "a key"
WORKS = "import sys; print('SLIPSTREAM READY http://127.0.0.1:1', flush=True); sys.stdin.read()"


@pytest.fixture
def run(qtbot):
    made: list[PrivateServer] = []

    def run_server(**environment: str) -> PrivateServer:
        variables = {**os.environ, "SLIPSTREAM_API_KEY": KEY, **environment}
        made.append(PrivateServer([sys.executable, str(FAKE)], variables, str(FAKE.parent), back_off_ms=(10, 10)))
        return made[-1]

    yield run_server
    for server in made:
        server.stop()


def test_it_tells_its_address_and_ends_with_its_stdin(qtbot, run) -> None:
    server = run()
    with qtbot.waitSignal(server.ready) as ready:
        server.start()
    assert ready.args[0].startswith("http://127.0.0.1:")
    server.stop()
    assert pid_of(server) == 0


def test_it_is_started_again_when_it_dies(qtbot, run) -> None:
    server = run()
    with qtbot.waitSignal(server.ready):
        server.start()
    with qtbot.waitSignals([server.lost, server.ready]):
        os.kill(pid_of(server), 9)
    assert pid_of(server) != 0


def test_it_is_started_anew_with_another_command_line(qtbot, run) -> None:
    server = run(FAKE_DIES="The library is missing.")
    with qtbot.waitSignal(server.gave_up):
        server.start()
    with qtbot.waitSignal(server.ready):
        server.restart([sys.executable, "-c", WORKS])
    first = pid_of(server)
    with qtbot.waitSignal(server.ready), qtbot.assertNotEmitted(server.lost):
        server.restart([sys.executable, "-c", WORKS])
    assert pid_of(server) != first


def test_it_gives_up_with_the_last_words_and_can_be_asked_again(qtbot, run) -> None:
    server = run(FAKE_DIES="The library is missing.")
    for _ in range(2):
        with qtbot.waitSignal(server.gave_up) as gave_up:
            server.start()
        assert "The library is missing." in gave_up.args[0]
    assert (last_line("first\nthe reason\n\n"), last_line(" \n")) == ("the reason", "it ended without a word")
    server = PrivateServer(["/no/such/program"], {}, "/", back_off_ms=())
    with qtbot.waitSignal(server.gave_up) as gave_up:
        server.start()
    assert gave_up.args[0]


def test_the_link_connects_waits_and_says_what_is_wrong(qtbot, run, lonely_api: Api) -> None:
    server, api, banner = run(), lonely_api, Banner()
    qtbot.addWidget(banner)
    watch = ServerWatch(api)
    link = ServerLink(server, KEY, api, watch, banner)
    link.start()
    qtbot.waitUntil(lambda: watch.state.phase == "ready")
    with qtbot.waitSignal(server.lost):
        os.kill(pid_of(server), 9)
    assert "starting again" in banner.text
    assert not api.is_connected
    qtbot.waitUntil(lambda: watch.state.phase == "ready" and not banner.text)
    watch.stop()


def test_the_link_offers_to_try_again_when_there_is_no_hope(qtbot, run, lonely_api: Api) -> None:
    server, api, banner = run(FAKE_DIES="No llama."), lonely_api, Banner()
    qtbot.addWidget(banner)
    watch = ServerWatch(api)
    link = ServerLink(server, KEY, api, watch, banner)
    link.start()
    qtbot.waitUntil(lambda: "No llama." in banner.text)
    assert watch.state.phase == "gone"
    assert banner.action.text() == "Try again"
    banner.action.click()
    assert banner.text == ""
    qtbot.waitUntil(lambda: "No llama." in banner.text)


def test_what_was_chosen_for_the_engine_is_named_where_the_server_does_not_start_with_it(
    qtbot, run, lonely_api: Api
) -> None:
    server, api, banner = run(FAKE_DIES="No llama."), lonely_api, Banner()
    qtbot.addWidget(banner)
    link = ServerLink(server, KEY, api, ServerWatch(api), banner, is_recommended=False)
    link.start()
    qtbot.waitUntil(lambda: "No llama.” It may be what you chose for the engine" in banner.text)
    assert "you chose" not in str(api.no_hope), "a chat keeps that"
    with qtbot.waitSignal(link.recommended_wanted):
        banner.action.click()


def test_the_watch_asks_again_after_a_missed_answer(qtbot, server: FakeServer, lonely_api: Api, monkeypatch) -> None:
    api = lonely_api
    api.connect_to("http://127.0.0.1:1", None)
    watch = ServerWatch(api)
    missed: list[str] = []
    ask = api.state
    monkeypatch.setattr(api, "state", lambda told, failed: ask(told, lambda why: (failed(why), missed.append(why))))
    watch.start()
    qtbot.waitUntil(lambda: missed != [])
    api.connect_to(server.url, None)
    qtbot.waitUntil(lambda: watch.state.phase == "ready")
    watch.stop()


def test_an_older_answer_does_not_take_the_place_of_the_latest_list_of_models(lonely_api: Api, monkeypatch) -> None:
    answers: list[Callable[[list[dict[str, str]]], None]] = []
    monkeypatch.setattr(lonely_api, "models", lambda done, failed: answers.append(done))
    watch = ServerWatch(lonely_api)
    for _ in range(2):
        watch.look_at_models()
    for done, name in zip(reversed(answers), ("new", "old"), strict=True):
        done([{"id": name}])
    assert [model.name for model in watch.models] == ["new"]


@pytest.mark.parametrize("is_asking", [False, True])
def test_the_watch_asks_once_more_when_replies_have_ended(
    qtbot, server: FakeServer, lonely_api: Api, is_asking: bool
) -> None:
    lonely_api.connect_to(server.url, None)
    watch = ServerWatch(lonely_api)
    watch.start()
    qtbot.waitUntil(lambda: watch.state.phase == "ready")
    with qtbot.waitSignal(watch.looked):
        watch.set_live(True)
    if is_asking:
        watch.look()
    with qtbot.waitSignals([watch.looked] * (1 + is_asking), timeout=CALM_MS - 1000):
        watch.set_live(False)
    watch.stop()
