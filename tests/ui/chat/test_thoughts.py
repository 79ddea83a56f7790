"""What a model thinks before it answers: folded, streaming inside, timed, and kept with the chat."""

from __future__ import annotations

import threading

import pytest
from PySide6.QtCore import QPoint, Qt

from tests.support.chat_window import ended, reply_view
from tools.stand_ins.fake_openai import FakeServer
from ui.client.chat_records import Status
from ui.window.main_window import MainWindow


@pytest.fixture
def thinking(server: FakeServer) -> FakeServer:
    server.thoughts = ["Let me ", "**think**."]
    return server


def test_thoughts_stream_into_a_folded_line_that_opens(qtbot, window: MainWindow, thinking: FakeServer) -> None:
    thinking.steps = threading.Semaphore(0)
    window.desk.current.send("A hard question")
    thinking.steps.release(1)
    view = reply_view(window)
    qtbot.waitUntil(lambda: view.thoughts.text == "Let me ")
    qtbot.waitUntil(lambda: view.thoughts.head.text() == "Thinking…")
    assert view.thoughts.isVisible()
    assert not view.thoughts.is_open
    assert not view.thoughts.view.isVisible()
    qtbot.mouseClick(view.thoughts.head, Qt.MouseButton.LeftButton)
    assert view.thoughts.view.toPlainText() == "Let me"
    thinking.steps.release(1)
    qtbot.waitUntil(lambda: view.thoughts.view.toPlainText() == "Let me think.")
    assert view.text == ""
    thinking.steps.release(1)
    qtbot.waitUntil(lambda: view.thoughts.head.text().startswith("Thought for "))
    assert window.desk.current.is_running
    thinking.steps.release(len(thinking.pieces))
    message = ended(qtbot, window)
    assert (message.thoughts, message.content) == ("Let me **think**.", "Hello there.")
    assert message.thinking_ms is not None
    assert view.thoughts.is_open, "what was opened stays open"
    qtbot.keyClick(view.thoughts.head, Qt.Key.Key_Space)
    assert not view.thoughts.view.isVisible()


def test_what_is_unfolded_stays_where_it_was_clicked(qtbot, window: MainWindow, thinking: FakeServer) -> None:
    thinking.thoughts = ["A thought.\n\n"] * 40
    for n_lines in (40, 4):
        thinking.pieces = ["A line.\n\n"] * n_lines
        window.desk.current.send("A hard question")
        ended(qtbot, window)
    transcript, head = window.page.transcript, reply_view(window).thoughts.head
    bar = transcript.verticalScrollBar()

    def top() -> int:
        return head.mapTo(transcript, QPoint(0, 0)).y()

    seen = [(0, 0), (0, 1)]

    def rests() -> bool:
        seen.append((top(), bar.maximum()))
        return len(set(seen[-5:])) == 1

    qtbot.waitUntil(rests)  # one round of the layout follows from another
    before, height = seen[-1]
    assert 0 < before < transcript.height()
    qtbot.mouseClick(head, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: bar.maximum() > height + transcript.height() and transcript.to_end.isVisible())
    assert top() == before
    qtbot.mouseClick(head, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: bar.value() == bar.maximum() == height and not transcript.to_end.isVisible())


def test_a_reply_that_is_stopped_while_it_is_thought_over_keeps_its_thoughts(
    qtbot, window: MainWindow, thinking: FakeServer
) -> None:
    thinking.thoughts, thinking.delay = ["Hm. "] * 10_000, 0.01
    window.desk.current.send("A hard question")
    qtbot.waitUntil(lambda: bool(reply_view(window).thoughts.text))
    window.page.composer.button.click()
    message = ended(qtbot, window)
    assert (message.status, message.content) == (Status.STOPPED, "")
    assert message.thoughts.startswith("Hm. ")
    assert reply_view(window).thoughts.head.text().startswith("Thought for ")


def test_thoughts_are_not_sent_back_and_a_chat_that_was_left_shows_them_again(
    qtbot, window: MainWindow, thinking: FakeServer
) -> None:
    thinking.steps = threading.Semaphore(0)
    window.desk.current.send("A hard question")
    first = window.desk.current.chat.id
    thinking.steps.release(1)
    qtbot.waitUntil(lambda: bool((running := window.desk.current.running) and running.thoughts))
    window.desk.new_chat()
    thinking.steps.release(1)
    window.desk.open(first)
    qtbot.waitUntil(lambda: reply_view(window).thoughts.text == "Let me **think**.")
    thinking.steps.release(len(thinking.pieces))
    ended(qtbot, window)
    thinking.steps = None
    window.desk.current.send("And now?")
    ended(qtbot, window)
    assert [message["content"] for message in thinking.requests[-1]["messages"]] == [
        "A hard question",
        "Hello there.",
        "And now?",
    ]
