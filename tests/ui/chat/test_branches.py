"""Continuing a reply, editing it into a branch, walking versions by mouse and keyboard; the tree of messages."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from tests.support.chat_window import ended, reply_view
from tools.stand_ins.fake_openai import FakeServer
from ui.chat.messages.assistant_message import AssistantMessage
from ui.chat.messages.message_editor import MessageEditor
from ui.chat.messages.message_view import MessageView
from ui.chat.messages.user_message import UserMessage
from ui.chat.storage.message_tree import MessageTree
from ui.chat.storage.store import ChatStore
from ui.client.api import Api
from ui.client.chat_records import EDITED, Message, Role, Status, Timings
from ui.theme.appearance import Appearance
from ui.window.main_window import MainWindow

CTRL, SHIFT, ALT = (
    Qt.KeyboardModifier.ControlModifier,
    Qt.KeyboardModifier.ShiftModifier,
    Qt.KeyboardModifier.AltModifier,
)


def view_of(window: MainWindow, message_id: int | None) -> MessageView:
    view = None if message_id is None else window.page.transcript.view_of(message_id)
    assert view is not None
    return view


def editor_of(window: MainWindow, message_id: int | None) -> MessageEditor:
    editor = view_of(window, message_id).editor
    assert editor is not None
    return editor


def said(window: MainWindow) -> list[str]:
    return [message.content for message in window.desk.current.tree.path]


@pytest.fixture
def stopped(qtbot, window: MainWindow, server: FakeServer) -> Message:
    """A reply that was stopped after its first word."""
    server.steps = threading.Semaphore(1)
    window.desk.current.send("Say hello")
    qtbot.waitUntil(lambda: reply_view(window).text == "Hello")
    window.desk.current.stop()
    server.steps.release(10)
    server.steps = None
    server.pieces = [" again", "."]
    return ended(qtbot, window)


def test_a_stopped_reply_is_continued_in_its_place(
    qtbot, window: MainWindow, server: FakeServer, stopped: Message
) -> None:
    assert reply_view(window).can_continue
    qtbot.mouseClick(reply_view(window).more, Qt.MouseButton.LeftButton)
    message = ended(qtbot, window)
    sent = server.requests[-1]["messages"]
    assert [(one["role"], one["content"]) for one in sent] == [("user", "Say hello"), ("assistant", "Hello")]
    assert (message.id, message.content, message.status) == (stopped.id, "Hello again.", Status.DONE)
    assert reply_view(window).view.toPlainText() == "Hello again."
    assert message.timings is not None
    assert stopped.timings is not None
    assert message.timings.decode_tokens == stopped.timings.decode_tokens + 128
    assert not reply_view(window).can_continue
    chat = window.desk.current.chat.id
    window.desk.new_chat()
    window.desk.open(chat)
    qtbot.waitUntil(lambda: window.desk.current.chat.id == chat)
    assert said(window) == ["Say hello", "Hello again."]


def test_a_continuation_that_fails_keeps_what_was_there(
    qtbot, window: MainWindow, server: FakeServer, stopped: Message
) -> None:
    server.error = (503, {"error": {"message": "The engine died.", "code": "engine_died"}})
    qtbot.keyClick(window, Qt.Key.Key_R, CTRL | SHIFT)
    message = ended(qtbot, window)
    assert (message.content, message.status) == ("Hello", Status.FAILED)
    assert reply_view(window).problem.isVisible()
    server.error = None
    qtbot.keyClick(window, Qt.Key.Key_R, CTRL | SHIFT)
    assert ended(qtbot, window).content == "Hello again."
    assert not reply_view(window).problem.isVisible()


def test_a_reply_at_the_token_limit_can_be_continued_and_a_whole_one_not(
    qtbot, window: MainWindow, server: FakeServer
) -> None:
    window.desk.current.send("Hi")
    ended(qtbot, window)
    assert not reply_view(window).more.isVisible()
    n_requests = len(server.requests)
    qtbot.keyClick(window, Qt.Key.Key_R, CTRL | SHIFT)
    assert len(server.requests) == n_requests
    server.finish_reason = "length"
    qtbot.keyClick(window, Qt.Key.Key_R, CTRL)
    ended(qtbot, window)
    assert reply_view(window).more.isVisible()


def test_a_reply_is_edited_into_another_version(qtbot, window: MainWindow, server: FakeServer) -> None:
    window.desk.current.send("Hi")
    first = ended(qtbot, window)
    qtbot.mouseClick(reply_view(window).edit, Qt.MouseButton.LeftButton)
    editor = reply_view(window).editor
    assert editor is not None
    editor.field.setPlainText("Bonjour")
    n_requests = len(server.requests)
    qtbot.keyClick(editor.field, Qt.Key.Key_Return)
    assert said(window) == ["Hi", "Bonjour"]
    put = window.desk.current.tree.path[-1]
    assert (put.role, put.finish_reason, put.parent_id) == (Role.ASSISTANT, EDITED, first.parent_id)
    assert len(server.requests) == n_requests
    assert reply_view(window).receipt.text() == "Edited by you"
    window.desk.current.send("And?")
    ended(qtbot, window)
    assert [one["content"] for one in server.requests[-1]["messages"]] == ["Hi", "Bonjour", "And?"]


def test_an_edit_that_was_begun_is_open_again_until_it_is_sent_or_left(
    qtbot, qapp, window: MainWindow, server: FakeServer, tmp_path: Path
) -> None:
    window.desk.current.send("Hi")
    asked, reply = ended(qtbot, window).parent_id, window.desk.current.tree.path[-1].id
    chat = window.desk.current.chat.id
    for number, text in ((asked, "Hi, fox"), (reply, "Bonjour")):
        view_of(window, number).begin_edit()
        editor_of(window, number).field.setPlainText(text)
    window.desk.new_chat()
    window.desk.open(chat)
    qtbot.waitUntil(lambda: window.desk.current.chat.id == chat)
    assert editor_of(window, asked).field.toPlainText() == "Hi, fox"
    window.page.composer.setFocus()
    window.close()
    again = MainWindow(Api(), Appearance(qapp), tmp_path / "chats.db", tmp_path / "window.ini")
    qtbot.addWidget(again)
    again.show()
    qtbot.waitUntil(lambda: again.desk.current.chat.id == chat)
    assert editor_of(again, asked).field.toPlainText() == "Hi, fox"
    assert again.focusWidget() is again.page.composer.field, "it was not asked for"
    assert not editor_of(again, asked).property("focused")
    editor_of(again, asked).field.setFocus()
    assert editor_of(again, asked).property("focused")
    assert not view_of(again, asked).text_views[0].isVisible()
    field = editor_of(again, reply).field
    assert field.toPlainText() == "Bonjour"
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert said(again) == ["Hi", "Bonjour"]
    qtbot.keyClick(editor_of(again, asked).field, Qt.Key.Key_Escape)
    again.desk.current.choose(reply)
    assert said(again) == ["Hi", "Hello there."]
    assert [view_of(again, number).editor for number in (asked, reply)] == [None, None]
    again.close()
    with closing(ChatStore(tmp_path / "chats.db")) as store:
        assert store.drafts() == {}


def test_an_edit_stays_with_its_version(qtbot, window: MainWindow) -> None:
    window.desk.current.send("Hi")
    reply = ended(qtbot, window)
    window.desk.current.edit(reply.id, "Bonjour")
    put = window.desk.current.tree.path[-1].id
    view_of(window, put).begin_edit()
    editor_of(window, put).field.setPlainText("Bonjour, fox")
    window.desk.current.choose(reply.id)
    assert view_of(window, reply.id).editor is None
    window.desk.current.choose(put)
    assert editor_of(window, put).field.toPlainText() == "Bonjour, fox"


def test_what_is_asked_while_a_reply_comes_in_is_done(qtbot, window: MainWindow, server: FakeServer) -> None:
    window.desk.current.send("Hi")
    first = ended(qtbot, window)
    window.desk.current.regenerate(first.id)
    ended(qtbot, window)
    server.steps = threading.Semaphore(1)
    window.desk.current.send("And?")
    qtbot.waitUntil(lambda: reply_view(window).text == "Hello")
    running = window.desk.current.tree.path[-1]
    window.desk.current.choose(first.id)
    assert said(window) == ["Hi", "Hello there."]
    assert window.desk.current.is_running, "looking at another version ends nothing"
    window.desk.current.choose(running.id)
    assert said(window)[2:] == ["And?", ""]
    assert reply_view(window).text == "Hello"
    server.steps.release(1)
    qtbot.waitUntil(lambda: reply_view(window).text == "Hello there")
    before = window.page.transcript.view_of(window.desk.current.tree.path[1].id)
    assert isinstance(before, AssistantMessage)
    before.begin_edit()
    assert before.editor is not None
    before.editor.field.setPlainText("Bonjour")
    qtbot.keyClick(before.editor.field, Qt.Key.Key_Return)
    assert said(window) == ["Hi", "Bonjour"], "what was written is kept"
    assert window.focusWidget() is window.page.composer.field, "the field that had the keyboard is gone"
    stopped = window.desk.current.tree[running.id]
    assert (stopped.content, stopped.status) == ("Hello there", Status.STOPPED)
    server.steps.release(10)


def test_versions_are_walked_by_keyboard(qtbot, window: MainWindow, server: FakeServer) -> None:
    window.desk.current.send("Hi")
    ended(qtbot, window)
    server.pieces = ["Other"]
    qtbot.keyClick(window.page.composer.field, Qt.Key.Key_R, CTRL)
    ended(qtbot, window)
    assert said(window) == ["Hi", "Other"]
    qtbot.keyClick(window.page.composer.field, Qt.Key.Key_Left, ALT)
    assert said(window) == ["Hi", "Hello there."]
    qtbot.keyClick(window.page.composer.field, Qt.Key.Key_Right, ALT)
    assert said(window) == ["Hi", "Other"]
    qtbot.keyClick(window.page.composer.field, Qt.Key.Key_E, CTRL)
    asked = window.page.transcript.view_of(window.desk.current.tree.path[0].id)
    assert isinstance(asked, UserMessage)
    assert asked.editor is not None
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    qtbot.keyClick(asked.editor.field, Qt.Key.Key_Escape)
    QApplication.processEvents()
    assert window.focusWidget() is asked.edit


def test_the_figures_of_both_parts_are_put_together() -> None:
    first = Timings(ttft_ms=10, decode_ms=1_000, decode_tokens=100, decode_per_second=100, speedup=2.0)
    both = first.followed_by(Timings(ttft_ms=90, decode_ms=3_000, decode_tokens=100, speedup=1.0))
    assert (both.ttft_ms, both.decode_tokens, both.decode_per_second, both.speedup) == (10, 200, 50, 1.5)
    assert first.followed_by(Timings(decode_tokens=1)).speedup is None
    asked = Timings(prefill_tokens=26, prefill_ms=100, prefill_per_second=260, decode_tokens=12)
    both = asked.followed_by(Timings(prefill_tokens=1, cached_tokens=38, prefill_ms=30, prefill_per_second=33))
    assert (both.prefill_tokens, both.prefill_ms, both.prefill_per_second) == (26, 130, 200)


def m(number: int, parent: int | None, text: str = "") -> Message:
    return Message(number, 1, parent, Role.USER, text, 0)


def test_a_stored_leaf_is_kept_and_replacing_keeps_the_place() -> None:
    messages = [m(1, None), m(2, 1), m(3, 1)]
    assert MessageTree(messages, leaf_id=2).leaf_id == 2
    assert MessageTree(messages, leaf_id=99).leaf_id == 3
    assert MessageTree([], leaf_id=99).path == []
    tree = MessageTree([m(1, None), m(2, 1)])
    tree.replace(m(2, 1, "later"))
    assert tree[2].content == "later"
    assert len(tree) == 2
    assert 2 in tree
    tree = MessageTree([m(1, None), m(2, 1), m(3, 2), m(4, 1)])
    tree.choose(2)
    assert [one.id for one in tree.path] == [1, 2, 3], "a version is shown to its end"
