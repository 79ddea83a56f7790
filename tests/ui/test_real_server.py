"""The window with the real server and the bundled model: everything for real."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from PySide6.QtCore import Qt

from app.client.server_process import new_api_key, serve_command, serve_environment
from app.library.find_model import catalog, last_chosen
from app.settings.model_settings_store import model_usage
from models.formatting.figures import rate
from models.formatting.program import PROGRAM_FOLDER
from tests.support import measured
from tests.support.chat_window import ask, ended, pid_of
from tests.support.fork_server import forked
from tools.model_factory.gguf_factory import EMBER, EMBER_DRAFT
from ui.chat.messages.assistant_message import AssistantMessage
from ui.chat.messages.receipts import CONTEXT_FULL
from ui.chat.race import RaceDialog
from ui.client.api import Api
from ui.client.chat_records import Status, Timings
from ui.client.private_server import PrivateServer
from ui.client.speeds import Speed
from ui.gauges.speed_bar import LAST_REPLY
from ui.window.main_window import MainWindow
from ui.window.server_link import ServerLink


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest):
    """The app's server; a parameter is more of its options."""
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path))
    measured.give(tmp_path / "cache")
    key = new_api_key()
    more = getattr(request, "param", [])
    command = serve_command(["--parallel", "2", *more])
    server = PrivateServer(forked(command), serve_environment(key), str(PROGRAM_FOLDER))
    server.key = key
    yield server
    server.stop()
    assert pid_of(server) == 0


def test_a_newcomer_asks_and_ember_answers(qtbot, window: MainWindow, api: Api, server: PrivateServer) -> None:
    link = ServerLink(server, server.key, api, window.watch, window.page.server_banner)
    link.start()
    # Sent before the server is there: it waits.
    window.desk.current.send("Tell me a story about a fox.")
    running = window.desk.current.running
    ends: list[object] = []
    window.desk.active.ended.connect(ends.append)
    qtbot.waitUntil(lambda: ends != [])
    reply = window.desk.current.tree.path[-1]
    assert (reply.status, reply.problem) == (Status.DONE, None)
    assert "fox" in reply.content
    assert reply.timings is not None
    assert reply.timings.decode_tokens > 5
    assert running.ttft == pytest.approx(reply.timings.ttft_ms / 1_000), "what was shown while it came"
    qtbot.waitUntil(lambda: not window.page.picker.badge.isHidden())
    _gauges_hold_the_reply(qtbot, window, reply.timings)
    assert window.page.picker.shown_model == "ember-q8_0"
    _is_unloaded_until_it_is_asked_again(qtbot, window)
    _goes_on_after_a_message_that_is_too_long(qtbot, window)
    _stops_in_the_middle(qtbot, window)
    _survives_the_death_of_the_server(qtbot, window, server)


def _gauges_hold_the_reply(qtbot, window: MainWindow, timings: Timings) -> None:
    bar = window.speed_bar
    qtbot.waitUntil(lambda: bar.when.text() == LAST_REPLY)
    # The engine's snapshot and the reply's timings round on their own.
    near = {f"{rate(timings.decode_per_second + off)} tok/s" for off in (-0.5, 0.0, 0.5)}
    assert bar.speed.accessibleDescription() in near
    assert bar.requests.face.value == "0"


def _is_unloaded_until_it_is_asked_again(qtbot, window: MainWindow) -> None:
    picker = window.page.picker
    picker.fill_menu()
    deeds = {action.text(): action for action in picker.menu.actions()}
    deeds["Unload this model"].trigger()
    qtbot.waitUntil(lambda: window.watch.state.phase == "empty")
    picker.fill_menu()
    assert "Unload this model" not in [action.text() for action in picker.menu.actions()]
    assert ask(qtbot, window, "Who are you?").status is Status.DONE


