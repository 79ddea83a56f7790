"""Two chats side by side, in the whole window with a server that streams."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from tests.support.chat_window import ask, ended, reply_view, say
from tools.stand_ins.dragging import place
from tools.stand_ins.fake_openai import FakeServer
from ui.chat.chat_page import ChatPage
from ui.chat.storage.store import NEW_BESIDE, ChatStore
from ui.client.api import Api
from ui.theme.appearance import Appearance
from ui.window.main_window import MainWindow


@pytest.fixture
def wide(qtbot, window: MainWindow) -> MainWindow:
    window.resize(1400, 800)
    window.watch.start()
    window.activateWindow()
    qtbot.waitUntil(lambda: bool(window.watch.models))
    return window


def said(page) -> list[str]:
    return [message.content for message in page.pane.current.tree.path]


def test_two_chats_stream_at_once_each_with_its_own_model(qtbot, wide: MainWindow, server: FakeServer) -> None:
    server.pieces, server.delay = ["word "] * 400, 0.01
    wide.page.composer.set_text("left")
    QTest.keyClick(wide.page.composer.field, Qt.Key.Key_Return)
    left = wide.page
    QTest.keyClick(wide, Qt.Key.Key_N, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier)
    right = wide.page
    assert right is not left
    assert left.isVisible()
    assert right.isVisible()
    right.choose_model("ember-draft-q8_0")
    right.composer.set_text("right")
    QTest.keyClick(right.composer.field, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: all(page.pane.current.running.ttft is not None for page in (left, right)))
    assert wide.desk.running == {left.pane.current.chat.id, right.pane.current.chat.id}
    assert {one.get("model") for one in server.requests[-2:]} == {None, "ember-draft-q8_0"}
    assert server.loads == []  # the left chat keeps its model
    QTest.keyClick(right.composer.field, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: not right.pane.current.is_running)
    assert left.pane.current.is_running
    assert said(left)[0] == "left"
    assert said(right)[0] == "right"
    left.pane.current.stop()


def test_a_model_beside_is_said_to_load_until_it_answers(qtbot, wide: MainWindow, server: FakeServer) -> None:
    wide.chats.open_beside(None)
    wide.page.choose_model("ember-draft-q8_0")
    assert wide.page.picker.status.text() == "Loads with the next message"
    server.steps = threading.Semaphore(0)
    say(qtbot, wide, "hello")
    qtbot.waitUntil(lambda: reply_view(wide).receipt.text() == "Loading the model…")
    assert wide.page.picker.status.text() == "Loading ember-draft-q8_0…"
    server.steps.release(1)
    qtbot.waitUntil(lambda: wide.page.picker.status.text() == "")
    server.steps.release(10)
    ended(qtbot, wide)
    assert wide.page.picker.status.text() == ""
    wide.page.choose_model("ember-q8_0")
    assert "context" in wide.page.picker.status.text()


def test_closing_it_goes_back_to_one_and_the_reply_goes_on(qtbot, wide: MainWindow, server: FakeServer) -> None:
    wide.chats.open_beside(None)
    server.pieces, server.delay = ["word "] * 60, 0.01
    right = wide.page
    right.composer.set_text("hello")
    QTest.keyClick(right.composer.field, Qt.Key.Key_Return)
    chat = right.pane.current.chat.id
    right.close_button.click()
    assert wide.page is wide.chats.panes.pages[0]
    assert right.isHidden()
    assert not wide.chats.panes.is_two
    assert chat in wide.desk.running
    qtbot.waitUntil(lambda: not wide.desk.running)
    wide.desk.open(chat)
    qtbot.waitUntil(lambda: wide.desk.current.chat.id == chat)
    assert said(wide.page)[1] == "word " * 60


def test_a_chat_is_never_open_twice(qtbot, wide: MainWindow) -> None:
    first = ask(qtbot, wide, "one").chat_id
    wide.desk.new_chat()
    second = ask(qtbot, wide, "two").chat_id
    wide.chats.open_beside(first)
    qtbot.waitUntil(lambda: wide.page.pane.current.chat.id == first)
    left, right = wide.chats.panes.pages
    assert wide.page is right
    assert left.pane.current.chat.id == second
    wide.desk.open(second)  # as from the list of chats
    assert wide.page is left
    assert right.pane.current.chat.id == first
    wide.chats.open_beside(first)
    assert wide.page is right
    assert left.pane.current.chat.id == second
    wide.desk.delete(first)
    assert right.pane.current.is_new
    assert left.pane.current.chat.id == second


def test_the_list_of_chats_opens_beside_by_menu_and_by_key(qtbot, wide: MainWindow) -> None:
    first = ask(qtbot, wide, "one").chat_id
    wide.desk.new_chat()
    qtbot.waitUntil(lambda: wide.chats.history.model.row_of(first) >= 0)
    wide.chats.history.choose(first)
    words = [action.text() for action in wide.chats.history.menu_for(wide.chats.history.list.currentIndex()).actions()]
    assert "Open beside\tCtrl+Enter" in words
    QTest.keyClick(wide.chats.history.list, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: wide.page.pane.current.chat.id == first)
    assert wide.page is wide.chats.panes.pages[1]


def test_the_settings_beside_are_those_of_the_chat_with_the_keyboard(qtbot, wide: MainWindow) -> None:
    left = wide.page
    wide.chats.toggle_settings()
    wide.chats.tuning.prompt.setPlainText("Be brief.")
    wide.chats.tuning.take_typed()
    wide.resize(1700, 800)
    wide.chats.open_beside(None)
    assert wide.chats.tuning.prompt.toPlainText() == ""
    wide.chats.tuning.prompt.setPlainText("Be long.")  # it is taken a moment later
    left.composer.field.setFocus()
    qtbot.waitUntil(lambda: QApplication.focusWidget() is left.composer.field)
    assert wide.page is left
    assert wide.chats.tuning.prompt.toPlainText() == "Be brief."
    prompts = [page.pane.current.chat.settings.system_prompt for page in wide.chats.panes.pages]
    assert prompts == ["Be brief.", "Be long."]


def test_what_is_dropped_on_a_chat_is_for_that_one(qtbot, wide: MainWindow, tmp_path: Path) -> None:
    (tmp_path / "fox.txt").write_text("The fox is red.")
    opened: list[tuple[str, ChatPage]] = []
    wide.page.model_dropped.connect(lambda file: opened.append((file, wide.page)))
    wide.chats.open_beside(None)
    left, right = wide.chats.panes.pages

    def drop(on: QWidget, name: str) -> None:
        data, at = QMimeData(), place(QPoint(3, 3))
        data.setUrls([QUrl.fromLocalFile(str(tmp_path / name))])
        held = Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
        for event in (QDragEnterEvent(at, *held), QDropEvent(at, *held)):
            QApplication.sendEvent(on, event)
            assert event.isAccepted()

    drop(left.composer.field.viewport(), "fox.txt")
    assert (wide.page, left.composer.field.hasFocus()) == (left, True)
    qtbot.waitUntil(lambda: [one.name for one in left.composer.shelf.attachments] == ["fox.txt"])
    drop(right, "fox.txt")
    assert (wide.page, right.composer.field.hasFocus()) == (right, True)
    drop(left, "fox.gguf")
    assert opened == [(str(tmp_path / "fox.gguf"), left)]


def test_a_narrow_window_shows_one_and_a_way_to_the_other(qtbot, wide: MainWindow) -> None:
    wide.chats.open_beside(None)
    left, right = wide.chats.panes.pages
    assert left.other_button.isHidden()
    wide.resize(880, 700)
    qtbot.waitUntil(left.isHidden)
    right.other_button.click()
    assert left.isVisible()
    assert right.isHidden()
    QTest.keyClick(wide, Qt.Key.Key_F6)
    assert right.isVisible()
    assert left.isHidden()
    wide.resize(1400, 700)
    qtbot.waitUntil(lambda: left.isVisible() and right.isVisible())


def test_both_come_back_at_the_next_start_with_what_was_typed(
    qtbot, qapp, wide: MainWindow, api: Api, tmp_path: Path
) -> None:
    first = ask(qtbot, wide, "one").chat_id
    wide.chats.open_beside(None)
    second = ask(qtbot, wide, "two").chat_id
    wide.page.composer.set_text("not sent")
    wide.close()
    again = MainWindow(Api(), Appearance(qapp), tmp_path / "chats.db", tmp_path / "window.ini")
    qtbot.addWidget(again)
    qtbot.waitUntil(lambda: [page.pane.current.chat.id for page in again.chats.panes.pages] == [first, second])
    qtbot.waitUntil(lambda: again.chats.panes.pages[1].composer.text == "not sent")
    assert again.page is again.chats.panes.pages[0]
    assert again.page.composer.text == ""
    again.chats.open_beside(None)
    again.page.composer.set_text("not begun")
    again.close()
    with closing(ChatStore(tmp_path / "chats.db")) as store:
        assert store.drafts() == {second: "not sent", NEW_BESIDE: "not begun"}


def test_the_fields_of_both_stand_level_in_any_size_of_text(qtbot, wide: MainWindow) -> None:
    ask(qtbot, wide, "Hi")
    wide.chats.open_beside(None)
    left, right = wide.chats.panes.pages
    right.choose_model("ember-draft-q8_0")
    right.fit.bar.hide()  # as where the context of a model is not known
    for percent in (150, 100):
        wide.resize_text(percent)
        qtbot.waitUntil(lambda: left.composer.geometry().bottom() == right.composer.geometry().bottom())


def test_an_empty_chat_greets_by_its_own_model(qtbot, window: MainWindow) -> None:
    window.watch.start()
    qtbot.waitUntil(lambda: "Ember" in window.page.welcome.note.text())
    window.chats.open_beside(None)
    window.page.choose_model("ember-draft-q8_0")
    assert "Ember" not in window.page.welcome.note.text()
    assert "Ember" in window.chats.panes.pages[0].welcome.note.text()
