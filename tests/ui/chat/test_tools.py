"""Tools in the chat: a real MCP server, what is asked for, and what comes of a call."""

from __future__ import annotations

import base64
import io
import json
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from subprocess import PIPE

import pytest
from PIL import Image
from PySide6.QtCore import QCoreApplication, QEvent, QPoint
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel, QWidget

from models.formatting.figures import milliseconds
from models.formatting.program import PROGRAM_FOLDER
from tests.support.chat_window import reply_view
from tools.stand_ins.fake_openai import FakeServer
from ui.chat.attachments.read_file import WIDEST
from ui.chat.attachments.sent_files import PICTURE, THUMBNAIL, picture_of
from ui.chat.conversation import MOST_ROUNDS
from ui.chat.storage.store import ChatStore
from ui.chat.tools.tool_box import ToolBox, ToolServer
from ui.chat.tools.tools_dialog import ToolsDialog
from ui.client.api import Api
from ui.client.chat_records import Message, Status
from ui.client.server_watch import ServerWatch
from ui.client.tool_calls import CallStatus, ToolCall, from_json, messages_of, to_json
from ui.window.main_window import MainWindow

SERVER = """
import os, time
from mcp.server.mcpserver import MCPServer
server = MCPServer("animals")

@server.tool()
def weight(animal: str) -> str:
    "Tells how heavy an animal is."
    return f"A {animal} weighs 7 kg."

@server.tool()
def slow() -> str:
    "Takes long."
    time.sleep(60)
    return "late"

@server.tool()
def key() -> str:
    "Tells the key that it was given."
    return os.environ.get("ANIMAL_KEY", "none")

@server.tool()
def end() -> str:
    "Ends the server."
    os._exit(3)

server.run()
"""


# The same as far as quick tests need it, as a server that knows only the older handshake. It starts in no time.
SMALL_SERVER = """
import json, os, sys
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("weight", "key", "draw")]
def answer(method, asked):
    if method == "initialize":
        who = {"name": "animals", "version": "1"}
        return {"protocolVersion": asked["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": who}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call" and asked["name"] == "draw":
        images = [{"type": "image", "mimeType": "image/png", "data": data} for data in asked["arguments"]["images"]]
        return {"content": [{"type": "text", "text": "Drawn."}, *images], "isError": False}
    if method == "tools/call":
        weight = f"A {asked.get('arguments', {}).get('animal')} weighs 7 kg."
        text = weight if asked["name"] == "weight" else os.environ.get("ANIMAL_KEY", "none")
        return {"content": [{"type": "text", "text": text}], "isError": False}
for line in sys.stdin:
    said = json.loads(line)
    if "id" in said:
        result = answer(said["method"], said.get("params"))
        end = {"result": result} if result else {"error": {"code": -32601, "message": "There is no such method."}}
        print(json.dumps({"jsonrpc": "2.0", "id": said["id"], **end}), flush=True)
"""


def written(folder: Path, program: str) -> str:
    """The command of a server."""
    script = folder / "animals.py"
    script.write_text(program)
    return shlex.join((sys.executable, str(script)))


@pytest.fixture
def package_command(tmp_path: Path) -> str:
    """The command of a server that is written with the package's own server."""
    return written(tmp_path, SERVER)


@pytest.fixture
def command(tmp_path: Path) -> str:
    """The command of a small server."""
    return written(tmp_path, SMALL_SERVER)


@pytest.fixture
def box(qtbot, lonely_api: Api, tmp_path: Path) -> Iterator[ToolBox]:
    made = ToolBox(tmp_path / "tools.json", ServerWatch(lonely_api))
    yield made
    made.stop()


def ready(qtbot, box: ToolBox, command: str) -> None:
    box.save(ToolServer("animals", command))
    qtbot.waitUntil(lambda: box.tools_of("animals") is not None)


