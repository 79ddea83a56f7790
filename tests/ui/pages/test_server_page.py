"""The server page in the window, with the real server: what is switched, copied, made and ended there."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import tomllib
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from typing import Any

import httpx
import pytest
import yaml
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QSystemTrayIcon

from app.client.server_process import ServerProcess
from app.environment.paths import config_folder
from tests.support.lending import TOKEN, TestWorker
from tests.ui.pages.conftest import agree, free_port
from tools.stand_ins.fake_openai import FakeServer
from ui.client.api import Api
from ui.server.connect_view import ConnectView
from ui.server.endpoint import Endpoint
from ui.server.server_page import ServerPage
from ui.server.snippets import Address, Snippet, snippets
from ui.theme.text_size import PERCENTS
from ui.window.main_window import MainWindow

TO = Address("http://127.0.0.1:8642", 'slip-"key"', "ember-q8_0", 1_024)


def body_for_powershell(text: str) -> dict:
    """Return the body between its quotes, in which one of these is doubled."""
    found = re.search(r"-Body '(.*)'\)", text)
    assert found is not None
    return {"text": text} | json.loads(found[1].replace("''", "'"))


READERS = {
    "curl": shlex.split,
    "PowerShell": body_for_powershell,
    "Continue": yaml.safe_load,
    "aider": yaml.safe_load,
    "codex": tomllib.loads,
    **dict.fromkeys(("Python: openai", "Python: anthropic"), lambda text: compile(text, "snippet", "exec").co_consts),
}


# What editors want of a model in their settings, and where: VS Code's provider "customendpoint", which says so in its
# package.json, and Zed's OpenAiCompatibleAvailableModel with its capabilities.
FIELDS: dict[str, tuple[tuple[str | int, ...], dict[str, type]]] = {
    "VS Code": (
        (0,),
        {
            "id": str, "name": str, "url": str, "toolCalling": bool, "vision": bool, "maxInputTokens": int,
            "maxOutputTokens": int,
        },
    ),
    "Zed": (
        ("language_models", "openai_compatible", "Slipstream", "available_models", 0),
        {"name": str, "display_name": str, "max_tokens": int, "capabilities": dict},
    ),
}  # fmt: skip
CAN = {"tools": bool, "images": bool, "parallel_tool_calls": bool, "prompt_cache_key": bool}


@pytest.fixture
def page(served: MainWindow) -> ServerPage:
    served.show_page("server")
    assert served.server is not None
    return served.server


@pytest.fixture
def view(qtbot, page: ServerPage, real_server: ServerProcess):
    """The first view, switched on with a port of its own."""
    shown = page.connect_view
    shown.port.setValue(free_port())
    qtbot.mouseClick(shown.switch, Qt.MouseButton.LeftButton)  # in the middle, behind its words
    qtbot.waitUntil(lambda: shown.address.field.text() != "")
    yield shown
    headers = {"Authorization": f"Bearer {real_server.api_key}"}
    url = f"{real_server.wait_listening()}/slipstream/endpoint"
    httpx.post(url, headers=headers, json={"open": False}).raise_for_status()


def models(view: ConnectView) -> int:
    headers = {"Authorization": f"Bearer {view.key.field.text()}"}
    return httpx.get(f"{view.address.field.text()}/models", headers=headers).status_code


@pytest.mark.parametrize("snippet", snippets(TO), ids=lambda snippet: snippet.client)
def test_what_is_copied_can_be_read_and_names_server_and_model(snippet: Snippet) -> None:
    found = str(READERS.get(snippet.client, json.loads)(snippet.text))
    assert TO.url in found
    assert TO.model in found
    assert TO.key in found or "key" in snippet.place  # some take it in a dialog


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_what_a_terminal_is_given_is_answered(qtbot, view: ConnectView) -> None:
    view.client.setCurrentText("curl")
    qtbot.waitUntil(lambda: view.text.horizontalScrollBar().isVisible())
    qtbot.waitUntil(lambda: view.text.verticalScrollBar().maximum() == 0)  # its last line is not covered
    view.copy.click()
    said = subprocess.check_output(["sh", "-c", QGuiApplication.clipboard().text()], timeout=120)
    assert json.loads(said)["choices"][0]["message"]["content"]


@pytest.mark.parametrize("name", ["o'brien", "o’brien", 'a "b"', "a b\\c"])
def test_a_terminal_is_given_any_name_in_its_own_quotes(name: str) -> None:
    curl, powershell = (
        one for one in snippets(replace(TO, model=name, key=name)) if one.client in ("curl", "PowerShell")
    )
    *_, key, _, body = shlex.split(curl.text.replace("\\\n", ""))
    assert (key, json.loads(body)["model"]) == (f"Authorization: Bearer {name}", name)
    assert body_for_powershell(powershell.text)["model"] == name


@pytest.mark.parametrize("client", FIELDS)
def test_an_editor_gets_each_field_that_it_wants_of_a_model(client: str) -> None:
    path, fields = FIELDS[client]
    found = json.loads(next(one.text for one in snippets(TO) if one.client == client))
    for step in path:
        found = found[step]
    assert {name: type(value) for name, value in found.items()} == fields
    assert {name: type(value) for name, value in found.get("capabilities", {}).items()} in ({}, CAN)


def test_editors_are_told_whether_the_model_sees(qtbot, window: MainWindow, api: Api, server: FakeServer) -> None:
    api.connect_to(server.url, None)
    window.show_page("server")
    view = window.server.connect_view
    window.watch.look()
    qtbot.waitUntil(lambda: window.watch.state.model == server.model)
    for client, field in (("VS Code", "vision"), ("Zed", "images")):
        view.client.setCurrentText(client)
        for can, sees in ((["completion"], "false"), (["completion", "vision"], "true")):
            server.models = [{"id": server.model, "capabilities": can}]
            window.watch.look_at_models()
            qtbot.waitUntil(lambda words=f'"{field}": {sees}': words in view.text.toPlainText())


def test_a_long_name_does_not_make_a_narrow_page_wider(qtbot, window: MainWindow, api: Api, server: FakeServer) -> None:
    api.connect_to(server.url, None)
    server.models = [{"id": "Mistral-Small-24B-Instruct-2501-reasoning-distill-abliterated-v2-Q8_0"}]
    window.resize(480, 700)
    window.watch.look_at_models()
    qtbot.waitUntil(lambda: bool(window.watch.models))
    window.show_page("server")
    window.server.show_tab("Activity")
    view = window.server.activity
    assert view.model.count() == 1
    qtbot.waitUntil(lambda: view.widget().width() == view.viewport().width())


def test_a_model_that_is_loading_is_not_loaded_once_more_and_leaves_the_keyboard_beside_it(
    qtbot, window: MainWindow, api: Api, server: FakeServer
) -> None:
    api.connect_to(server.url, None)
    server.models = [{"id": "fox"}, {"id": "hen"}, {"id": "gpt-5", "alias_of": "fox"}]
    window.show_page("server")
    window.server.show_tab("Activity")
    view = window.server.activity
    window.watch.look_at_models()
    qtbot.waitUntil(lambda: view.model.count() == 3)
    view.model.setCurrentText("gpt-5")
    view.show_state({"models": [{"model": "fox", "phase": "ready"}]})
    assert (view.load.isEnabled(), view.load.text()) == (True, "Load again")
    view.load.setFocus()
    server.models = server.models[::2]
    window.watch.look_at_models()
    qtbot.waitUntil(lambda: view.model.count() == 2)
    assert (view.model.currentText(), window.focusWidget()) == ("gpt-5", view.load)
    view.show_state({"models": [{"model": "fox", "phase": "loading"}]})
    assert (view.load.isEnabled(), window.focusWidget()) == (False, view.model)


def test_a_short_text_is_seen_whole_in_every_size(served: MainWindow, page: ServerPage) -> None:
    for percent in PERCENTS:
        served.resize_text(percent)
        assert page.connect_view.text.verticalScrollBar().maximum() == 0, percent
    served.resize_text(100)


def test_a_script_runs_as_it_is_copied(qtbot, view: ConnectView) -> None:
    """That for Anthropic's package runs in ``tests/app/server/test_anthropic.py``: to import it takes seconds."""
    view.client.setCurrentText("Python: openai")
    view.copy.click()
    assert view.copy.text() == "Copied"
    script, key = QGuiApplication.clipboard().text(), view.key.field.text()
    assert key in script
    assert key not in view.text.toPlainText(), "who looks over one's shoulder does not see it"
    view.text.selectAll()
    view.text.copy()
    assert QGuiApplication.clipboard().text() == script
    view.eye.click()
    assert (view.text.toPlainText(), view.eye.toolTip()) == (script, "Hide the key in this text")
    view.eye.click()
    assert key not in view.text.toPlainText()
    names: dict[str, Any] = {}
    with redirect_stdout(StringIO()) as said:
        exec(compile(script, "script", "exec"), names)
    names["client"].close()  # a script ends here: what collects garbage may find the socket before the client
    assert len(said.getvalue().split()) > 5


