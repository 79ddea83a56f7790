"""The bar of the context: what it counts, when it warns, and what it offers."""

from __future__ import annotations

import threading

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMenu

from tools.stand_ins.fake_openai import TIMINGS, FakeServer
from tools.stand_ins.library_server import LibraryServer
from ui.chat.context_use import ContextUse, used_by
from ui.chat.summary import ASK, INTRO, MOST_TOKENS
from ui.client.chat_records import ChatSettings, Message, Role, Timings
from ui.window.main_window import MainWindow


@pytest.fixture
def ready(qtbot, window: MainWindow, server: FakeServer) -> MainWindow:
    server.n_ctx_train = 4096
    window.watch.start()
    qtbot.waitUntil(lambda: window.watch.state.phase == "ready")
    return window


def ways(qtbot, window: MainWindow) -> dict[str, object]:
    qtbot.keyClick(window.page.fit.bar, Qt.Key.Key_Space)
    menu = window.page.findChild(QMenu)
    assert menu is not None
    found = {action.text(): action for action in menu.actions()}
    menu.close()
    return found


def test_it_counts_the_chat_and_the_message_that_is_written(qtbot, ready: MainWindow) -> None:
    bar = ready.page.fit.bar
    assert (bar.use.n_used, bar.use.n_ctx, bar.isVisible()) == (0, 1024, True)
    ready.page.composer.set_text("one two three")
    qtbot.waitUntil(lambda: bar.use == ContextUse(0, 3 + 8, 1024, is_estimate=False))
    ready.page.composer.button.click()
    qtbot.waitUntil(lambda: not ready.desk.current.is_running)
    assert bar.use == ContextUse(52 + 48 + 128, 0, 1024, is_estimate=False)
    assert bar.accessibleDescription().startswith("228 tokens of this chat")
    assert bar.text() == "228 of 1,024 tokens"


def test_it_counts_a_reply_while_it_comes(qtbot, ready: MainWindow, server: FakeServer) -> None:
    bar, page = ready.page.fit.bar, ready.page
    server.reads = [{"total": 300, "cache": 100, "processed": n_read} for n_read in (200, 300)]
    server.pieces, server.tokens_each, server.steps = ["word "] * 3, 4, threading.Semaphore(1)
    ready.desk.current.send("Go on.")
    qtbot.waitUntil(lambda: page.transcript.reply(ready.desk.current.running_id).receipt.text().endswith("  ·  50%"))
    assert server.requests[-1]["return_progress"] is True
    server.steps.release(3)
    qtbot.waitUntil(lambda: bar.text() == "308 of 1,024 tokens")
    page.composer.set_text("And then")
    assert bar.use.n_used == 308
    server.steps.release(1)
    qtbot.waitUntil(lambda: not ready.desk.current.is_running)
    assert bar.use.n_used == 52 + 48 + 128


def test_it_warns_before_it_is_full(qtbot, ready: MainWindow) -> None:
    ready.page.composer.set_text("word " * 900)
    qtbot.waitUntil(lambda: ready.page.fit.bar.use.is_nearly_full)
    assert "nearly full" in ready.page.fit.bar.toolTip()
    assert "Load the model with 2,048 tokens of context" in ways(qtbot, ready)


def test_a_reply_that_filled_the_context_says_so_and_goes_on_in_a_larger_one(
    qtbot, ready: MainWindow, server: FakeServer, library_server: LibraryServer
) -> None:
    page, chat = ready.page, ready.desk.current
    server.finish_reason = "length"
    server.timings = TIMINGS | {"prefill_tokens": 900, "cached_tokens": 24, "decode_tokens": 100}
    page.change_settings(ChatSettings(max_tokens=100))
    chat.send("Tell me a story")
    qtbot.waitUntil(lambda: not chat.is_running)
    assert page.transcript.reply(chat.tree.leaf_id).receipt.text().startswith("Reached the token limit")
    assert page.fit.banner.isHidden()
    page.change_settings(ChatSettings())
    chat.regenerate(chat.tree.leaf_id)
    qtbot.waitUntil(lambda: not chat.is_running)
    view = page.transcript.reply(chat.tree.leaf_id)
    assert view.receipt.text().startswith("Filled the context")
    assert not view.can_continue, "it would be refused"
    assert page.fit.banner.text == "The reply was cut: the model's context of 1,024 tokens is full."
    page.fit.banner.action.click()
    menu = page.findChild(QMenu)
    found = {action.text(): action for action in menu.actions()}
    assert "Start a new chat with a summary of this one" in found
    found["Load the model with 2,048 tokens of context"].trigger()
    qtbot.waitUntil(lambda: len(server.requests) == 3)
    assert [one["role"] for one in server.requests[-1]["messages"]] == ["user", "assistant"]