@pytest.mark.slow
def test_a_server_is_opened_called_cancelled_and_missed(
    qtbot, box: ToolBox, lonely_api: Api, package_command: str, tmp_path: Path
) -> None:
    ready(qtbot, box, package_command)
    names = [one["function"]["name"] for one in box.functions]
    assert names == ["animals_weight", "animals_slow", "animals_key", "animals_end"]
    tool, slow, _, end = (box.find(name) for name in names)
    assert tool is not None
    assert slow is not None
    assert end is not None
    assert tool.schema["properties"]["animal"]["type"] == "string"
    results: list[tuple[str, bool]] = []
    box.cancel(box.call(slow, {}, lambda result, is_error, images: results.append(("slow", is_error))))
    box.call(tool, {"animal": "fox"}, lambda result, is_error, images: results.append((result, is_error)))
    box.call(tool, {}, lambda result, is_error, images: results.append((result, is_error)))
    qtbot.waitUntil(lambda: len(results) == 2)
    assert ("A fox weighs 7 kg.", False) in results
    assert [is_error for _, is_error in results].count(True) == 1
    box.call(end, {}, lambda result, is_error, images: results.append((result, is_error)))
    qtbot.waitUntil(lambda: len(results) == 3)
    qtbot.waitUntil(lambda: "The server ended" in box.problems.get("animals", ""))
    assert results[2][1]
    box.open(box.servers[0])
    qtbot.waitUntil(lambda: box.tools_of("animals") is not None)
    box.allow(tool)
    again = ToolBox(tmp_path / "tools.json", ServerWatch(lonely_api))
    assert again.servers == (ToolServer("animals", package_command, True, ("weight",)),)


def test_a_command_gets_its_environment(qtbot, window: MainWindow, command: str, tmp_path: Path) -> None:
    window.chats.show_tools()
    dialog, box = window.findChild(ToolsDialog), window.chats.tools_box
    dialog.name.setText("animals")
    dialog.at.setText(command)
    dialog.more.click()
    dialog.extra.setPlainText("no sign")
    dialog.add.click()
    assert "as TOKEN=abc" in dialog.problem.text()
    dialog.extra.setPlainText("ANIMAL_KEY = a=b\n\n")
    dialog.add.click()
    assert dialog.problem.isHidden()
    qtbot.waitUntil(lambda: box.tools_of("animals") is not None)
    assert "with ANIMAL_KEY" in dialog.rows["animals"].at.text()
    results: list[str] = []
    key = box.find("animals_key")
    assert key is not None
    box.call(key, {}, lambda result, is_error, images: results.append(result))
    qtbot.waitUntil(lambda: results == ["a=b"])
    kept = tmp_path / "tools.json"
    assert ToolBox(kept, window.watch).servers == box.servers
    assert kept.stat().st_mode & 0o077 == 0


def test_nothing_of_a_server_that_was_closed_stays_open(command: str) -> None:
    host = [sys.executable, "-X", "dev", "-m", "ui.chat.tools.tool_host"]
    with subprocess.Popen(host, stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True, cwd=PROGRAM_FOLDER) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        for name in ("one", "two"):
            print(json.dumps({"open": name, "at": command, "extra": {}}), file=process.stdin, flush=True)
            assert len(json.loads(process.stdout.readline())["tools"]) == 3
        print(json.dumps({"close": "one"}), file=process.stdin, flush=True)
        process.stdin.close()
        assert "ResourceWarning" not in process.stderr.read()