def _goes_on_after_a_message_that_is_too_long(qtbot, window: MainWindow) -> None:
    reply = ask(qtbot, window, "word " * 4_000)
    assert (reply.status, reply.finish_reason) == (Status.FAILED, CONTEXT_FULL)
    reply = ask(qtbot, window, "Who are you?")
    assert (reply.status, reply.problem) == (Status.DONE, None)


def _stops_in_the_middle(qtbot, window: MainWindow) -> None:
    with qtbot.waitSignal(window.desk.current.grew):
        window.desk.current.send("Count from one to a hundred.")
    window.desk.current.stop()
    reply = window.desk.current.tree.path[-1]
    assert reply.status in (Status.STOPPED, Status.DONE)
    assert reply.timings is not None
    assert reply.timings.decode_tokens > 0


def _survives_the_death_of_the_server(qtbot, window: MainWindow, server: PrivateServer) -> None:
    # With the first words, before what else has arrived meanwhile is looked at.
    window.desk.current.grew.connect(lambda *_: os.kill(pid_of(server), 9), Qt.ConnectionType.SingleShotConnection)
    cut = ask(qtbot, window, "Tell me a long story about a fox.")
    assert cut.status is Status.FAILED
    assert cut.content
    assert cut.problem
    view = window.page.transcript.view_of(cut.id)
    assert isinstance(view, AssistantMessage)
    assert cut.content[:10] in view.view.toPlainText()
    view.redo.click()
    assert ended(qtbot, window).status is Status.DONE
    os.kill(pid_of(server), 9)
    qtbot.waitUntil(lambda: "starting again" in window.page.server_banner.text)
    reply = ask(qtbot, window, "Who are you?")
    assert (reply.status, reply.problem) == (Status.DONE, None)
    assert window.page.server_banner.text == ""


@pytest.fixture
def paired_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path))
    # Whatever else runs here, a first deep reply is worth its drafts: rows are measured as cheap.
    measured.give(tmp_path / "cache", rows_are_cheap=True)
    key = new_api_key()
    options = ["--parallel", "4", "--draft", "ember-draft-q8_0"]
    server = PrivateServer(forked(serve_command(options)), serve_environment(key), str(PROGRAM_FOLDER))
    server.key = key
    yield server
    server.stop()


def test_deep_shows_its_stages_and_spark_is_marked_and_redone(
    qtbot, window: MainWindow, api: Api, paired_server: PrivateServer
) -> None:
    ServerLink(paired_server, paired_server.key, api, window.watch, window.page.server_banner, window).start()
    qtbot.waitUntil(lambda: window.watch.state.phase == "ready")
    assert window.watch.state.spark == "ember-draft-q8_0"
    window.page.composer.speed.chosen.emit(Speed.DEEP)
    stages: list[str] = []
    window.desk.current.send("What is a fox?")
    stream = window.desk.current.running.stream
    stream.progressed.connect(lambda progress: stages.append(progress.stage))
    reply = ended(qtbot, window)
    assert (reply.status, reply.problem) == (Status.DONE, None)
    assert list(dict.fromkeys(stages)) == ["drafting", "distilling", "refining"]
    assert [stage.stage for stage in reply.timings.deep.stages] == ["drafting", "distilling", "refining"]
    window.page.composer.speed.chosen.emit(Speed.SPARK)
    reply = ask(qtbot, window, "Tell me a story about a fox.")
    assert (reply.status, reply.answered_by) == (Status.DONE, "ember-draft-q8_0")
    view = window.page.transcript.view_of(reply.id)
    view.spark_note.button.click()
    redone = ended(qtbot, window)
    assert (redone.status, redone.answered_by, redone.parent_id) == (Status.DONE, None, reply.parent_id)


def _begins_with() -> str:
    found = last_chosen(catalog())
    return "" if found is None else found.name