def test_the_summary_of_a_reply_that_filled_the_context_is_asked_for_with_room(
    qtbot, ready: MainWindow, server: FakeServer
) -> None:
    server.pieces = ["word " * 1_000, "end."]
    server.timings = TIMINGS | {"decode_tokens": 1_002}
    ready.desk.current.send("Say it")
    qtbot.waitUntil(lambda: not ready.desk.current.is_running)
    server.pieces = ["We spoke."]
    ways(qtbot, ready)["Start a new chat with a summary of this one"].trigger()
    qtbot.waitUntil(lambda: ready.page.composer.text.startswith(INTRO))
    said = server.requests[-1]["messages"][1]["content"]
    assert 1_000 < len(said) < (1_024 - MOST_TOKENS) * 5
    assert said.endswith("word end.")


def test_a_chat_goes_on_in_another_one_with_a_summary(qtbot, ready: MainWindow, server: FakeServer) -> None:
    ready.desk.current.send("Say hello")
    qtbot.waitUntil(lambda: not ready.desk.current.is_running)
    first, n_messages = ready.desk.current.chat.id, len(ready.desk.current.tree)
    ready.desk.new_chat()
    ready.page.composer.set_text("A question that waits.")
    ready.desk.open(first)
    qtbot.waitUntil(lambda: ready.desk.current.chat.id == first)
    server.pieces = ["We said ", "hello."]
    ways(qtbot, ready)["Start a new chat with a summary of this one"].trigger()
    qtbot.waitUntil(lambda: ready.desk.current.chat.id != first)
    assert ready.page.composer.text == f"{INTRO}\n\nWe said hello.\n\nA question that waits."
    assert [one["content"] for one in server.requests[-1]["messages"]] == ["Say hello", "Hello there.", ASK]
    assert ready.page.fit.banner.text == ""
    ready.desk.open(first)
    qtbot.waitUntil(lambda: ready.desk.current.chat.id == first)
    assert len(ready.desk.current.tree) == n_messages


def test_without_a_summary_it_says_why(qtbot, ready: MainWindow, server: FakeServer) -> None:
    ready.desk.current.send("Say hello")
    qtbot.waitUntil(lambda: not ready.desk.current.is_running)
    server.error = (503, {"error": {"message": "The engine died.", "code": "engine_died"}})
    ways(qtbot, ready)["Start a new chat with a summary of this one"].trigger()
    qtbot.waitUntil(lambda: ready.page.fit.banner.text == "There is no summary: The engine died.")


def test_no_other_model_writes_the_summary(qtbot, ready: MainWindow, server: FakeServer) -> None:
    ready.page.choose_model("ember-q8_0")
    ready.desk.current.send("Say hello")
    qtbot.waitUntil(lambda: not ready.desk.current.is_running)
    server.models, server.model = server.models[1:], "ember-draft-q8_0"
    ways(qtbot, ready)["Start a new chat with a summary of this one"].trigger()
    words = "There is no summary: This model is not here any more."
    qtbot.waitUntil(lambda: ready.page.fit.banner.text == words)


def test_what_was_thought_is_not_counted_as_sent() -> None:
    timings = Timings(prefill_tokens=10, cached_tokens=5, decode_tokens=100)
    asked = Message(1, 1, None, Role.USER, "x" * 40, 0)
    reply = Message(2, 1, 1, Role.ASSISTANT, "y" * 40, 0, timings=timings)
    assert used_by([asked, reply]) == (115, True)
    thought = Message(2, 1, 1, Role.ASSISTANT, "y" * 40, 0, timings=timings, thoughts="hm")
    assert used_by([asked, thought])[1] is False
    assert used_by([]) == (0, True)