def test_a_server_that_cannot_be_used_gets_a_sentence_and_an_address_its_headers(qtbot, window: MainWindow) -> None:
    heard: list[str | None] = []

    class Door(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append(self.headers["Authorization"])
            self.send_error(401)

        def log_message(self, *words: object) -> None: ...

    window.chats.show_tools()
    dialog = window.findChild(ToolsDialog)
    assert dialog.empty.isVisible()
    dialog.add.click()
    assert "needs a name" in dialog.problem.text()
    for is_missing in (dialog.name, dialog.at):
        dialog.add.setFocus()
        dialog.add.click()
        assert dialog.focusWidget() is is_missing
        dialog.name.setText("quotes")
    dialog.at.setText("no-such-program 'now")
    dialog.add.click()
    assert dialog.problem.text() == "A quotation mark in the command is not closed."
    assert not dialog.rows
    dialog.more.click()
    with ThreadingHTTPServer(("127.0.0.1", 0), Door) as door:
        threading.Thread(target=door.serve_forever, args=(0.02,), daemon=True).start()
        places = {
            "gone": ("no-such-program --now", ""),
            "web": ("http://127.0.0.1:9/mcp", ""),
            "shut": (f"http://127.0.0.1:{door.server_port}/mcp", "Authorization: Bearer abc"),
        }
        for name, (at, extra) in places.items():
            dialog.name.setText(name)
            dialog.at.setText(at)
            dialog.extra.setPlainText(extra)
            dialog.add.click()
        qtbot.waitUntil(lambda: all(not dialog.rows[name].retry.isHidden() for name in places))
        door.shutdown()
    assert not dialog.empty.isVisible()
    assert heard[0] == "Bearer abc"
    assert dialog.rows["gone"].state.text().startswith("There is no program 'no-such-program'")
    assert dialog.rows["web"].state.text().startswith("It cannot be used")
    assert dialog.rows["shut"].state.text().startswith("It cannot be used")
    dialog.rows["gone"].is_on.click()
    assert dialog.rows["gone"].state.text() == "Off."
    dialog.rows["web"].remove.click()
    assert list(dialog.rows) == ["gone", "shut"]
    assert (dialog.name.text(), dialog.extra.toPlainText()) == ("web", "")
    for field in (dialog.name, dialog.at):
        field.clear()
    shut = window.chats.tools_box.servers[-1]
    dialog.rows["shut"].remove.click()
    dialog.add.click()  # what was removed is in the fields
    assert window.chats.tools_box.servers[-1] == shut


CALLS = (
    ToolCall("0-0-a", "f", "{}", result="1", status=CallStatus.DONE, at=3, round=0),
    ToolCall("0-1-b", "g", "{}", result="", status=CallStatus.REFUSED, at=3, round=0),
    ToolCall("1-0-c", "f", '{"x": 1}', result="2", status=CallStatus.FAILED, at=3, round=1),
)


def test_a_reply_is_told_with_its_calls_in_order() -> None:
    told = list(messages_of("Hm.So.", CALLS))
    assert [one["role"] for one in told] == ["assistant", "tool", "tool", "assistant", "tool", "assistant"]
    assert [one["content"] for one in told] == ["Hm.", "1", "Nothing came back.", "", "2", "So."]
    assert told[3]["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"x": 1}'}
    assert from_json(to_json(CALLS)) == CALLS
    assert from_json("[{}]") == from_json("x") == ()


def test_a_call_that_was_open_at_the_end_is_over_when_it_is_read() -> None:
    (read,) = from_json(to_json([ToolCall("a", "f", "{}")]))
    assert (read.status, read.result) == (CallStatus.REFUSED, "It was stopped.")


def ask(window: MainWindow, text: str) -> None:
    window.desk.current.send(text)


def reply(window: MainWindow) -> Message:
    return window.desk.current.tree.path[-1]


def test_a_model_that_cannot_call_tools_is_offered_none_and_that_is_said(
    qtbot, window: MainWindow, server: FakeServer, command: str
) -> None:
    ready(qtbot, window.chats.tools_box, command)
    window.chats.toggle_settings()
    window.watch.look()
    qtbot.waitUntil(lambda: window.watch.state.model == server.model)
    for can, is_offered in ((["completion"], False), (["completion", "tools"], True)):
        server.models = [{"id": server.model, "capabilities": can}]
        window.watch.look_at_models()
        qtbot.waitUntil(lambda is_offered=is_offered: window.chats.tuning.no_tools.isHidden() is is_offered)
        ask(window, "How heavy is a fox?")
        qtbot.waitUntil(lambda: bool(reply(window).content) and not window.desk.current.is_running)
        assert ("tools" in server.requests[-1]) is is_offered
    server.models[0]["capabilities"] = ["completion"]
    window.watch.look_at_models()
    qtbot.waitUntil(window.chats.tuning.no_tools.isVisible)
    assert server.model in window.chats.tuning.no_tools.text()
    window.chats.show_tools()
    assert window.findChild(ToolsDialog).unused.text() == window.chats.tuning.no_tools.text(), "where they are added"


def tops(view: QWidget, *parts: QWidget) -> list[int]:
    """How far below the top of a message its parts stand."""
    QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)
    return [part.mapTo(view, QPoint(0, 0)).y() for part in parts]


WEIGHT = ("animals_weight", json.dumps({"animal": "fox"}))


def test_a_call_is_asked_for_made_told_to_the_model_and_kept(
    qtbot, window: MainWindow, server: FakeServer, command: str, tmp_path: Path
) -> None:
    ready(qtbot, window.chats.tools_box, command)
    server.calls = [[WEIGHT, ("animals_nothing", "{}")]]
    ask(window, "How heavy is a fox?")
    qtbot.waitUntil(lambda: len(reply(window).calls) == 2)
    row = reply_view(window).calls.rows["0-0-c0"]
    assert row.once.isVisible()
    assert "weight of animals" in row.question.text()
    assert '{"animal": "fox"}' in row.question.text()
    view = reply_view(window)
    (before,) = view.calls.texts
    assert (before.toPlainText(), view.view.isVisible()) == ("Hello there.", False)
    assert tops(view, before, row.question) == sorted(tops(view, before, row.question)), "it stands where it happens"
    row.once.setFocus()
    row.once.click()
    assert row.head.hasFocus()
    qtbot.waitUntil(lambda: not window.desk.current.is_running)
    assert [(call.status, call.result) for call in reply(window).calls] == [
        (CallStatus.DONE, "A fox weighs 7 kg."), (CallStatus.FAILED, "There is no tool animals_nothing now."),
    ]  # fmt: skip
    assert reply(window).content == "Hello there.\n\nHello there."
    assert [text.toPlainText() for text in view.text_views] == ["Hello there."] * 2
    assert tops(view, before, row.head, view.view) == sorted(tops(view, before, row.head, view.view))
    view.copy.click()
    assert QGuiApplication.clipboard().text() == reply(window).content
    first, second = server.requests
    assert first["tools"][0]["function"]["name"] == "animals_weight"
    assert [one["role"] for one in second["messages"]] == ["user", "assistant", "tool", "tool"]
    assert second["messages"][2] == {"role": "tool", "tool_call_id": "0-0-c0", "content": "A fox weighs 7 kg."}
    # Refused, then allowed for good, then not asked for.
    for at, button in enumerate(("no", "always", "")):
        server.calls = [[WEIGHT]]
        n_requests = len(server.requests)
        ask(window, f"And now, {at}?")
        if button:
            qtbot.waitUntil(lambda: bool(reply(window).calls))
            getattr(reply_view(window).calls.rows["0-0-c0"], button).click()
        qtbot.waitUntil(lambda n=n_requests: len(server.requests) == n + 2 and not window.desk.current.is_running)
        expected = CallStatus.REFUSED if button == "no" else CallStatus.DONE
        assert [call.status for call in reply(window).calls] == [expected]
    details = reply_view(window).calls.rows["0-0-c0"].details
    reply_view(window).calls.rows["0-0-c0"].head.click()
    height = details.height()
    window.resize_text(150)
    assert details.height() >= 1.3 * height, "all of it is seen in larger letters too"
    window.resize_text(100)
    chat_id = window.desk.current.chat.id
    kept = reply(window)
    window.desk.new_chat()
    window.desk.open(chat_id)
    qtbot.waitUntil(lambda: window.desk.current.chat.id == chat_id)
    window.page.transcript.show_hit(kept.id, "there")
    assert [len(text.extraSelections()) for text in reply_view(window).text_views] == [1, 1]
    window.close()
    store = ChatStore(tmp_path / "chats.db")
    assert store.messages(chat_id)[-1].calls == kept.calls
    store.close()


def test_what_was_found_stays_marked_where_a_call_comes_below_it(
    qtbot, window: MainWindow, server: FakeServer, command: str
) -> None:
    ready(qtbot, window.chats.tools_box, command)
    server.calls, server.steps = [[WEIGHT]], threading.Semaphore(2)
    ask(window, "How heavy is a fox?")
    qtbot.waitUntil(lambda: reply_view(window).text == "Hello there")
    window.page.transcript.show_hit(reply(window).id, "there")
    server.steps.release(9)
    qtbot.waitUntil(lambda: bool(reply(window).calls))
    assert [len(text.extraSelections()) for text in reply_view(window).text_views] == [1, 0]


@pytest.mark.parametrize("arguments", ['{"animal": "fo', '["fox"]'])
def test_nobody_is_asked_for_a_call_that_cannot_be_made(
    qtbot, window: MainWindow, server: FakeServer, command: str, arguments: str
) -> None:
    ready(qtbot, window.chats.tools_box, command)
    server.calls = [[("animals_weight", arguments)]]
    ask(window, "How heavy is a fox?")
    qtbot.waitUntil(lambda: len(server.requests) == 2 and not window.desk.current.is_running)
    assert server.requests[1]["messages"][2]["content"] == "The arguments are no JSON object."
    assert [call.status for call in reply(window).calls] == [CallStatus.FAILED]


def test_who_waits_for_a_call_does_not_think(qtbot, window: MainWindow, server: FakeServer, command: str) -> None:
    ready(qtbot, window.chats.tools_box, command)
    server.thoughts, server.pieces, server.delay, server.calls = ["Hm. "] * 4, [], 0.05, [[WEIGHT]]
    ask(window, "How heavy is a fox?")
    qtbot.waitUntil(lambda: bool(reply(window).calls))
    first = reply(window).thinking_ms
    assert first is not None
    head = reply_view(window).thoughts.head
    qtbot.waitUntil(lambda: head.text() == f"Thought for {milliseconds(first)}")
    server.thoughts, server.pieces, server.delay = ["So. "], ["7 kg."], 0.0
    reply_view(window).calls.rows["0-0-c0"].once.click()
    qtbot.waitUntil(lambda: not window.desk.current.is_running)
    assert reply(window).thoughts == "Hm. Hm. Hm. Hm. So. "
    assert reply(window).thinking_ms > first, "the times of all rounds are added"


def test_images_of_a_tool_are_shown_with_its_result_and_kept(
    qtbot, window: MainWindow, server: FakeServer, command: str, tmp_path: Path
) -> None:
    ready(qtbot, window.chats.tools_box, command)
    tool = window.chats.tools_box.find("animals_draw")
    assert tool is not None
    window.chats.tools_box.allow(tool)
    file = io.BytesIO()
    Image.new("RGB", (WIDEST + 100, 50), "orange").save(file, "PNG")
    fox = base64.b64encode(file.getvalue()).decode()
    images = [fox, base64.b64encode(b"%!PS-Adobe-3.0 EPSF-3.0").decode(), "abc", "é", fox]
    server.calls = [[("animals_draw", json.dumps({"images": images}))]]
    ask(window, "Draw a fox")
    qtbot.waitUntil(lambda: bool(reply(window).content) and not window.desk.current.is_running)
    (call,) = reply(window).calls
    assert [one.name for one in call.images] == ["Image 1", "Image 5"]
    told = server.requests[-1]["messages"][-1]["content"].splitlines()
    assert told[:2] == ["Drawn.", "[Image 1 is shown to the user]"]
    assert told[2:] == [
        "Image 2 is damaged, or is an image of a kind that is not known.", "Image 3 is damaged.",
        "Image 4 is damaged.", "[Image 5 is shown to the user]",
    ]  # fmt: skip
    row = reply_view(window).calls.rows[call.id]
    row.head.click()
    assert row.images is not None
    first, _ = row.images.buttons
    assert first.iconSize().width() == THUMBNAIL
    first.click()
    (picture,) = (label for label in row.images.findChildren(QLabel) if label.isVisible())
    assert picture.pixmap().width() == PICTURE
    assert picture_of(call.images[0], 10_000).width() == WIDEST, "it is made smaller, as an attached one"
    row.head.click()
    assert not row.images.isVisible()
    window.close()
    with closing(ChatStore(tmp_path / "chats.db")) as store:
        assert store.messages(window.desk.current.chat.id)[-1].calls == (call,)


@pytest.mark.slow
def test_calls_are_bounded_and_can_be_stopped(
    qtbot, window: MainWindow, server: FakeServer, package_command: str
) -> None:
    ready(qtbot, window.chats.tools_box, package_command)
    tool = window.chats.tools_box.find("animals_weight")
    assert tool is not None
    window.chats.tools_box.allow(tool)
    server.calls = [[WEIGHT] for _ in range(MOST_ROUNDS)]
    ask(window, "Again and again")
    qtbot.waitUntil(lambda: len(server.requests) == MOST_ROUNDS + 1 and not window.desk.current.is_running)
    assert "tools" in server.requests[-2]
    assert "tools" not in server.requests[-1]
    assert reply(window).status is Status.DONE
    server.calls = [[("animals_slow", "{}")]]
    ask(window, "Slowly")
    qtbot.waitUntil(lambda: bool(reply(window).calls))
    reply_view(window).calls.rows["0-0-c0"].once.click()
    assert reply(window).calls[0].status is CallStatus.RUNNING
    window.desk.current.stop()
    assert (reply(window).status, reply(window).calls[0].status) == (Status.STOPPED, CallStatus.REFUSED)
    assert not window.desk.current.is_running
