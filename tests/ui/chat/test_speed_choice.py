"""How soon a reply is wanted: chosen beside the field, kept with the chat, and told under the reply."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtWidgets import QLabel

from models.formatting.json_values import fitting
from tests.support.chat_window import ask, reply_view
from tools.stand_ins.fake_openai import FakeServer
from ui.chat.storage.store import MIGRATIONS, ChatStore
from ui.client.chat_records import Chat, ChatSettings, Message, Role, Status, Timings
from ui.client.speeds import DeepProgress, DeepReceipt, DeepStage, Speed
from ui.theme.tokens import LIGHT
from ui.window.main_window import MainWindow


def choose(qtbot, window: MainWindow, speed: Speed) -> None:
    picker = window.page.composer.speed
    qtbot.mouseClick(picker, Qt.MouseButton.LeftButton)
    qtbot.mouseClick(picker.card.rows[speed], Qt.MouseButton.LeftButton)
    assert picker.card.isHidden()


def test_the_speed_goes_with_the_request_and_stays_with_the_chat(qtbot, window: MainWindow, server: FakeServer) -> None:
    ask(qtbot, window, "Hi")
    assert "speed" not in server.requests[0]
    choose(qtbot, window, Speed.STANDARD)
    ask(qtbot, window, "As usual")
    # Said aloud: another speed may be set for the model.
    assert server.requests.pop()["speed"] == "standard"
    choose(qtbot, window, Speed.FAST)
    ask(qtbot, window, "Again")
    assert server.requests[1]["speed"] == "fast"
    assert reply_view(window).receipt.text().startswith("Fast")
    first = window.desk.current.chat.id
    window.desk.new_chat()
    assert window.page.composer.speed.text() == "Fast"
    choose(qtbot, window, Speed.BATCH)
    ask(qtbot, window, "Later")
    assert server.requests[2]["speed"] == "batch"
    window.desk.open(first)
    qtbot.waitUntil(lambda: window.desk.current.chat.id == first)
    assert window.page.composer.speed.speed is Speed.FAST


def test_a_choice_that_cannot_be_looks_it_and_each_is_as_tall_as_its_lines(qtbot, window: MainWindow) -> None:
    picker = window.page.composer.speed
    picker.set_no_spark("No small model.")
    picker.open()
    rows = picker.card.rows
    names = {speed: next(one for one in row.findChildren(QLabel) if one.text()) for speed, row in rows.items()}
    named = {speed: name.palette().windowText().color().name() for speed, name in names.items()}
    assert named.pop(Speed.SPARK) == LIGHT.muted
    assert set(named.values()) == {LIGHT.text}
    assert all(row.height() == row.heightForWidth(row.width()) for row in rows.values())
    assert rows[Speed.SPARK].height() < rows[Speed.DEEP].height()
    picker.card.hide()


def test_a_spark_reply_is_marked_and_the_full_model_can_answer_instead(qtbot, window: MainWindow, server) -> None:
    choose(qtbot, window, Speed.SPARK)
    assert ask(qtbot, window, "Hi").answered_by == "ember-draft-q8_0"
    note = reply_view(window).spark_note
    assert not note.isHidden()
    assert note.text == "Answered by the small model ember-draft-q8_0, less capable."
    narrow(window)
    server.pieces = ["The full answer."]
    note.button.click()
    qtbot.waitUntil(lambda: not window.desk.current.is_running)
    view = reply_view(window)
    assert server.requests[-1]["speed"] == "standard"
    assert (view.text, view.versions.label.text(), view.spark_note.isHidden()) == ("The full answer.", "2 / 2", True)
    view.versions.back.click()
    assert not reply_view(window).spark_note.isHidden()
    assert window.page.composer.speed.speed is Speed.SPARK


def test_where_no_small_model_is_paired_spark_says_why(qtbot, window: MainWindow, server: FakeServer) -> None:
    server.spark, server.why_no_spark = None, "head.gguf is a head that drafts for this model and cannot answer alone."
    window.watch.start()
    qtbot.waitUntil(lambda: window.watch.state.phase == "ready")
    picker = window.page.composer.speed
    picker.open()
    row = picker.card.rows[Speed.SPARK]
    assert not row.isEnabled()
    assert row.line == server.why_no_spark
    picker.chosen.emit(Speed.SPARK)
    assert "cannot answer alone" in window.page.hint.text()
    server.spark, server.why_no_spark = "small", ""
    window.watch.look()
    qtbot.waitUntil(lambda: window.watch.state.spark == "small")
    picker.open()
    assert row.isEnabled()
    assert "less capable" in row.line


def test_the_card_is_used_with_the_keyboard(qtbot, window: MainWindow) -> None:
    picker = window.page.composer.speed
    picker.open()
    qtbot.waitUntil(picker.card.rows[Speed.AUTO].hasFocus)
    picker.card.setFocus()
    picker.card.rows[Speed.STANDARD].setFocus()
    for _ in range(2):
        qtbot.keyClick(picker.card, Qt.Key.Key_Down)
    assert picker.card.rows[Speed.SPARK].hasFocus()
    qtbot.keyClick(picker.card, Qt.Key.Key_Up)
    qtbot.keyClick(picker.card, Qt.Key.Key_Return)
    assert picker.speed is Speed.FAST
    picker.open()
    qtbot.keyClick(picker.card, Qt.Key.Key_Escape)
    assert picker.card.isHidden()
    assert picker.speed is Speed.FAST


STAGES = [
    {"stage": "drafting", "drafts": 3, "drafts_done": 1, "tokens": 40, "seconds": 0.2},
    {"stage": "distilling", "drafts": 3, "drafts_done": 3, "tokens": 96, "seconds": 0.4},
    {"stage": "refining", "drafts": 3, "drafts_done": 3, "tokens": 120, "seconds": 0.6},
]
DEEP = {
    "drafts": 3,
    "drafts_used": 3,
    "stages": [{"stage": "drafting", "ms": 200.0, "prompt_tokens": 20, "completion_tokens": 96}],
}


def narrow(window: MainWindow) -> None:
    """Large text in the narrowest window: what is shown has room there."""
    window.resize_text(150)
    window.resize(480, 720)
    QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)
    transcript = window.page.transcript
    assert transcript.body.minimumSizeHint().width() <= transcript.viewport().width()
    assert transcript.body.width() <= transcript.viewport().width()


def test_a_deep_reply_shows_its_stages_and_what_they_took(qtbot, window: MainWindow, server: FakeServer) -> None:
    server.stages, server.deep, server.steps = STAGES, DEEP, threading.Semaphore(0)
    choose(qtbot, window, Speed.DEEP)
    window.desk.current.send("A hard question")
    for stage in STAGES:
        server.steps.release()
        qtbot.waitUntil(lambda stage=stage: reply_view(window).stages.stage == stage["stage"])
    narrow(window)
    server.steps.release(len(server.pieces))
    qtbot.waitUntil(lambda: not window.desk.current.is_running)
    view = reply_view(window)
    assert view.stages.isHidden()
    assert view.receipt.text().startswith("Deep: 3 drafts")
    view.receipt.click()
    assert view.receipt_card.facts.facts["Drafting"] == "96 tokens in 200 ms"


@pytest.mark.parametrize("at", range(len(STAGES)))
def test_a_deep_reply_can_be_stopped_at_each_stage(qtbot, window: MainWindow, server: FakeServer, at: int) -> None:
    # The last stage goes on until somebody leaves.
    server.stages, server.delay = [*STAGES[:at], *[STAGES[at]] * 10_000], 0.01
    choose(qtbot, window, Speed.DEEP)
    window.desk.current.send("A hard question")
    qtbot.waitUntil(lambda: reply_view(window).stages.stage == STAGES[at]["stage"])
    window.page.composer.button.click()
    message = window.desk.current.tree.path[-1]
    assert message.status is Status.STOPPED
    view = reply_view(window)
    assert view.stages.isHidden()
    assert view.receipt.text() == "Stopped"
    qtbot.waitUntil(server.gone.is_set)


def test_a_deep_reply_that_was_answered_directly_says_why(qtbot, window: MainWindow, server: FakeServer) -> None:
    server.deep = {"drafts": 1, "drafts_used": 0, "stages": [], "reason": "The context is too short."}
    choose(qtbot, window, Speed.DEEP)
    window.chats.tuning.rows["temperature"].field.setValue(0.2)
    window.chats.tuning.reset.click()
    assert window.desk.current.chat.settings == ChatSettings(speed=Speed.DEEP), "resetting leaves the speed"
    ask(qtbot, window, "A hard question")
    assert "Deep: answered directly" in reply_view(window).receipt.text()
    reply_view(window).receipt.click()
    assert reply_view(window).receipt_card.facts.facts["Answered directly"] == "The context is too short."


def test_what_a_reply_was_is_kept(tmp_path: Path) -> None:
    store = ChatStore(tmp_path / "chats.db")
    timings = Timings(deep=DeepReceipt(3, 2, (DeepStage("drafting", 1.5, 9),), None))
    store.save_chat(Chat(1, "a", 1, 1, ChatSettings(speed=Speed.SPARK)))
    kept = Message(2, 1, None, Role.ASSISTANT, "x", 1, timings=timings, speed=Speed.DEEP, answered_by="small")
    store.save_message(kept)
    assert store.messages(1) == [kept]
    assert store.chat(1).settings.speed is Speed.SPARK
    store.close()
    assert [fitting(DeepProgress, found) for found in (None, [], {}, {"stage": 3})] == [None] * 4
    unknown = ('{"speed": "warp"}', '{"speed": 3}', "{}")
    assert {ChatSettings.from_json(text).speed for text in unknown} == {Speed.AUTO}, "that of the model"


def test_chats_of_an_older_version_are_read(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "chats.db")
    db.executescript(f"{MIGRATIONS[0]}; PRAGMA user_version=1;")
    db.execute("INSERT INTO chat(id, title, created_ms, updated_ms) VALUES (1, 'a', 1, 1)")
    db.execute(
        "INSERT INTO message(id, chat_id, role, content, created_ms, status) VALUES (2, 1, 'user', 'Hi', 1, 'done')"
    )
    db.commit()
    db.close()
    store = ChatStore(tmp_path / "chats.db")
    assert [message.speed for message in store.messages(1)] == [Speed.STANDARD]
    store.close()