def test_the_port_is_kept_for_the_next_server_and_shut_by_the_switch(
    qtbot, served, api: Api, real_server: ServerProcess, view: ConnectView
) -> None:
    assert models(view) == 200
    key = view.key.field.text()
    view.new_key.click()
    assert view.key.field.text() == key, "it asks first"
    agree(view)
    qtbot.waitUntil(lambda: view.key.field.text() not in ("", key))
    assert models(view) == 200
    changed: list[object] = []
    served.endpoint.changed.connect(changed.append)
    api.connect_to(real_server.wait_listening(), real_server.api_key)  # as after a restart of the server
    qtbot.waitUntil(lambda: changed != [])
    assert models(view) == 200


def test_a_port_that_is_to_open_is_not_called_off_while_the_server_starts(qtbot, served, view: ConnectView) -> None:
    assert view.switch.isChecked()
    api = Api()  # nothing answers yet
    starting = ConnectView(api, Endpoint(api, served.endpoint.kept), served.watch)
    qtbot.addWidget(starting)
    assert starting.switch.isChecked()
    assert starting.how.text() == "It opens when the server has started."
    starting.switch.click()
    assert starting.how.text() == "Off: only this window uses the models."
    assert not served.endpoint.kept.is_on("endpoint", usually=True)
    starting.switch.click()
    assert starting.how.text() == "It opens when the server has started."
    assert not starting.problem.isVisibleTo(starting)