def test_two_chats_and_two_racers_write_at_once(qtbot, window: MainWindow, api: Api, server: PrivateServer) -> None:
    window.resize(1400, 800)
    link = ServerLink(server, server.key, api, window.watch, window.page.server_banner)
    link.start()
    left = window.page
    window.chats.open_beside(None)
    right = window.page
    right.choose_model("ember-draft-q8_0")
    for page in (left, right):
        page.pane.current.send("Tell me a story about a fox.")
    qtbot.waitUntil(lambda: not window.desk.running)
    replies = [page.pane.current.tree.path[-1] for page in (left, right)]
    assert [(reply.status, reply.problem) for reply in replies] == [(Status.DONE, None)] * 2
    assert all(reply.content for reply in replies)
    assert replies[0].content != replies[1].content
    window.chats.open_race("Tell me a long story about a fox and a moon.")
    race = window.findChild(RaceDialog)
    assert race is not None
    race.order.setCurrentIndex(1)
    assert [lane.racer.model for lane in race.lanes] == ["ember-q8_0", "ember-draft-q8_0"]
    race.start.click()
    qtbot.waitUntil(race.save.isEnabled)
    assert all(lane.speed > 0 for lane in race.lanes)
    assert "They wrote together for" in race.note.text()


@pytest.mark.parametrize("server", [["--models-max", "1"]], indirect=True)
@pytest.mark.parametrize("order", [0, 1], ids=["in turns", "at once"])
def test_two_models_of_which_one_can_be_loaded_race_one_after_the_other(
    qtbot, window: MainWindow, api: Api, server: PrivateServer, order: int
) -> None:
    link = ServerLink(server, server.key, api, window.watch, window.page.server_banner)
    link.start()
    qtbot.waitUntil(lambda: window.watch.state.phase == "ready" and bool(window.watch.models))
    window.chats.open_race("Tell me a long story about a fox and a moon.")
    race = window.findChild(RaceDialog)
    assert race is not None
    race.order.setCurrentIndex(order)
    race.lanes[1].choose_other_than("ember-q8_0")
    race.start.click()
    qtbot.waitUntil(race.save.isEnabled)
    assert all(lane.speed > 0 for lane in race.lanes)
    assert ("Only one of these models" in race.note.text()) is (order == 1)
    assert race.problem.isHidden()


def test_the_next_start_begins_with_the_model_that_was_chosen_here(
    qtbot, window: MainWindow, api: Api, server: PrivateServer
) -> None:
    window.resize(1400, 800)
    link = ServerLink(server, server.key, api, window.watch, window.page.server_banner)
    link.start()
    qtbot.waitUntil(lambda: window.watch.state.phase == "ready" and bool(window.watch.models))
    first = window.page
    for name in ("ember-draft-q8_0", "ember-q8_0"):
        first.choose_model(name)
        ask(qtbot, window, "Tell me a story about a fox.")
        if name == "ember-draft-q8_0":
            older = window.desk.current.chat.id
            window.desk.new_chat()
    qtbot.waitUntil(lambda: _begins_with() == "ember-q8_0")
    freed: list[object] = []  # to be loaded again is a use that is noted at once
    api.ask("POST", "/slipstream/unload", {"model": "ember-draft-q8_0"}, freed.append, pytest.fail)
    qtbot.waitUntil(lambda: bool(freed))
    window.chats.open_beside(None)
    window.page.choose_model("ember-draft-q8_0")
    ask(qtbot, window, "Tell me a story about a fox.")
    window.chats.open_race("Tell me a story about a fox.")
    race = window.findChild(RaceDialog)
    assert race is not None
    race.lanes[1].choose_other_than("ember-q8_0")
    race.start.click()
    qtbot.waitUntil(race.save.isEnabled)
    race.accept()
    assert model_usage().all().of(EMBER_DRAFT) > model_usage().all().choice_of(EMBER)
    assert _begins_with() == "ember-q8_0"
    window.desk.activate(first.pane)
    window.desk.open(older)
    qtbot.waitUntil(lambda: window.desk.current.chat.id == older)
    ask(qtbot, window, "Go on.")
    qtbot.waitUntil(lambda: _begins_with() == "ember-draft-q8_0")