@pytest.mark.qt_log_ignore("systemTrayWindowChanged", "This plugin does not support ")  # Qt asks a screen that has none
def test_it_may_stay_on_while_the_window_is_closed(
    served: MainWindow, view: ConnectView, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (view.how.text(), view.stays.isVisible()) == ("On while this window is open.", False)
    monkeypatch.setattr(QSystemTrayIcon, "isSystemTrayAvailable", staticmethod(lambda: True))
    served.kept.keep("keepsRunning", True)
    assert view.stays.isVisible()
    assert view.stays.isChecked()
    assert not view.how.isVisible()
    served.show_page("settings")
    assert served.settings is not None
    served.settings.complete()
    view.stays.click()
    assert not served.settings.computer.stays.isChecked()
    assert not served.background.keeps_running


def test_other_machines_are_let_in_with_a_warning(qtbot, view: ConnectView) -> None:
    assert not view.lan_note.isVisible()
    view.lan.click()
    qtbot.waitUntil(view.lan_note.isVisible)
    assert "not encrypted" in view.lan_note.words.text()
    assert models(view) == 200
    view.lan.click()
    qtbot.waitUntil(lambda: not view.lan_note.isVisible())


def test_web_pages_are_let_in_by_their_address_and_a_wrong_one_is_said(
    qtbot, served: MainWindow, view: ConnectView
) -> None:
    def answer(origin: str) -> int:
        fields = {"Authorization": f"Bearer {view.key.field.text()}", "Origin": origin}
        return httpx.get(f"{view.address.field.text()}/models", headers=fields).status_code

    assert answer("https://pages.example") == 403
    view.origins.setText("Pages.example")
    view.origins.editingFinished.emit()
    assert "as https://example.com" in view.origins_problem.text()
    assert view.origins_problem.isVisible()
    assert view.origins.text() == "Pages.example", "what was typed can be mended"
    view.origins.setText("https://Pages.example/ http://localhost:3000")
    view.origins.editingFinished.emit()
    qtbot.waitUntil(lambda: view.origins.text() == "https://pages.example, http://localhost:3000")
    assert not view.origins_problem.isVisible()
    assert answer("https://pages.example") == 200
    assert served.kept.value("endpointOrigins") == "https://pages.example http://localhost:3000"
    view.origins.clear()
    view.origins.editingFinished.emit()
    qtbot.waitUntil(lambda: served.endpoint.state.origins == ())
    assert answer("https://pages.example") == 403


def test_a_taken_port_is_said_where_another_is_chosen(qtbot, page: ServerPage, real_server: ServerProcess) -> None:
    view = page.connect_view
    taken = httpx.URL(real_server.wait_listening()).port
    view.port.setValue(taken)
    view.switch.click()
    qtbot.waitUntil(view.problem.isVisible)
    assert f"port {taken}" in view.problem.words.text()
    assert not view.switch.isChecked()
    assert view.port.isVisible()
    assert view.problem.button.text().startswith("Use port ")
    view.problem.button.click()  # the port that it names
    qtbot.waitUntil(lambda: view.address.field.text() != "")
    assert view.problem.isHidden()
    assert view.port.value() != taken
    assert models(view) == 200
    view.switch.click()
    qtbot.waitUntil(lambda: view.address.field.text() == "")


def test_what_another_port_would_not_mend_is_tried_again(qtbot, served: MainWindow, api: Api) -> None:
    in_its_way = config_folder() / "endpoint-key"
    in_its_way.unlink(missing_ok=True)
    in_its_way.mkdir()
    served.endpoint.change(is_open=True, is_lan=False, port=free_port(), origins=())
    banner = served.chats.panes.pages[0].server_banner
    qtbot.waitUntil(lambda: banner.text.startswith("Other programs cannot use this server. The key cannot be kept in"))
    banner.action.click()
    view = served.server.connect_view
    assert banner.text == ""
    assert "cannot be kept" in view.problem.words.text()
    assert "another port" not in view.problem.words.text()
    in_its_way.rmdir()
    assert view.problem.button.text() == "Try again"
    view.problem.button.click()
    qtbot.waitUntil(lambda: view.address.field.text() != "")
    assert models(view) == 200
    view.switch.click()
    qtbot.waitUntil(lambda: view.address.field.text() == "")


def test_a_key_is_made_shown_once_and_revoked(qtbot, page: ServerPage) -> None:
    view = page.connect_view
    view.add.click()
    assert view.key_problem.text() == "Give the key a name first."
    view.key_name.setText("laptop")
    qtbot.keyClick(view.key_name, Qt.Key.Key_Return)  # the second is no other key
    view.add.click()
    view.key_name.setText("phone")
    qtbot.keyClick(view.key_name, Qt.Key.Key_Return)  # the first is shown this once: it is not replaced at once
    qtbot.waitUntil(lambda: "laptop" in view.key_rows.rows)
    assert view.key_name.text() == "phone", "what is typed meanwhile stays"
    assert "“laptop”" in view.made.words.text()
    assert not view.key_problem.isVisible()
    view.made.button.click()
    assert view.made.button.text() == "Copied"
    assert QGuiApplication.clipboard().text() in view.made.words.text()
    row = view.key_rows.rows["laptop"]
    assert row.line.text().startswith("uses models, made on ")
    row.buttons["Allow managing"].click()
    assert row.line.text().startswith("uses models, made on "), "it asks first"
    agree(view)
    qtbot.waitUntil(lambda: row.line.text().startswith("manages models, made on "))
    row.buttons["Disallow managing"].click()
    qtbot.waitUntil(lambda: row.line.text().startswith("uses models, made on "))
    view.key_rows.rows["laptop"].buttons["Revoke"].click()
    assert "laptop" in view.key_rows.rows, "it asks first"
    agree(view)
    qtbot.waitUntil(lambda: view.key_rows.rows == {})
    assert not view.made.isVisible()


def test_requests_are_seen_and_cancelled_and_models_unloaded(
    qtbot, served: MainWindow, page: ServerPage, api: Api
) -> None:
    page.show_tab("Activity")
    activity = page.activity
    qtbot.waitUntil(lambda: "ember-q8_0" in activity.models.rows)
    activity.model.setCurrentText("ember-q8_0")
    assert (activity.load.isEnabled(), activity.load.text()) == (True, "Load again"), "its settings may have changed"
    activity.model.setCurrentText("ember-draft-q8_0")
    assert (activity.load.isEnabled(), activity.load.text()) == (True, "Load")
    qtbot.waitUntil(lambda: activity.log.toPlainText() != "" or activity.log.placeholderText() != "")
    # A reply that may end by itself could be over before it is seen.
    endless = {"prompt": "Count.", "max_tokens": 900, "ignore_eos": True}
    api.ask("POST", "/v1/completions", endless, lambda found: None, lambda sentence: None)
    qtbot.waitUntil(lambda: activity.requests.rows != {})
    (row,) = activity.requests.rows.values()
    assert row.title.text() == "This window  ·  ember-q8_0"
    row.buttons["Cancel"].click()
    qtbot.waitUntil(lambda: activity.requests.rows == {})
    activity.models.rows["ember-q8_0"].buttons["Unload"].click()
    qtbot.waitUntil(lambda: activity.models.rows == {})
    served.watch.load("nowhere")
    qtbot.waitUntil(activity.model_problem.isVisible)
    assert "is not here any more" in activity.model_problem.text()
    assert served.page.server_banner.action.text() == "Choose another model"
    activity.model.setCurrentText("ember-q8_0")
    assert activity.load.isEnabled()
    activity.load.click()
    qtbot.waitUntil(lambda: "ember-q8_0" in activity.models.rows)
    page.show_tab("Connect")
    assert served.focusWidget() is page.connect_view, "its keys scroll"
    qtbot.keyClick(served.focusWidget(), Qt.Key.Key_Tab)
    assert served.focusWidget() is page.connect_view.switch
    page.setFocus()
    qtbot.keyClick(served.focusWidget(), Qt.Key.Key_Backtab)
    assert served.focusWidget() is page.tabs["Connect"]


def test_how_far_a_request_is_is_counted_in_words(page: ServerPage) -> None:
    for known, words in (
        ({"n_generated": 1}, "1 token"),
        ({"n_generated": 1200}, "1,200 tokens"),
        ({"n_generated": 0, "n_prompt": 17}, "17 tokens of prompt"),
        ({"n_generated": 0, "n_prompt": 1}, "1 token of prompt"),
        ({"n_inputs": 1}, "1 text"),
    ):
        page.activity.show_state({"requests": [{"id": "a", "lane": "batch", "phase": "writing", **known}]})
        (row,) = page.activity.requests.rows.values()
        assert words in row.line.text().split("  ·  ")


def test_a_load_is_ended_and_one_that_failed_says_why(qtbot, served: MainWindow, page: ServerPage) -> None:
    page.show_tab("Activity")
    activity, ended = page.activity, list[tuple[str, str]]()
    qtbot.waitUntil(lambda: "ember-q8_0" in activity.models.rows)
    other = {"model": "fox", "phase": "loading", "progress": 0.4}
    state = {"model": "ember-q8_0", "models": [{**other, "model": "ember-q8_0"}, other], "problem": "It is broken."}
    activity.show_state(state)
    rows = activity.models.rows
    assert list(rows["fox"].buttons) == [], "a call waits for it"
    asked = served.watch.state
    rows["ember-q8_0"].buttons["Cancel"].click()
    served.watch.load_cancelled.connect(lambda *names: ended.append(names))
    qtbot.waitUntil(lambda: served.watch.state is not asked)
    assert ended == [], "nothing was being loaded on the server"
    activity.show_state({**state, "models": [{"model": "ember-q8_0", "phase": "failed"}]})
    assert rows["ember-q8_0"].problem.text() == "It is broken."


def test_another_server_is_added_and_removed(qtbot, page: ServerPage) -> None:
    page.show_tab("Other machines")
    machines = page.machines
    machines.server.add.click()
    assert machines.server.problem.text() == "A server needs a name and an address."
    machines.server.fields["name"].setText("rack")
    machines.server.fields["url"].setText(f"http://127.0.0.1:{free_port()}/v1")
    for _ in range(2):  # the second is no other server
        qtbot.keyClick(machines.server.fields["url"], Qt.Key.Key_Return)
    machines.server.fields["name"].setText("next")
    qtbot.waitUntil(lambda: "rack" in machines.remotes.rows)
    assert machines.remotes.rows["rack"].problem.text() != ""
    assert machines.server.fields["name"].text() == "next", "what is typed meanwhile stays"
    assert machines.server.fields["url"].text() == ""
    assert not machines.server.problem.isVisible()
    machines.remotes.rows["rack"].buttons["Remove"].click()
    agree(machines)
    qtbot.waitUntil(lambda: machines.remotes.rows == {})


def test_a_worker_is_added_by_its_token_and_removed(
    qtbot, page: ServerPage, real_server: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    page.show_tab("Other machines")
    machines = page.machines
    assert machines.lend.field.text().startswith("./slipstream worker")
    machines.worker.add.click()
    assert machines.worker.problem.text() == "A worker needs an address and its token."
    worker = TestWorker()
    try:
        machines.worker.fields["address"].setText(worker.address)
        machines.worker.fields["token"].setText("a token that is wrong")
        machines.worker.add.click()
        assert not machines.worker.add.isEnabled()
        qtbot.waitUntil(machines.worker.add.isEnabled)
        assert "does not know this token" in machines.worker.problem.text()
        assert machines.worker.fields["token"].text() == "a token that is wrong"  # to be mended
        machines.worker.fields["token"].setText(TOKEN)
        machines.worker.add.click()
        qtbot.waitUntil(lambda: worker.address in machines.workers.rows)
        assert machines.worker.problem.isHidden()
        assert machines.worker.fields["token"].text() == ""
    finally:
        worker.close()
    row = machines.workers.rows[worker.address]
    row.buttons["Try again"].click()
    qtbot.waitUntil(lambda: "cannot be reached" in row.problem.text())
    row.buttons["Remove"].click()
    agree(machines)
    qtbot.waitUntil(lambda: machines.workers.rows == {})
