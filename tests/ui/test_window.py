"""What a user does in the window, and what it then shows."""

from __future__ import annotations

import itertools
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
import shiboken6
from disks import fill_up, small_disk
from PySide6.QtCore import (
    QCoreApplication,
    QEvent,
    QMimeData,
    QModelIndex,
    QObject,
    QPoint,
    QRect,
    QSettings,
    QSize,
    Qt,
    QTimer,
)
from PySide6.QtGui import (
    QAction,
    QCursor,
    QFont,
    QFontMetrics,
    QGuiApplication,
    QInputMethodEvent,
    QPalette,
    QTextOption,
)
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QApplication,
    QFileDialog,
    QLabel,
    QLineEdit,
    QMenu,
    QMessageBox,
    QPlainTextEdit,
    QPushButton,
    QSlider,
    QStyle,
    QStyleOptionButton,
    QStyleOptionSlider,
    QStyleOptionViewItem,
    QTextEdit,
    QWidget,
    QWidgetItem,
)

from tests.support.chat_window import ask, ended, reply_view, say
from tests.support.contrast import contrast
from tools.stand_ins.fake_openai import FakeServer
from tools.stand_ins.library_server import LibraryServer
from ui.chat.chat_sessions import LIST_PAUSE_MS
from ui.chat.history.history_model import CHAT_ID
from ui.chat.markdown.text_view import TextView
from ui.chat.messages.message_view import MessageView
from ui.chat.messages.receipt_view import ReceiptLine
from ui.chat.messages.receipts import why_this_fast
from ui.chat.messages.user_message import MOST_SHOWN, UserMessage, beginning
from ui.chat.storage.ids import now_ms
from ui.chat.storage.store import NEW_CHAT, ChatStore
from ui.client.api import Api, ServerState
from ui.client.chat_records import Chat, ChatSettings, Message, Role, Status
from ui.client.server_watch import ModelChoice
from ui.gauges.gauge import Gauge
from ui.library.library_page import FIND
from ui.library.settings.settings_dialog import SettingsDialog
from ui.server.endpoint import EndpointState
from ui.theme.appearance import Appearance, ThemeChoice
from ui.theme.icons import icon
from ui.theme.tokens import DARK, LIGHT, TAB_WIDTH
from ui.widgets.growing_edit import LONGEST_LINE
from ui.widgets.page_layout import PageTabs, ScrollColumn, ask_first, open_menu, set_menu
from ui.widgets.row_list import ROW_HEIGHT
from ui.window.main_window import MainWindow
from ui.window.rail import PAGES
from ui.window.tab_order import in_reading_order


def asked_view(window: MainWindow) -> UserMessage:
    view = window.page.transcript.view_of(window.desk.current.tree.path[-2].id)
    assert isinstance(view, UserMessage)
    return view


def titles(window: MainWindow) -> list[str]:
    model = window.chats.history.model
    rows = [model.index(row) for row in range(model.rowCount())]
    return [index.data() for index in rows if index.data(CHAT_ID) is not None]


def test_what_an_empty_chat_offers_is_whole_in_any_window(qtbot, window: MainWindow, server: FakeServer) -> None:
    window.watch.start()
    welcome = window.page.welcome
    qtbot.waitUntil(lambda: "Ember" in welcome.note.text())
    labels = [label for example in welcome.examples for label in example.findChildren(QLabel)]

    def is_whole() -> bool:
        note, boxes = welcome.note.geometry(), [example.geometry() for example in welcome.examples]
        return (
            all(box.height() >= 66 for box in boxes)
            and all(label.width() >= label.minimumSizeHint().width() for label in labels)
            and all(label.height() >= label.heightForWidth(label.width()) for label in labels)
            and all(label.wordWrap() or label.width() >= label.sizeHint().width() for label in labels)
            and not any(one.intersects(other) for one in boxes for other in boxes if one is not other)
            and len({example.findChild(QLabel).y() for example in welcome.examples}) == 1
            and note.height() >= welcome.note.heightForWidth(note.width())
            and note.bottom() < min(box.top() for box in boxes)
        )

    assert welcome.focusPolicy() == Qt.FocusPolicy.NoFocus
    sizes = ((1180, 780), (720, 480), (640, 480), (480, 360))
    for size, percent in (*((size, 100) for size in sizes), (sizes[0], 150), (sizes[1], 150)):
        window.resize_text(percent)
        window.resize(*size)
        qtbot.waitUntil(is_whole)
        welcome.ensureWidgetVisible(welcome.examples[-1])
        assert welcome.examples[-1].visibleRegion().boundingRect().height() == welcome.examples[-1].height()
    example = welcome.examples[0]
    prompt = example.prompt
    example.click()
    qtbot.waitUntil(lambda: len(server.requests) == 1 and not window.desk.current.is_running)
    assert server.requests[0]["messages"][0]["content"] == prompt


def test_pages_are_no_wider_than_the_window(qtbot, window: MainWindow) -> None:
    def fits() -> bool:
        columns = [column for column in window.findChildren(ScrollColumn) if column.isVisible()]
        tabs = [tab for bar in bars() for tab in bar.tabs.values()]
        boxes = [tab.geometry() for tab in tabs]
        return (
            all(column.body.width() <= column.viewport().width() for column in columns)
            and all(one.mapTo(window, one.rect().bottomRight()).x() < window.width() for one in (*columns, *tabs))
            and not any(one.intersects(other) for one in boxes for other in boxes if one is not other)
        )

    def bars() -> list[PageTabs]:
        return [bar for bar in window.findChildren(PageTabs) if bar.isVisible()]

    ask(qtbot, window, "Hi")
    reply_view(window).receipt.click()
    for size, percent in (((480, 360), 150), ((800, 600), 150), ((1180, 780), 100)):
        window.resize_text(percent)
        window.resize(*size)
        for page in PAGES:
            window.show_page(page)
            qtbot.waitUntil(fits)
            for bar in bars():
                assert [tab.text() for tab in bar.tabs.values()] == list(bar.tabs), "some stand below the others"


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("word " * 10_000, QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere),
        ("a1b2c3d4" * 25_000, QTextOption.WrapMode.WrapAnywhere),
        (f"See: {'x' * 190_000} - why?", QTextOption.WrapMode.WrapAnywhere),
    ],
    ids=["words", "one word", "a long word between others"],
)
def test_a_word_of_many_pages_is_not_laid_out_in_the_slow_way(
    qtbot, window: MainWindow, server: FakeServer, text: str, mode: QTextOption.WrapMode
) -> None:
    field = window.page.composer.field
    paste(field, text)
    assert longest_block(field) == LONGEST_LINE
    assert field.toPlainText() == text
    qtbot.keyClick(field, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: not window.desk.current.is_running)
    assert server.requests[-1]["messages"][-1]["content"] == text
    asked_view(window).more.click()
    assert asked_view(window).view.wordWrapMode() == mode
    asked_view(window).edit.click()
    editor = asked_view(window).editor
    assert editor is not None
    assert longest_block(editor.field) == LONGEST_LINE
    assert editor.field.toPlainText() == text


def test_a_line_in_pieces_is_copied_and_changed_as_the_line_that_it_is(qtbot, window: MainWindow) -> None:
    field, line = window.page.composer.field, "0123456789" * 2_500
    paste(field, f"a\r\n{line}\nb")
    assert field.toPlainText() == f"a\n{line}\nb"
    assert longest_block(field) == LONGEST_LINE
    field.selectAll()
    assert field.createMimeDataFromSelection().text() == f"a\n{line}\nb"
    cursor = field.textCursor()
    cursor.setPosition(2 + LONGEST_LINE + 1 + 4)
    field.setTextCursor(cursor)
    qtbot.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    paste(field, "c\nd\n")
    at = LONGEST_LINE + 4
    changed = f"a\n{line[:at]}\nc\nd\n{line[at:]}\nb"
    assert field.toPlainText() == changed
    field.undo()
    field.undo()
    assert field.toPlainText() == f"a\n{line}\nb"
    field.redo()
    field.redo()
    assert field.toPlainText() == changed
    field.selectAll()
    paste(field, "short\nagain")
    assert field.toPlainText() == "short\nagain"
    field.selectAll()
    assert field.createMimeDataFromSelection().text() == "short\nagain"


def test_what_was_there_before_typing_is_not_undone(qtbot, window: MainWindow) -> None:
    composer, undo = window.page.composer, (Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    composer.set_text("A draft")
    qtbot.keyClicks(composer.field, " more")
    for _ in range(3):
        qtbot.keyClick(composer.field, *undo)
    assert composer.text == "A draft"
    composer.set_text("")
    ask(qtbot, window, "Which fox?")
    asked_view(window).edit.click()
    field = asked_view(window).editor.field
    qtbot.keyClick(field, *undo)
    assert field.toPlainText() == "Which fox?"


def test_a_word_that_is_being_composed_goes_with_a_message_sent_by_its_button(
    qtbot, window: MainWindow, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    composer = window.page.composer
    composer.set_text("Say ")
    composed = QInputMethodEvent("ni hao", [])
    QApplication.sendEvent(composer.field, composed)

    class InputMethod:
        def commit(self) -> None:
            chosen = QInputMethodEvent()
            chosen.setCommitString("你好")
            QApplication.sendEvent(composer.field, chosen)

    monkeypatch.setattr(QGuiApplication, "inputMethod", staticmethod(InputMethod))
    qtbot.mouseClick(composer.button, Qt.MouseButton.LeftButton)
    ended(qtbot, window)
    assert server.requests[-1]["messages"][-1]["content"] == "Say 你好"
    assert composer.text == ""


def test_formatted_text_alone_is_pasted_as_its_words(window: MainWindow) -> None:
    field, pasted = window.page.composer.field, QMimeData()
    pasted.setData("text/html", b"<p>The <b>fox</b> &amp; the hen</p><p><img src='x.png'>sleep</p>")
    assert field.canInsertFromMimeData(pasted)
    field.insertFromMimeData(pasted)
    assert field.toPlainText() == "The fox & the hen\nsleep"


def paste(field: QPlainTextEdit, text: str) -> None:
    pasted = QMimeData()
    pasted.setText(text)
    field.insertFromMimeData(pasted)


def longest_block(field: QPlainTextEdit) -> int:
    document = field.document()
    return max(document.findBlockByNumber(n).length() - 1 for n in range(document.blockCount()))


def test_writing_begins_at_the_side_of_its_script(window: MainWindow) -> None:
    field = window.page.composer.field
    for text, is_from_right in (("Hello", False), ("שלום", True), ("", False), ("مرحبا\nHello", True)):
        field.setPlainText(text)
        line = field.document().firstBlock().layout().lineAt(0)
        begin = line.cursorToX(0)
        begin = begin[0] if isinstance(begin, tuple) else begin
        assert (begin > line.width() / 2) is is_from_right, text


def test_an_open_receipt_has_its_whole_height_before_it_is_painted(qtbot, window: MainWindow) -> None:
    window.resize(900, 480)
    ask(qtbot, window, "Tell me a story.")
    reply_view(window).receipt.toggle()
    card = reply_view(window).receipt_card
    assert card.height() == card.heightForWidth(card.width())
    at_once = card.height()
    QCoreApplication.processEvents()
    assert card.height() == at_once


def test_a_message_is_answered_with_a_receipt_and_kept(qtbot, window: MainWindow, tmp_path: Path) -> None:
    assert window.page.stack.currentWidget() is window.page.welcome
    message = ask(qtbot, window, "Tell me a story.")
    assert window.page.stack.currentWidget() is window.page.transcript
    assert (message.content, message.status) == ("Hello there.", Status.DONE)
    view = reply_view(window)
    assert not {"thoughts", "stages", "problem", "spark_note"} & set(vars(view)), "nothing is made that it has not"
    assert view.receipt.text().startswith("412 tok/s  ·  1.7× plain  ·  62 of 80 drafts accepted  ·  first token 38 ms")
    view.receipt.setFocus()
    qtbot.keyClick(view.receipt, Qt.Key.Key_Space)
    assert view.receipt_card.isVisible()
    facts = view.receipt_card.facts.facts
    assert facts["Drafts"] == "62 of 80 accepted, 78%"
    assert facts["Memory"] == "2.4 GB/s, 31% of the peak"
    assert facts["Seed"] == "7"
    assert view.receipt_card.why.text() == why_this_fast(view.message.timings)
    qtbot.mouseClick(view.receipt, Qt.MouseButton.LeftButton)
    assert not view.receipt_card.isVisible()
    qtbot.waitUntil(lambda: titles(window) == ["Tell me a story."])
    window.close()
    store = ChatStore(tmp_path / "chats.db")
    assert [m.content for m in store.messages(store.chats()[0].id)] == ["Tell me a story.", "Hello there."]
    store.close()


def test_while_it_streams_speed_shows_and_stop_keeps_what_came(qtbot, window: MainWindow, server: FakeServer) -> None:
    server.pieces, server.delay = ["word "] * 10_000, 0.005
    say(qtbot, window, "Go on.")
    qtbot.waitUntil(lambda: "tok/s" in reply_view(window).receipt.text())
    assert "first token" in reply_view(window).receipt.text()
    assert window.page.composer.button.accessibleName() == "Stop"
    assert window.desk.running == {window.desk.current.chat.id}
    qtbot.mouseClick(window.page.composer.button, Qt.MouseButton.LeftButton)
    message = window.desk.current.tree.path[-1]
    assert message.status is Status.STOPPED
    assert message.content.startswith("word word")
    assert reply_view(window).receipt.text().startswith("Stopped  ·  ")
    qtbot.waitUntil(server.gone.is_set)


def test_a_click_into_a_growing_reply_leaves_scrolling_to_the_user(
    qtbot, window: MainWindow, server: FakeServer
) -> None:
    server.steps, server.pieces = threading.Semaphore(20), [f"Word {number} of many.\n\n" for number in range(80)]
    server.pieces += ["A last part ", "that grows ", "and grows."]
    say(qtbot, window, "Hi")
    qtbot.waitUntil(lambda: bool(window.desk.current.tree.path[1:]) and reply_view(window).text.count("Word") == 20)
    reply, bar = reply_view(window), window.page.transcript.verticalScrollBar()
    server.steps.release(61)
    qtbot.waitUntil(lambda: "A last part" in reply.view.toPlainText() and bar.value() == bar.maximum() > 0)
    reply.view.setFocus()
    cursor = reply.view.textCursor()
    cursor.setPosition(reply.view.toPlainText().index("last"))
    cursor.movePosition(cursor.MoveOperation.EndOfWord, cursor.MoveMode.KeepAnchor)
    reply.view.setTextCursor(cursor)
    bar.setValue(40)
    server.steps.release(9)
    qtbot.waitUntil(lambda: not window.desk.current.is_running and "and grows." in reply.view.toPlainText())
    assert bar.value() == 40
    assert reply.view.textCursor().selectedText() == "last"


def test_enter_sends_and_shift_enter_starts_a_line(qtbot, window: MainWindow, server: FakeServer) -> None:
    field = window.page.composer.field
    say(qtbot, window, " \n ")
    assert window.desk.current.is_new, "a blank message is not sent"
    assert not window.page.composer.button.isEnabled()
    field.clear()
    low = field.height()
    qtbot.keyClicks(field, "one")
    qtbot.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClicks(field, "two")
    assert field.height() > low
    qtbot.keyClick(field, Qt.Key.Key_Enter)
    qtbot.waitUntil(lambda: len(server.requests) == 1)
    assert server.requests[0]["messages"] == [{"role": "user", "content": "one\ntwo"}]
    assert field.toPlainText() == ""
    qtbot.waitUntil(lambda: not window.desk.current.is_running)


def test_an_answer_can_be_asked_for_again_and_both_are_kept(qtbot, window: MainWindow, server: FakeServer) -> None:
    ask(qtbot, window, "Hi")
    server.pieces = ["**Another** `x`."]
    reply_view(window).redo.click()
    qtbot.waitUntil(lambda: not window.desk.current.is_running)
    view = reply_view(window)
    assert (view.text, view.versions.label.text()) == ("**Another** `x`.", "2 / 2")
    view.copy.click()
    assert QGuiApplication.clipboard().text() == "**Another** `x`.", "as it was written"
    view.versions.back.click()
    assert (reply_view(window).text, reply_view(window).versions.label.text()) == ("Hello there.", "1 / 2")
    assert [m["role"] for m in server.requests[1]["messages"]] == ["user"]


def test_a_message_can_be_edited_and_sent_again(qtbot, window: MainWindow, server: FakeServer) -> None:
    ask(qtbot, window, "Hi")
    asked_view(window).edit.click()
    qtbot.keyClick(asked_view(window).editor.field, Qt.Key.Key_Escape)
    assert asked_view(window).editor is None
    assert not asked_view(window).bubble.isHidden()
    asked_view(window).edit.click()
    window.page.composer.setFocus()
    qtbot.waitUntil(lambda: not asked_view(window).editor.property("focused"))
    cancel = next(button for button in asked_view(window).editor.findChildren(QPushButton) if button.text() == "Cancel")
    qtbot.mouseClick(cancel, Qt.MouseButton.LeftButton)
    assert window.focusWidget() is asked_view(window).edit
    assert asked_view(window).edit.isVisible()
    asked_view(window).edit.click()
    editor = asked_view(window).editor
    assert editor is not None
    editor.field.setPlainText("Bye")
    qtbot.keyClick(editor.field, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: len(server.requests) == 2 and not window.desk.current.is_running)
    assert server.requests[1]["messages"] == [{"role": "user", "content": "Bye"}]
    assert asked_view(window).versions.label.text() == "2 / 2"


def test_of_a_very_long_message_the_beginning_is_shown_and_all_of_it_is_sent(
    qtbot, window: MainWindow, server: FakeServer
) -> None:
    text = "\n".join(f"line {number}" for number in range(6_000))
    ask(qtbot, window, text)
    assert server.requests[-1]["messages"][-1]["content"] == text
    view = asked_view(window)
    assert len(view.view.toPlainText()) <= MOST_SHOWN + 2
    assert text.startswith(view.view.toPlainText().removesuffix(" …") + "\n")
    view.copy.click()
    assert QGuiApplication.clipboard().text() == text
    assert view.more.text() == f"Show all {len(text):,} characters"
    view.more.click()
    assert view.view.toPlainText() == text
    assert view.more.isHidden()
    view.restyle()
    assert view.view.toPlainText() == text
    ask(qtbot, window, "short")
    assert asked_view(window).more is None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("x" * 20_000, "x" * MOST_SHOWN + "…"),
        ("x" * (MOST_SHOWN - 50) + " " + "y" * 100, "x" * (MOST_SHOWN - 50) + " …"),
        ("x" * (MOST_SHOWN - 50) + "\n" + "y " * 100, "x" * (MOST_SHOWN - 50) + " …"),
    ],
)
def test_a_long_text_is_cut_where_a_line_or_a_word_ends(text: str, shown: str) -> None:
    assert beginning(text) == shown


def test_what_the_model_does_without_is_said_once_and_comes_back_by_a_click(
    qtbot, window: MainWindow, server: FakeServer
) -> None:
    window.watch.start()
    qtbot.waitUntil(lambda: window.watch.state.phase == "ready")
    banner = window.page.server_banner
    server.left_out = ["Since the engine died twice, nothing drafts until the model is loaded again."]
    window.watch.look()
    qtbot.waitUntil(lambda: "nothing drafts" in banner.text)
    banner.close_button.click()
    server.n_ctx_train = 2048
    window.watch.look()
    qtbot.waitUntil(lambda: window.watch.state.n_ctx_train == 2048)
    assert banner.text == ""
    server.left_out = [*server.left_out, "Texts that were kept in memory or on disk are not used until then."]
    window.watch.look()
    qtbot.waitUntil(lambda: "not used" in banner.text)
    banner.action.click()
    qtbot.waitUntil(lambda: server.loads == ["ember-q8_0"])
    server.left_out = []
    window.watch.look()
    qtbot.waitUntil(lambda: banner.text == "")


def test_a_failed_reply_says_why_and_can_be_tried_again(qtbot, window: MainWindow, server: FakeServer) -> None:
    server.error = (400, {"error": {"message": "The prompt has 9 tokens too many.", "type": "x"}})
    message = ask(qtbot, window, "Hi")
    view = reply_view(window)
    assert message.status is Status.FAILED
    assert view.problem.text == "The prompt has 9 tokens too many."
    assert not view.problem.isHidden()
    assert view.copy.isHidden()
    server.error = None
    view.problem.button.click()
    qtbot.waitUntil(lambda: not window.desk.current.is_running)
    assert reply_view(window).text == "Hello there."
    assert server.requests[-1]["messages"] == [{"role": "user", "content": "Hi"}]
    server.error_in_stream = "The engine stopped in the middle of this reply."
    message = ask(qtbot, window, "Again")
    assert (message.content, message.status) == ("Hello there.", Status.FAILED)
    view = reply_view(window)
    assert view.problem.text == "The engine stopped in the middle of this reply."
    qtbot.waitUntil(lambda: view.copy.geometry().right() == view.footer.geometry().right())  # no room for “again”


def test_a_chat_that_is_left_goes_on_with_its_reply(qtbot, window: MainWindow, server: FakeServer) -> None:
    server.pieces, server.steps = ["a ", "b ", "c "] * 30, threading.Semaphore(2)
    say(qtbot, window, "Go on.")
    qtbot.waitUntil(lambda: window.desk.current.running.ttft is not None)
    first = window.desk.current
    window.desk.new_chat()
    assert window.page.stack.currentWidget() is window.page.welcome
    assert window.desk.running == {first.chat.id}
    window.desk.open(first.chat.id)
    assert window.desk.current is first
    server.steps.release(len(server.pieces))
    qtbot.waitUntil(lambda: not first.is_running)
    assert reply_view(window).text == "".join(server.pieces)


def test_chats_are_searched_renamed_deleted_and_brought_back(qtbot, window: MainWindow, server: FakeServer) -> None:
    ask(qtbot, window, "Foxes and hens")
    window.chats.history.new.click()
    server.pieces = ["A bridge."]
    ask(qtbot, window, "Rivers")
    qtbot.waitUntil(lambda: titles(window) == ["Rivers", "Foxes and hens"])
    window.chats.history.search.setText("brid")
    qtbot.waitUntil(lambda: titles(window) == ["Rivers"])
    window.chats.history.search.clear()
    qtbot.waitUntil(lambda: len(titles(window)) == 2)
    model = window.chats.history.model
    model.setData(model.index(1), "  Big   rivers ")
    qtbot.waitUntil(lambda: "Big rivers" in titles(window))
    assert window.desk.current.chat.title == "Big rivers"
    window.chats.history.list.setCurrentIndex(model.index(1))
    qtbot.keyClick(window.chats.history.list, Qt.Key.Key_Delete)
    qtbot.waitUntil(lambda: titles(window) == ["Foxes and hens"])
    assert window.chats.toast.text == "Chat deleted"
    window.chats.toast.button.click()
    qtbot.waitUntil(lambda: len(titles(window)) == 2)


@pytest.mark.parametrize("text", ["", "a\n" * 30])
def test_a_notice_leaves_what_is_being_written_alone(qtbot, window: MainWindow, text: str) -> None:
    ask(qtbot, window, "Hi")
    window.chats.history.deleted.emit(window.desk.current.chat.id)
    qtbot.waitUntil(window.chats.toast.isVisible)
    window.page.composer.set_text(text)

    def is_clear() -> bool:
        toast, composer = (
            QRect(one.mapTo(window, QPoint()), one.size()) for one in (window.chats.toast, window.page.composer)
        )
        return toast.bottom() < composer.top() and composer.top() > 0

    qtbot.waitUntil(is_clear)


def test_what_is_not_chosen_is_left_to_the_model(qtbot, window: MainWindow, server: FakeServer) -> None:
    ask(qtbot, window, "Hi")
    assert server.requests[0].keys() == {"messages", "timings_per_token", "return_progress", "stream"}
    rows = window.chats.tuning.rows
    assert {row.field.text() for row in rows.values()} == {"Auto"}
    # A slider stands at the default until it is moved.
    assert rows["temperature"].slider.value() * 0.05 == pytest.approx(0.8)
    rows["temperature"].slider.setValue(0)
    assert rows["temperature"].field.text() == "0.00"
    ask(qtbot, window, "Again")
    assert server.requests[1]["temperature"] == 0.0
    rows["temperature"].field.setValue(-1.0)
    ask(qtbot, window, "And again")
    assert "temperature" not in server.requests[2]


def test_what_was_not_sent_is_there_after_a_restart(qtbot, qapp, window: MainWindow, tmp_path: Path) -> None:
    ask(qtbot, window, "Hi")
    first = window.desk.current.chat.id
    window.page.composer.set_text("for the first chat")
    window.desk.new_chat()
    assert window.page.composer.text == ""
    window.page.composer.set_text("for a chat\nnot begun")
    window.jobs.question.setPlainText("What is a fox, really?\nAnd why?")
    window.close()
    again = MainWindow(Api(), Appearance(qapp), tmp_path / "chats.db", tmp_path / "window.ini")
    qtbot.addWidget(again)
    qtbot.waitUntil(lambda: again.page.composer.text == "for a chat\nnot begun")
    assert again.jobs.question.toPlainText() == "What is a fox, really?\nAnd why?"
    again.desk.open(first)
    qtbot.waitUntil(lambda: again.page.composer.text == "for the first chat")
    again.page.composer.set_text("")
    again.desk.new_chat()
    assert again.page.composer.text == "for a chat\nnot begun"
    again.close()
    with closing(ChatStore(tmp_path / "chats.db")) as store:
        assert store.drafts() == {NEW_CHAT: "for a chat\nnot begun"}


def test_deleting_and_archiving_are_undone_one_after_the_other(qtbot, window: MainWindow) -> None:
    ids = []
    for title in ("one", "two", "three"):
        window.desk.new_chat()
        ids.append(ask(qtbot, window, title).chat_id)
    window.desk.delete(ids[0])
    window.desk.archive(ids[1], is_archived=True)
    window.desk.delete(ids[2])
    qtbot.waitUntil(lambda: titles(window) == [])
    window.chats.toast.hide()  # keys undo also what is not offered any more
    chats, field = window.chats.history.list, window.page.composer.field
    for place, listed in ((chats, ["three"]), (field, ["three", "two"]), (field, ["three", "two", "one"])):
        place.setFocus()
        if place is field:  # what was typed there goes first
            qtbot.keyClicks(field, "a")
            qtbot.keyClick(field, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
            assert field.toPlainText() == ""
        qtbot.keyClick(place, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
        qtbot.waitUntil(lambda listed=listed: titles(window) == listed)


def test_a_folder_that_is_renamed_or_removed_stays_closed_and_comes_back(qtbot, window: MainWindow) -> None:
    now, model = now_ms(), window.chats.history.model
    for number, title in enumerate(("one", "two", "three", "apart"), 1):
        window.chats.archive.save_chat(Chat(number, title, now, now))
    for number in (1, 2, 3):
        window.desk.move(number, "work")
    window.desk.move(4, "home")
    window.desk.archive(3, is_archived=True)

    def shown() -> list[str]:
        return [str(model.index(row).data()) for row in range(model.rowCount())]

    def rename(folder: str, name: str, then: list[str], told: str) -> None:
        index = model.index(shown().index(folder))
        if name:
            assert model.setData(index, name)
        else:
            window.chats.history.menu_for(index).actions()[1].trigger()
        qtbot.waitUntil(lambda: shown() == then)
        assert window.chats.toast.text == told

    qtbot.waitUntil(lambda: shown() == ["home", "apart", "work", "two", "one"])
    model.open_folder("work", False)
    assert not model.setData(model.index(2), "work"), "the same name"
    rename("work", "play", ["home", "apart", "play"], "Folder renamed")
    rename("play", "home", ["home", "apart", "two", "one"], "Folder renamed")  # into another one, which is open
    rename("home", "", ["Today", "apart", "two", "one"], "Folder removed")
    for then in (["home", "apart", "two", "one"], ["home", "apart", "play"], ["home", "apart", "work"]):
        window.chats.undo()
        qtbot.waitUntil(lambda then=then: shown() == then)
    model.open_folder("work", True)
    window.desk.archive(3, is_archived=False)
    qtbot.waitUntil(lambda: shown() == ["home", "apart", "work", "three", "two", "one"])
    rename("work", "play", ["home", "apart", "play", "three", "two", "one"], "Folder renamed")
    rename("play", "", ["home", "apart", "Today", "three", "two", "one"], "Folder removed")
    window.desk.move(2, "home")
    window.chats.undo()  # what was moved since stays where it was moved to
    qtbot.waitUntil(lambda: shown() == ["home", "apart", "two", "play", "three", "one"])
    window.desk.move(1, "home")
    window.chats.undo()
    qtbot.waitUntil(lambda: shown() == ["home", "apart", "two", "one", "work", "three"])


def test_what_is_sent_is_no_draft_any_more(qtbot, window: MainWindow, tmp_path: Path) -> None:
    window.page.composer.set_text("Hi")
    window.page.keep_draft()
    ask(qtbot, window, "Hi")
    window.page.composer.set_text("and")
    window.close()
    with closing(ChatStore(tmp_path / "chats.db")) as store:
        assert store.drafts() == {window.desk.current.chat.id: "and"}


def test_a_chat_begun_while_the_disk_was_full_is_listed_when_it_is_not(qtbot, qapp, api: Api, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 400 << 10) as disk:
        window = MainWindow(api, Appearance(qapp), disk / "chats.db", tmp_path / "window.ini")
        qtbot.addWidget(window)
        window.show()
        assert window.chats.archive.flush()
        fill_up(disk / "full")
        chat = ask(qtbot, window, "Begun without room " + "x" * 50_000).chat_id
        qtbot.waitUntil(lambda: "disk is full" in window.chats.storage_banner.text)
        qtbot.waitUntil(lambda: len(titles(window)) == 1)
        window.desk.new_chat()
        window.desk.open(chat)  # though it is not on the disk
        assert len(window.desk.current.tree.path) == 2
        assert not window.close()
        (box,) = window.findChildren(QMessageBox)
        assert "cannot be saved" in box.text()
        box.button(QMessageBox.StandardButton.Cancel).click()
        assert window.isVisible()
        window.desk.new_chat()
        assert window.desk.at_work(chat) is not None
        (disk / "full").unlink()
        qtbot.waitUntil(lambda: window.chats.storage_banner.text == "")
        qtbot.waitUntil(lambda: len(titles(window)) == 1)
        assert window.desk.at_work(chat) is None, "it is read from the disk again"
        window.close()


def test_on_a_full_disk_chats_are_deleted_restored_and_listed_as_elsewhere(
    qtbot, qapp, api: Api, tmp_path: Path
) -> None:
    with small_disk(tmp_path / "disk", 400 << 10) as disk:
        window = MainWindow(api, Appearance(qapp), disk / "chats.db", tmp_path / "window.ini")
        qtbot.addWidget(window)
        window.show()
        put_away = ask(qtbot, window, "Put away").chat_id
        window.desk.archive(put_away, is_archived=True)
        window.desk.new_chat()
        kept = ask(qtbot, window, "Kept").chat_id
        qtbot.waitUntil(lambda: titles(window) == ["Kept"])
        fill_up(disk / "full")
        window.desk.new_chat()
        begun = ask(qtbot, window, "x" * 50_000).chat_id
        qtbot.waitUntil(lambda: len(titles(window)) == 2)
        window.desk.open(put_away)
        qtbot.waitUntil(lambda: window.desk.current.chat.id == put_away)
        window.desk.rename(begun, "Begun")
        qtbot.waitUntil(lambda: titles(window) == ["Begun", "Kept"])
        window.desk.delete(begun)
        window.desk.delete(kept)
        qtbot.waitUntil(lambda: titles(window) == [])
        window.desk.open(kept)
        window.desk.open(begun)
        offered = list[object]()
        window.chats.ask_for_commands(offered.extend)
        assert window.chats.archive.flush()
        QApplication.processEvents()
        assert offered == [], "they were deleted, though one is in the file"
        assert window.desk.current.chat.id == put_away
        window.desk.restore(begun)
        qtbot.waitUntil(lambda: titles(window) == ["Begun"])
        window.chats.ask_for_commands(lambda commands: [command.act() for command in commands])
        qtbot.waitUntil(lambda: window.desk.current.chat.id == begun)
        assert len(window.desk.current.tree.path) == 2
        ask_first(window, "Another question?", "", "Yes", lambda: None)
        assert not window.close()
        box = next(box for box in window.findChildren(QMessageBox) if "cannot be saved" in box.text())
        assert box.informativeText() == "What could not be saved is lost."
        next(button for button in box.buttons() if button.text() == "Quit").click()
        assert not window.isVisible()


def test_chats_that_cannot_be_read_are_not_read_over_and_over(
    qtbot, window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = []

    def fail(store: ChatStore, limit: int = -1) -> list[object]:
        reads.append(limit)
        raise sqlite3.OperationalError("disk I/O error")

    assert window.chats.archive.flush()
    monkeypatch.setattr(ChatStore, "chats", fail)
    window.desk.list_soon()
    banner = window.chats.storage_banner
    qtbot.waitUntil(lambda: "could not be read" in banner.text)
    banner.close_button.click()
    qtbot.wait(4 * LIST_PAUSE_MS)
    assert (len(reads), banner.text) == (1, "")


def test_what_a_banner_offers_stays_within_the_narrowest_window(qtbot, window: MainWindow) -> None:
    window.resize_text(150)
    window.resize(480, 720)
    for banner in (window.page.server_banner, window.page.fit.banner, window.chats.storage_banner):
        banner.say("Something is wrong with the server.", action=("Start as recommended", lambda: None))
        qtbot.wait(1)  # it is laid out
        whole = QRect(window.mapFromGlobal(banner.mapToGlobal(QPoint(0, 0))), banner.size())
        assert window.rect().contains(whole)
        assert banner.rect().contains(banner.close_button.geometry())
        assert banner.action.width() >= banner.action.sizeHint().width()


def test_a_receipt_stays_within_a_narrow_chat(qtbot, window: MainWindow) -> None:
    window.resize_text(150)
    window.resize(800, 600)
    window.chats.toggle_settings()
    ask(qtbot, window, "Hi")
    reply_view(window).receipt.click()
    card, room = reply_view(window).receipt_card, window.page.transcript.viewport().width()
    for words in ("Tint", "Tint the words that were drafted, as in German"):
        card.tint.setText(words)
        qtbot.waitUntil(
            lambda: card.tint.width() == min(card.tint.sizeHint().width(), card.layout().contentsRect().width())
        )
        qtbot.waitUntil(lambda: card.width() <= room)
        option = QStyleOptionButton()
        card.tint.initStyleOption(option)
        assert option.text == words if words == "Tint" else option.text.startswith("Tint the") and "…" in option.text


def test_a_stopped_reply_has_the_figures_that_were_seen(qtbot, window: MainWindow, server: FakeServer) -> None:
    server.pieces, server.tokens_each, server.steps = ["word "] * 20, 2, threading.Semaphore(0)
    say(qtbot, window, "Go on.")
    for n_pieces in (1, 2, 3):
        server.steps.release()
        qtbot.waitUntil(lambda n=n_pieces: (now := window.desk.current.running) and now.text == "word " * n)
    window.desk.current.stop()
    server.steps.release(20)
    timings = window.desk.current.tree.path[-1].timings
    assert timings is not None
    assert (timings.decode_tokens, timings.knows_prompt) == (6, False)
    assert timings.decode_per_second == pytest.approx(4 / timings.decode_ms * 1_000)
    receipt = reply_view(window).receipt.text()
    assert receipt.startswith("Stopped  ·  ")
    assert "6 tokens" in receipt
    assert "prompt" not in receipt


def ways(window: MainWindow) -> dict[str, QAction]:
    menu = next(menu for menu in window.page.findChildren(QMenu) if menu.isVisible())
    return {action.text(): action for action in menu.actions()}


def test_a_message_of_several_lines_stands_above_the_buttons(qtbot, window: MainWindow) -> None:
    composer = window.page.composer
    composer.set_text("Hello")
    beside = composer.field.width()
    composer.set_text("word " * 60)
    qtbot.waitUntil(lambda: composer.field.geometry().bottom() < composer.attach.y())
    assert composer.field.width() > beside + 100
    order = list(in_reading_order(composer))
    assert order.index(composer.field) < order.index(composer.attach)
    composer.field.selectAll()
    qtbot.keyClicks(composer.field, "word")
    QGuiApplication.processEvents()
    assert composer.field.width() > beside + 100, "it does not jump while it is written"
    qtbot.keyClick(composer.field, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: composer.field.width() == beside)
    window.resize(700, 600)
    window.chats.toggle_settings()
    qtbot.waitUntil(lambda: composer.field.geometry().bottom() < composer.attach.y())
    words = QFontMetrics(composer.field.font()).horizontalAdvance(composer.field.placeholderText())
    assert words < composer.field.viewport().width(), "what belongs here is read in the narrowest field"


def test_a_message_that_would_not_fit_is_told_before_it_is_sent(
    qtbot, window: MainWindow, server: FakeServer, library_server: LibraryServer
) -> None:
    window.watch.start()
    banner, composer = window.page.fit.banner, window.page.composer
    qtbot.waitUntil(lambda: window.watch.state.n_ctx == 1024)
    composer.set_text("Hello")
    window.page.keep_draft()
    assert banner.text == ""
    composer.set_text("word " * 1_200)
    qtbot.waitUntil(lambda: "holds 1,024" in banner.text)
    assert "choose a model with a larger context" in banner.text
    assert banner.action.text() == "Choose another model"
    server.n_ctx_train = 8_192
    window.watch.look()
    qtbot.waitUntil(lambda: banner.action.text() == "Make it fit…")
    wanted: list[tuple[object, ...]] = []
    window.page.context_wanted.connect(lambda *found: wanted.append(found))
    banner.action.click()
    ways(window)["Load the model with 4,096 tokens of context"].trigger()
    assert wanted[0][:2] == ("ember-q8_0", 4_096)
    qtbot.waitUntil(lambda: server.loads == ["ember-q8_0"])
    composer.set_text("Hello")
    qtbot.waitUntil(lambda: banner.text == "")


def test_earlier_messages_can_be_left_out_where_a_chat_is_too_long(
    qtbot, window: MainWindow, server: FakeServer
) -> None:
    server.timings = server.timings | {"prefill_tokens": 0, "cached_tokens": 0}  # the length of texts is to count
    window.watch.start()
    qtbot.waitUntil(lambda: window.watch.state.n_ctx == 1024)
    for text in ("first " * 300, "second " * 300):
        ask(qtbot, window, text)
    window.page.composer.set_text("third " * 100)
    qtbot.waitUntil(lambda: "holds 1,024" in window.page.fit.banner.text)
    window.page.fit.banner.action.click()
    ways(window)["Leave out earlier messages"].trigger()
    assert window.page.fit.banner.text == ""
    ask(qtbot, window, "third")
    assert [message["content"][:6] for message in server.requests[-1]["messages"]] == ["third"]
    ask(qtbot, window, "fourth")
    assert [message["content"][:6] for message in server.requests[-1]["messages"]] == ["third", "Hello ", "fourth"]


def test_a_message_that_was_too_long_does_not_block_its_chat(qtbot, window: MainWindow, server: FakeServer) -> None:
    window.watch.start()
    qtbot.waitUntil(lambda: window.watch.state.phase == "ready")
    sentence = "The prompt has 2113 tokens, which exceeds the available context size of 1024. Shorten it."
    server.error = (400, {"error": {"message": sentence, "type": "x", "code": "context_length_exceeded"}})
    ask(qtbot, window, "long " * 10_000)
    problem = reply_view(window).problem
    assert problem.text == "This is too long: the model cannot read all of it at once."
    assert problem.button.text() == "Make it fit…"
    problem.button.click()
    assert list(ways(window)) == ["Shorten the message"]
    ways(window)["Shorten the message"].trigger()
    assert asked_view(window).editor is not None
    server.error = None
    ask(qtbot, window, "short")
    assert [message["content"] for message in server.requests[-1]["messages"]] == ["short"]


def test_what_is_typed_beside_the_field_goes_into_it(qtbot, window: MainWindow) -> None:
    ask(qtbot, window, "Hi")
    reply = reply_view(window)
    for place in (reply.redo, reply.view, window.page.transcript):
        place.setFocus()
        qtbot.keyClicks(place, "a")
        assert window.focusWidget() is window.page.composer.field
    reply.redo.setFocus()
    qtbot.keyClick(reply.redo, Qt.Key.Key_B, Qt.KeyboardModifier.AltModifier)
    assert window.page.composer.text == "aaa"


def test_what_goes_away_leaves_the_keyboard_where_it_was(qtbot, window: MainWindow) -> None:
    shelf = window.page.composer.shelf
    shelf.tell("fox.pdf holds no text.", can_choose=True)
    shelf.way_out.setFocus()
    qtbot.mouseClick(shelf.dismiss, Qt.MouseButton.LeftButton)
    assert window.focusWidget() is window.page.composer.field
    window.show_page("jobs")
    assert window.jobs is not None
    window.jobs.ask.setFocus()
    window.jobs.ask.setEnabled(False)
    assert window.focusWidget() is window.jobs


def test_a_button_whose_menu_is_closed_does_not_look_as_if_the_mouse_were_on_it(qtbot, window: MainWindow) -> None:
    QCursor.setPos(window.mapToGlobal(window.rect().center()))
    own, more = QPushButton("More", window), window.chats.history.more
    set_menu(own, QMenu(window))
    own.menu().addAction("Less")
    for button, open_it in ((own, lambda: own.menu().popup(QPoint())), (more, more.click)):
        button.setAttribute(Qt.WidgetAttribute.WA_UnderMouse)  # as the click that opens it leaves it
        open_it()
        QApplication.activePopupWidget().close()
        qtbot.waitUntil(lambda button=button: not button.underMouse(), timeout=500)


def test_a_menu_that_outlives_its_button_is_closed(qtbot, window: MainWindow) -> None:
    for has_menu in (True, False):
        menu, button = QMenu(window), QPushButton("More", window)
        menu.addAction("Less")
        if has_menu:
            set_menu(button, menu)
        open_menu(menu, button)
        shiboken6.delete(button)
        menu.close()
        assert not menu.isVisible()


def test_where_its_model_is_gone_another_one_answers(qtbot, window: MainWindow, server: FakeServer) -> None:
    window.watch.start()
    qtbot.waitUntil(lambda: len(window.watch.models) == 2)
    server.error = (404, {"error": {"message": "There is no model fox.", "type": "x", "code": "model_not_found"}})
    ask(qtbot, window, "Hi")
    problem = reply_view(window).problem
    assert (problem.text, problem.button.text()) == ("This model is not here any more.", "Choose another model")
    problem.button.click()
    assert list(ways(window)) == ["ember-q8_0", "ember-draft-q8_0", "Try again"]
    server.error = None
    ways(window)["ember-draft-q8_0"].trigger()
    reply = ended(qtbot, window)
    assert (reply.status, reply.model, server.requests[-1]["model"]) == (Status.DONE, *["ember-draft-q8_0"] * 2)


def way_out_of_death(qtbot, window: MainWindow, server: FakeServer, model: str) -> QPushButton:
    """Ask a model whose engine dies; return the button under the reply."""
    window.watch.start()
    qtbot.waitUntil(lambda: len(window.watch.models) == 2)
    window.page.choose_model(model)
    server.error = (503, {"error": {"message": "The engine stopped.", "type": "x", "code": "engine_died"}})
    ask(qtbot, window, "Hi")
    return reply_view(window).problem.button


def test_a_reply_whose_engine_died_leads_to_another_model_while_its_own_is_not_here(
    qtbot, window: MainWindow, server: FakeServer
) -> None:
    button = way_out_of_death(qtbot, window, server, "ember-draft-q8_0")
    assert button.text() == "Try again"
    (gone,) = (one for one in server.models if one["id"] == "ember-draft-q8_0")
    server.models.remove(gone)
    window.watch.look_at_models()
    qtbot.waitUntil(lambda: button.text() == "Choose another model")
    button.click()
    assert list(ways(window)) == ["ember-q8_0", "Look for it on the Hub…", "Try again"]
    ways(window)["ember-q8_0"].parent().close()
    server.models.append(gone)
    window.watch.look_at_models()
    qtbot.waitUntil(lambda: button.text() == "Try again")
    server.error = None
    button.click()
    assert ended(qtbot, window).status is Status.DONE


def test_a_model_of_another_server_is_there_as_soon_as_that_server_is_known(
    qtbot, window: MainWindow, server: FakeServer
) -> None:
    button = way_out_of_death(qtbot, window, server, "rack/fox")
    assert button.text() == "Choose another model"
    server.remotes = ["rack"]
    window.watch.look()
    qtbot.waitUntil(lambda: button.text() == "Try again")


def test_what_a_search_found_is_scrolled_to_and_marked(qtbot, window: MainWindow, server: FakeServer) -> None:
    long = [f"{n} line\n\n" for n in range(60)]
    server.pieces = [*long, "Über die **Brücke** 🦊 gehen.\n\n", *long]
    hit = ask(qtbot, window, "Where?").id
    server.pieces = long
    ask(qtbot, window, "More")
    window.desk.new_chat()
    window.chats.history.search.setText("die bruc")
    qtbot.waitUntil(lambda: window.chats.history.model.rowCount() == 1 and window.desk.words == "die bruc")
    window.chats.history.opened.emit(window.chats.history.model.index(0).data(CHAT_ID))
    transcript = window.page.transcript

    def is_in_view() -> bool:
        view = transcript.view_of(hit)
        if view is None or len(marks := view.view.extraSelections()) != 2:
            return False
        words = [mark.cursor.selectedText() for mark in marks]
        place = view.view.mapTo(transcript.viewport(), view.view.cursorRect(marks[0].cursor).topLeft())
        return words == ["die", "Bruc".replace("u", "ü")] and 0 < place.y() < transcript.viewport().height()

    qtbot.waitUntil(is_in_view)
    assert transcript.to_end.isVisible()
    window.chats.history.search.clear()
    qtbot.waitUntil(lambda: not is_in_view())  # nothing is sought any more


def test_settings_belong_to_the_chat_and_go_with_its_requests(qtbot, window: MainWindow, server: FakeServer) -> None:
    window.chats.toggle_settings()
    tuning = window.chats.tuning
    tuning.prompt.setPlainText("Be brief.")
    tuning.rows["temperature"].field.setValue(0.2)
    tuning.rows["top_k"].slider.setValue(7)
    tuning.max_tokens.setValue(50)
    tuning.seed.setValue(3)
    ask(qtbot, window, "Hi")
    body = server.requests[0]
    assert body["messages"][0] == {"role": "system", "content": "Be brief."}
    assert (body["temperature"], body["top_k"], body["max_tokens"], body["seed"]) == (0.2, 7, 50, 3)
    first = window.desk.current.chat.id
    window.desk.new_chat()
    assert tuning.prompt.toPlainText() == ""
    assert tuning.max_tokens.text() == "No limit"
    ask(qtbot, window, "Again")
    assert "max_tokens" not in server.requests[1]
    assert "seed" not in server.requests[1]
    window.desk.open(first)
    qtbot.waitUntil(lambda: window.desk.current.chat.id == first)
    assert tuning.prompt.toPlainText() == "Be brief."
    assert tuning.reset.isEnabled()
    tuning.reset.click()
    assert window.desk.current.chat.settings == ChatSettings(system_prompt="Be brief.")


def test_a_model_is_missed_only_where_the_server_has_none(window: MainWindow) -> None:
    picker = window.page.picker
    picker.set_state(ServerState())  # it has not answered yet
    assert picker.button.text() == "Model"
    picker.set_state(ServerState(phase="empty"))
    assert picker.button.text() == "No model yet"


def test_a_model_of_another_server_needs_no_loading(qtbot, window: MainWindow, server: FakeServer) -> None:
    server.models.append({"id": "rack/big", "object": "model", "created": 0, "owned_by": "rack", "remote": "rack"})
    window.watch.start()
    picker = window.page.picker
    qtbot.waitUntil(lambda: len(window.watch.models) == 3)
    picker.fill_menu()
    picker.menu.actions()[2].trigger()
    assert (picker.button.text(), picker.status.text()) == ("rack/big", "Runs on rack")
    ask(qtbot, window, "Hi")
    assert server.requests[0]["model"] == "rack/big"
    assert server.loads == []


def test_a_model_of_another_server_is_not_missed_while_that_lists_none(
    qtbot, window: MainWindow, server: FakeServer
) -> None:
    server.remotes = ["rack"]
    window.watch.start()
    qtbot.waitUntil(lambda: len(window.watch.models) == 2)
    window.page.choose_model("rack/big")
    assert window.page.picker.status.text() == "Runs on rack"
    ask(qtbot, window, "Hi")
    assert (server.requests[0]["model"], server.loads) == ("rack/big", [])
    server.remotes = []
    window.watch.look()
    window.desk.new_chat()
    window.page.choose_model("rack/big")
    qtbot.waitUntil(lambda: window.page.picker.status.text() == "Not here any more")


def test_the_menu_of_models_opens_where_its_button_begins(qtbot, window: MainWindow, server: FakeServer) -> None:
    window.watch.start()
    picker = window.page.picker
    qtbot.waitUntil(lambda: len(window.watch.models) == 2)
    picker.figure_of = lambda name: "fits  ·  9 tok/s"  # wider than the button
    places: list[QRect] = []

    def look() -> None:
        places.append(picker.menu.geometry())
        picker.menu.close()

    picker.menu.aboutToShow.connect(lambda: QTimer.singleShot(0, picker, look))
    picker.button.showMenu()
    qtbot.waitUntil(lambda: bool(places))
    assert places[0].width() > picker.button.width()
    assert places[0].left() == picker.button.mapToGlobal(QPoint(0, 0)).x()


def test_a_long_name_leaves_room_for_what_stands_behind_it_in_the_menu(
    qtbot, window: MainWindow, server: FakeServer
) -> None:
    long = "a-model-with-a-very-long-name-" * 6 + "Q4_K_M"
    server.models.append({"id": long, "object": "model", "created": 0, "owned_by": "slipstream"})
    window.watch.start()
    picker = window.page.picker
    qtbot.waitUntil(lambda: len(window.watch.models) == 3)
    picker.figure_of = lambda name: "fits  ·  ≈ 412 tok/s"
    picker.fill_menu()
    name, figures = picker.menu.actions()[2].text().split("\t")
    assert name.startswith("a-model")
    assert name.endswith("Q4_K_M"), "names differ at their ends"
    assert "…" in name
    assert figures == "fits  ·  ≈ 412 tok/s"
    assert picker.menu.sizeHint().width() < 800
    picker.menu.actions()[2].trigger()
    assert picker.shown_model == long


@pytest.mark.parametrize("percent", [100, 150])
def test_the_menu_of_models_fits_the_screen_with_its_figures(qtbot, window: MainWindow, percent: int) -> None:
    window.resize_text(percent)
    picker, name = window.page.picker, "Llama-3.2-1B-Instruct-with-a-name-that-somebody-made-very-long-Q4_K_M"
    picker.figure_of = lambda model: "fits  ·  ≈ 12.3 tok/s"
    picker.set_models((ModelChoice(name), ModelChoice("short")))
    picker.set_wanted(name)
    picker.open()
    assert picker.menu.sizeHint().width() <= window.screen().availableGeometry().width()
    picker.menu.close()


def test_a_chat_whose_model_is_gone_says_so_and_is_answered_by_no_other(
    qtbot, window: MainWindow, server: FakeServer
) -> None:
    window.watch.start()
    qtbot.waitUntil(lambda: len(window.watch.models) == 2)
    window.page.choose_model("ember-draft-q8_0")
    qtbot.waitUntil(lambda: window.watch.state.model == "ember-draft-q8_0")
    chat = ask(qtbot, window, "Hello").chat_id
    window.desk.new_chat()
    window.page.choose_model("ember-q8_0")
    qtbot.waitUntil(lambda: window.watch.state.model == "ember-q8_0")
    status, both = window.page.picker.status, server.models
    server.models = both[:1]
    window.desk.open(chat)
    qtbot.waitUntil(lambda: status.text() == "Not here any more")
    reply = ask(qtbot, window, "Still there?")
    assert (reply.status, reply.content) == (Status.FAILED, ""), "the server lets another one answer"
    button = reply_view(window).problem.button
    assert button.text() == "Choose another model"
    button.click()
    ways(window)["Look for it on the Hub…"].trigger()
    assert window.library.finder.field.text() == "ember-draft"
    window.show_page("chat")
    server.models = both
    window.link.models_changed.emit()
    qtbot.waitUntil(lambda: status.text() == "Loads with the next message")
    assert ask(qtbot, window, "And now?").status is Status.DONE


def test_trying_again_starts_an_engine_that_died_again_and_again(qtbot, window: MainWindow, server: FakeServer) -> None:
    window.watch.start()
    server.phase, server.problem = "failed", "The engine crashed, 3 times in a row."
    server.error = (503, {"error": {"message": server.problem, "type": "x", "code": "engine_unavailable"}})
    qtbot.waitUntil(lambda: window.watch.state.phase == "failed")
    assert ask(qtbot, window, "Hello").status is Status.FAILED
    server.error = None
    server.loads.clear()
    button = reply_view(window).problem.button
    button.click()
    button.click()  # as who clicks twice does
    qtbot.waitUntil(lambda: window.desk.current.tree.path[-1].status is Status.DONE)
    assert len(window.desk.current.tree.versions(window.desk.current.tree.path[-1].id)) == 2
    ask(qtbot, window, "And you?")
    assert window.desk.current.tree.path[-1].status is Status.DONE
    assert server.loads == ["ember-q8_0"] * 2, "it would refuse for seconds yet"


def test_another_model_is_offered_where_the_file_of_one_is_lost(qtbot, window: MainWindow, server: FakeServer) -> None:
    window.watch.start()
    action, both = window.page.server_banner.action, server.models
    qtbot.waitUntil(lambda: len(window.watch.models) == 2)
    server.phase, server.problem = "failed", "There is no file ember-q8_0.gguf."
    server.models = both[1:]
    window.watch.look()
    qtbot.waitUntil(lambda: action.text() == "Choose another model")
    server.models = both
    window.watch.look_at_models()
    qtbot.waitUntil(lambda: action.text() == "Try again")


def test_what_is_wrong_with_the_server_is_said_above_every_page(qtbot, window: MainWindow, server: FakeServer) -> None:
    window.watch.start()
    qtbot.waitUntil(lambda: len(window.watch.models) == 2)
    banner = window.page.server_banner
    window.resize(800, 600)
    window.chats.open_beside(None)  # in a narrow window it covers the first one, which the banner belongs to
    window.show_page("settings")
    server.phase, server.problem, server.models = "failed", "There is no file ember-q8_0.gguf.", server.models[1:]
    window.watch.look()
    qtbot.waitUntil(lambda: banner.action.text() == "Choose another model")
    for page in ("library", "speed", "server", "jobs", "settings"):
        window.show_page(page)
        assert banner.isVisible()
    banner.action.click()
    menu = window.chats.first.picker.menu
    qtbot.waitUntil(menu.isVisible)
    assert window.chats.first.picker.button.isVisible()
    menu.close()
    window.show_page("jobs")
    banner.close_button.setFocus()
    banner.close_button.click()
    assert window.jobs.isAncestorOf(window.focusWidget())


def test_a_load_is_cancelled_and_the_model_before_it_comes_back(qtbot, window: MainWindow, server: FakeServer) -> None:
    window.watch.start()
    picker, banner = window.page.picker, window.page.server_banner
    qtbot.waitUntil(lambda: len(window.watch.models) == 2)
    picker.fill_menu()
    assert picker.cancel.isHidden()
    server.phase, server.progress = "loading", 0.4
    picker.menu.actions()[1].trigger()
    qtbot.waitUntil(picker.cancel.isVisible)
    picker.cancel.click()
    qtbot.waitUntil(lambda: "no model is loaded" in banner.text)
    qtbot.waitUntil(picker.cancel.isHidden)
    assert picker.status.text() == "Loads with the next message"
    assert banner.action.text() == "Load ember-q8_0"
    server.phase = "ready"
    banner.action.click()
    qtbot.waitUntil(lambda: server.loads == ["ember-draft-q8_0", "ember-q8_0"])
    assert picker.button.text() == "ember-q8_0"
    assert not banner.text
    server.phase, server.problem = "failed", "This model needs 40.0 GB of memory, and 8.0 GB is free."
    window.watch.look()
    qtbot.waitUntil(lambda: "40.0 GB" in banner.text)
    server.phase = "loading"
    window.watch.look()
    qtbot.waitUntil(lambda: banner.text == "")  # it is tried again


def test_the_model_is_shown_and_another_can_be_chosen(qtbot, window: MainWindow, server: FakeServer) -> None:
    window.watch.start()
    picker = window.page.picker
    qtbot.waitUntil(lambda: len(window.watch.models) == 2)
    picker.fill_menu()
    settings, unload, find = picker.menu.actions()[-3:]
    words = ("Settings of this model…", "Unload this model", "Find more models…")
    assert (settings.text(), unload.text(), find.text()) == words
    settings.trigger()
    assert "Settings of ember-q8_0" in [dialog.windowTitle() for dialog in window.findChildren(SettingsDialog)]
    find.trigger()
    assert window.library is not None
    assert window.library.tabs[FIND].isChecked()
    window.show_page("chat")
    assert picker.button.text() == "ember-q8_0"
    assert not picker.badge.isHidden()
    assert "toy" in picker.badge.toolTip()
    assert "Ember" in window.page.welcome.note.text()
    assert "1,024 tokens" in picker.status.text()
    server.phase, server.progress = "loading", 0.4
    picker.menu.actions()[1].trigger()
    qtbot.waitUntil(lambda: "Loading ember-draft-q8_0" in picker.status.text())
    assert "40%" in picker.status.text()
    assert window.page.progress.value() == 400
    assert not window.page.progress.isHidden()
    assert server.loads == ["ember-draft-q8_0"]
    server.progress = 1.0
    qtbot.waitUntil(lambda: picker.status.text() == "Preparing ember-draft-q8_0…")
    server.phase = "ready"
    qtbot.waitUntil(window.page.progress.isHidden)
    ask(qtbot, window, "Hi")
    assert server.requests[0]["model"] == "ember-draft-q8_0"


def test_a_model_that_is_ready_takes_back_what_was_said_of_models_and_no_more(
    qtbot, window: MainWindow, server: FakeServer
) -> None:
    banner = window.page.server_banner

    def become(phase: str, model: str, problem: str | None = None) -> None:
        server.phase, server.model, server.problem = phase, model, problem
        window.watch.start()
        qtbot.waitUntil(lambda: (window.watch.state.phase, window.watch.state.model) == (phase, model))

    become("failed", "fox", "The file is cut off.")
    assert banner.text == "The file is cut off."
    become("ready", "ember-q8_0")
    assert banner.text == ""
    become("failed", "fox", "The file is cut off.")
    banner.say("No program here opens this link.")
    become("ready", "ember-draft-q8_0")
    become("loading", "ember-q8_0")
    become("ready", "ember-q8_0")
    assert banner.text == "No program here opens this link."
    window.endpoint.changed.emit(EndpointState(problem="The port is taken."))
    become("ready", "ember-draft-q8_0")
    assert "The port is taken." in banner.text
    window.endpoint.changed.emit(EndpointState())
    assert banner.text == ""


def test_a_link_opens_only_after_asking_and_never_a_file(qtbot, window: MainWindow, monkeypatch) -> None:
    opened: list[str] = []
    # As where no program opens links.
    monkeypatch.setattr("ui.chat.chat_page.QDesktopServices.openUrl", lambda url: opened.append(url.toString()))
    window.page.transcript.link_chosen.emit("file:///etc/passwd")
    window.page.transcript.link_chosen.emit("javascript:alert(1)")
    assert window.findChildren(QMessageBox) == []
    window.page.transcript.link_chosen.emit("https://example.org/")
    box = window.findChildren(QMessageBox)[0]
    assert opened == []
    box.buttons()[0].click()
    assert opened == ["https://example.org/"]
    window.page.server_banner.action.click()
    assert "https://example.org/" in window.page.server_banner.text
    assert QGuiApplication.clipboard().text() == "https://example.org/"


def test_a_narrow_window_shows_the_chat_and_one_side_at_a_time(qtbot, window: MainWindow) -> None:
    window.resize(640, 480)
    assert window.chats.history.isHidden()
    window.chats.toggle_list()
    window.chats.toggle_settings()
    assert (window.chats.history.isHidden(), window.chats.tuning.isHidden()) == (True, False)
    window.chats.toggle_list()
    assert (window.chats.history.isHidden(), window.chats.tuning.isHidden()) == (False, True)
    window.resize(1200, 700)
    assert not window.chats.history.isHidden()


def test_tab_leaves_no_items_of_layouts_in_python(qtbot, window: MainWindow) -> None:
    def n_items() -> int:
        return sum(isinstance(one, QWidgetItem) for one in shiboken6.getAllValidWrappers())

    ask(qtbot, window, "Hi")
    before, was = n_items(), window.focusWidget()
    qtbot.keyClick(window, Qt.Key.Key_Tab)
    assert window.focusWidget() is not was
    assert n_items() == before


def test_what_was_hidden_while_the_window_became_narrower_fits_it_when_it_is_shown(qtbot, window: MainWindow) -> None:
    window.resize(1920, 1080)
    body = window.page.welcome.body
    qtbot.waitUntil(lambda: body.width() > 1_000)
    ask(qtbot, window, "Hi")
    window.resize(800, 600)
    window.desk.new_chat()
    qtbot.waitUntil(lambda: body.isVisible() and body.width() < 800)
    assert all(part.geometry().right() <= body.width() for part in body.findChildren(QLabel) if part.isVisible())


def test_what_an_empty_chat_offers_has_its_height_where_the_window_was_hidden_meanwhile(
    qapp, window: MainWindow
) -> None:
    welcome, card = window.page.welcome, QLabel()
    card.setWordWrap(True)
    welcome.show_card(card)
    for n_words, size in itertools.product((200, 5, 80), ((480, 500), (1180, 500), (640, 400))):
        window.hide()
        card.setText("word " * n_words)
        window.resize(*size)
        qapp.processEvents()
        window.show()
        for _ in range(6):
            qapp.processEvents()
        assert all(welcome.body.rect().contains(example.geometry()) for example in welcome.examples)


def test_a_new_chat_begins_at_the_top_of_what_it_offers(qtbot, window: MainWindow) -> None:
    window.resize(640, 400)
    bar = window.page.welcome.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0)
    bar.setValue(bar.maximum())
    ask(qtbot, window, "Hi")
    window.desk.new_chat()
    qtbot.waitUntil(window.page.welcome.isVisible)
    assert (bar.value(), bar.maximum() > 0) == (0, True)


def test_large_text_leaves_room_for_one_side_beside_the_chat(qtbot, window: MainWindow) -> None:
    window.resize(1000, 700)
    window.resize_text(150)
    window.chats.toggle_settings()
    assert (window.chats.history.isVisible(), window.chats.tuning.isVisible()) == (False, True)
    qtbot.waitUntil(lambda: window.chats.tuning.parentWidget().rect().contains(window.chats.tuning.geometry()))
    window.chats.toggle_list()
    assert (window.chats.history.isVisible(), window.chats.tuning.isVisible()) == (True, False)
    window.chats.toggle_settings()
    window.resize_text(100)
    assert (window.chats.history.isVisible(), window.chats.tuning.isVisible()) == (True, True)


def test_the_narrowest_window_with_large_text_shows_the_settings_whole(qtbot, window: MainWindow) -> None:
    tuning, page = window.chats.tuning, window.page
    window.resize(480, 720)
    window.resize_text(150)
    window.chats.toggle_settings()
    qtbot.waitUntil(lambda: window.rect().contains(QRect(tuning.mapTo(window, QPoint(0, 0)), tuning.size())))
    assert not page.isVisible(), "there is no room for it"
    qtbot.keyClick(tuning.prompt, Qt.Key.Key_Escape)
    assert (page.isVisible(), tuning.isVisible(), page.composer.field.hasFocus()) == (True, False, True)
    ask(qtbot, window, "Hi")
    for back in (window.desk.new_chat, window.chats.toggle_list, lambda: window.resize_text(100)):
        window.resize_text(150)
        window.chats.toggle_settings()
        assert not window.page.isVisible()
        back()
        assert window.page.isVisible()


def test_a_chat_that_is_wanted_comes_out_from_under_its_settings(qtbot, window: MainWindow) -> None:
    window.resize(480, 720)
    window.resize_text(150)
    chat = ask(qtbot, window, "Hi").chat_id
    control = Qt.KeyboardModifier.ControlModifier
    for want in (
        lambda: window.chats.open_chat(chat),  # it is the one in use
        lambda: window.chats.history.opened.emit(chat),
        lambda: qtbot.keyClick(window, Qt.Key.Key_E, control),
        lambda: qtbot.keyClick(window, Qt.Key.Key_N, control),
        lambda: qtbot.keyClick(window, Qt.Key.Key_N, control),  # once more it stays the same
    ):
        window.chats.toggle_settings()
        assert not window.page.isVisible()
        want()
        assert (window.page.isVisible(), window.chats.tuning.isVisible()) == (True, False)
        assert window.page.isAncestorOf(window.focusWidget())


def test_a_side_of_the_chat_that_is_asked_for_elsewhere_is_seen(qtbot, window: MainWindow) -> None:
    window.show_page("jobs")
    window.chats.toggle_settings()
    assert window.chats.tuning.prompt.hasFocus()
    assert window.chats.tuning.isVisible()
    window.show_page("jobs")
    window.chats.toggle_settings()
    assert window.chats.tuning.isVisible(), "it was there before"
    window.show_page("jobs")
    window.chats.toggle_list()
    assert window.chats.history.isVisible()
    ask(qtbot, window, "Hi")
    window.show_page("jobs")
    qtbot.keyClick(window, Qt.Key.Key_E, Qt.KeyboardModifier.ControlModifier)
    assert window.focusWidget() is asked_view(window).editor.field
    qtbot.waitUntil(window.focusWidget().isVisible)


def test_what_is_edited_in_a_chat_stays_in_sight(qtbot, window: MainWindow, server: FakeServer) -> None:
    window.resize(1180, 780)
    server.pieces = ["A line of a long reply that goes on for a while.\n\n"] * 40
    for words in ("First", "Second"):
        ask(qtbot, window, words)
    transcript = window.page.transcript
    bar = transcript.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0 and bar.value() == bar.maximum())
    bar.setValue(0)
    qtbot.keyClick(window, Qt.Key.Key_E, Qt.KeyboardModifier.ControlModifier)
    field = asked_view(window).editor.field
    assert field.hasFocus()
    qtbot.waitUntil(lambda: not field.visibleRegion().isEmpty())
    for size in ((800, 600), (640, 400), (1180, 780)):
        window.resize(*size)
        qtbot.waitUntil(lambda: not field.visibleRegion().isEmpty())
    qtbot.keyClick(field, Qt.Key.Key_Escape)
    transcript.go_to_end()
    window.page.composer.setFocus()
    window.resize(640, 400)
    qtbot.waitUntil(lambda: bar.value() == bar.maximum())


def test_the_name_of_a_model_ends_in_an_ellipsis_where_it_has_no_room(qtbot, window: MainWindow) -> None:
    picker, name = window.page.picker, "a-model-with-a-very-long-name-" * 3 + "Q4_K_M"
    picker.set_wanted(name)
    window.resize(1400, 780)
    qtbot.waitUntil(lambda: picker.button.text() == name)
    assert picker.button.toolTip() == ""
    for size, percent in (((640, 480), 100), ((480, 360), 150)):
        window.resize_text(percent)
        window.resize(*size)
        qtbot.waitUntil(lambda: window.page.width() <= window.width())
        qtbot.waitUntil(lambda: "…" in picker.button.text())
        assert picker.button.width() >= picker.button.sizeHint().width()
        assert picker.rect().contains(picker.button.geometry())
        assert (picker.button.toolTip(), picker.button.accessibleName()) == (name, f"Model: {name}")


def test_the_badge_of_a_toy_gives_way_to_its_name(qtbot, window: MainWindow) -> None:
    window.watch.start()
    picker = window.page.picker
    qtbot.waitUntil(picker.badge.isVisible)
    name = picker.button.text()
    picker.badge.setText("Spielzeug, das irrt")
    window.resize_text(150)
    window.resize(480, 360)
    qtbot.waitUntil(lambda: (picker.badge.isHidden(), picker.button.text()) == (True, name))
    window.resize_text(100)
    window.resize(1180, 780)
    qtbot.waitUntil(picker.badge.isVisible)


def test_a_question_is_read_whole_also_where_it_has_a_word_longer_than_its_box(qtbot, window: MainWindow) -> None:
    window.resize(480, 360)
    for percent in (100, 150):
        window.resize_text(percent)
        ask_first(window, f"Revoke the key “{'W' * 64}”?", f"https://example.org/{'w' * 300}", "Go on", lambda: None)
        (box,) = window.findChildren(QMessageBox)
        for label in box.findChildren(QLabel):
            if label.text():
                flags = Qt.TextFlag.TextWordWrap.value
                needed = label.fontMetrics().boundingRect(0, 0, label.width(), 10_000, flags, label.text())
                assert needed.width() <= label.width()
                assert needed.height() <= label.height()
        box.close()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def test_what_is_hidden_when_the_theme_changes_has_it_when_it_is_shown(qtbot, window: MainWindow) -> None:
    window.choose_theme(ThemeChoice.LIGHT)
    window.show_page("jobs")
    window.show_page("chat")
    window.chats.toggle_settings()
    window.chats.toggle_settings()
    window.choose_theme(ThemeChoice.DARK)
    window.chats.toggle_settings()
    assert window.jobs is not None
    parts: list[tuple[QWidget, str]] = [(window.chats.tuning, DARK.panel), (window.chats.tuning.prompt, DARK.raised)]
    for part, colour in parts:
        middle = part.grab().toImage().pixelColor(part.width() // 2, part.height() - 3)
        assert middle.name() == colour
    window.show_page("jobs")
    assert window.jobs.grab().toImage().pixelColor(3, 3).name() == DARK.canvas
    assert window.jobs.question.palette().color(QPalette.ColorRole.PlaceholderText).name() == DARK.muted
    window.choose_theme(ThemeChoice.LIGHT)
    window.show_page("chat")  # which was hidden
    window.chats.toast.say("A chat is gone", "Undo", lambda: None)
    window.chats.toast.hide()
    window.resize_text(150)
    window.chats.toast.say("A chat is gone", "Undo", lambda: None)
    assert window.chats.toast.size() == window.chats.toast.sizeHint(), "it was dressed before it took its size"
    assert (
        window.page.picker.button.icon().pixmap(14).toImage() == icon("down", LIGHT.muted, size=14).pixmap(14).toImage()
    )


def pixels_at(view: TextView, position: int = 1) -> int:
    cursor = view.textCursor()
    cursor.setPosition(position)
    return int(cursor.charFormat().font().pixelSize())


def test_text_grows_on_all_pages_and_its_looks_are_remembered(qtbot, qapp, window: MainWindow, tmp_path: Path) -> None:
    ask(qtbot, window, "Hi")
    window.choose_theme(ThemeChoice.DARK)
    assert DARK.text in reply_view(window).view.document().toHtml()
    window.show_page("library")
    one_line = window.page.composer.field.height()
    for _ in range(9):
        window.step_text(1)
    assert window.library is not None
    assert window.library.font().pixelSize() == 21
    window.show_page("chat")  # what is hidden grows when it is shown
    assert [pixels_at(view) for view in (reply_view(window).view, asked_view(window).view)] == [22, 22]
    assert window.page.composer.field.height() > one_line
    assert window.page.composer.field.tabStopDistance() == reply_view(window).view.tabStopDistance() == TAB_WIDTH * 1.5
    delegate = window.library.models.list.delegate
    assert delegate.sizeHint(QStyleOptionViewItem(), QModelIndex()).height() == ROW_HEIGHT * 1.5
    assert window.rail.buttons["chat"].iconSize() == QSize(30, 30)
    for page in PAGES:  # no icon is drawn in another size than it is shown in, which would blur it
        window.show_page(page)
        shown = [one for one in window.findChildren(QAbstractButton) if one.isVisible() and not one.icon().isNull()]
        assert [one.accessibleName() for one in shown if one.icon().actualSize(one.iconSize()) != one.iconSize()] == []
    window.show_page("chat")
    kept = QSettings(str(tmp_path / "window.ini"), QSettings.Format.IniFormat)
    assert (str(kept.value("textSize")), kept.value("theme")) == ("150", "dark")
    window.resize_text(100)
    assert pixels_at(reply_view(window).view) == 15
    assert window.page.composer.field.height() == one_line


def test_the_size_of_text_of_the_last_time_is_back(qtbot, qapp, lonely_api: Api, tmp_path: Path) -> None:
    settings = QSettings(str(tmp_path / "window.ini"), QSettings.Format.IniFormat)
    settings.setValue("textSize", 125)
    settings.sync()
    appearance = Appearance(qapp, ThemeChoice.LIGHT)
    window = MainWindow(lonely_api, appearance, tmp_path / "chats.db", tmp_path / "window.ini")
    qtbot.addWidget(window)
    assert appearance.percent == 125
    assert window.tools.style.body.fontPointSize() == 0
    assert window.tools.style.body.font().pixelSize() == 19
    window.close()


def test_the_names_of_the_librarys_pages_are_whole(window: MainWindow) -> None:
    window.show_page("library")
    assert window.library is not None
    for percent in (100, 80, 150):
        window.resize_text(percent)
        for name, tab in window.library.tabs.items():
            tab.click()
            bold = QFont(tab.font())
            bold.setWeight(QFont.Weight.DemiBold)
            assert tab.width() - 24 >= QFontMetrics(bold).horizontalAdvance(name), percent


@pytest.mark.parametrize("percent", [80, 150])
def test_settings_and_gauges_have_room_for_text_of_any_size(qtbot, window: MainWindow, percent: int) -> None:
    window.resize(720, 480)
    window.resize_text(percent)
    window.chats.toggle_settings()
    for field in window.chats.tuning.findChildren(QAbstractSpinBox):
        line = field.findChild(QLineEdit)
        needed = line.fontMetrics().horizontalAdvance(field.text())
        assert line.contentsRect().width() >= needed, field.accessibleName()
    qtbot.waitUntil(lambda: window.chats.tuning.geometry().right() < window.chats.tuning.parentWidget().width())
    body = window.chats.tuning.prompt.parentWidget()
    qtbot.waitUntil(lambda: body.width() <= body.parentWidget().width())
    bar = window.speed_bar
    shown = [gauge for gauge in bar.findChildren(Gauge) if gauge.isVisible()]
    assert shown
    assert all(gauge.height() >= gauge.sizeHint().height() for gauge in shown)
    assert all(gauge.geometry().right() <= bar.width() for gauge in shown)


def test_the_line_beside_the_settings_goes_down_to_the_gauges(qtbot, window: MainWindow) -> None:
    window.choose_theme(ThemeChoice.LIGHT)
    window.chats.toggle_settings()

    def colours() -> set[str]:
        beside = window.chats.tuning.mapTo(window, QPoint(-1, 0))
        edge = window.grab(QRect(beside, QSize(1, window.chats.tuning.height()))).toImage()
        return {edge.pixelColor(0, y).name() for y in range(edge.height())}

    qtbot.waitUntil(lambda: colours() == {LIGHT.border})


def test_a_long_chat_is_made_bit_by_bit(qtbot, qapp, server: FakeServer, tmp_path: Path) -> None:
    store = ChatStore(tmp_path / "chats.db")
    store.save_chat(Chat(1, "Long", 1, 1, leaf_id=600))
    for n in range(101, 601):
        role = Role.USER if n % 2 else Role.ASSISTANT
        store.save_message(Message(n, 1, n - 1 if n > 101 else None, role, f"message {n}\n\n" * 5, n))
    store.close()
    window = MainWindow(Api(), Appearance(qapp, ThemeChoice.LIGHT), tmp_path / "chats.db", tmp_path / "w.ini")
    qtbot.addWidget(window)
    window.show()
    window.desk.open(1)
    transcript = window.page.transcript
    qtbot.waitUntil(lambda: transcript.view_of(585) is not None)
    qtbot.wait(50)
    assert transcript.view_of(101) is None
    bar = transcript.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.value() == bar.maximum())
    bar.setValue(0)
    qtbot.waitUntil(lambda: transcript.view_of(570) is not None)
    assert bar.value() > 0
    assert not transcript.to_end.isHidden()
    bar.setValue(bar.maximum() - transcript.to_end.height())
    assert transcript.to_end.isHidden(), "it would cover as much as it shows"
    bar.setValue(bar.maximum() // 2)
    assert not transcript.to_end.isHidden()
    for number in (554, 538, 522):
        bar.setValue(0)
        qtbot.waitUntil(lambda number=number: transcript.view_of(number) is not None)
    bar.setValue(bar.maximum() // 2)
    last, below = transcript.view_of(600), [n for n in range(522, 601) if transcript.view_of(n).y() > bar.value()]
    seen = transcript.view_of(below[0])
    height, place = last.height(), seen.y() - bar.value()
    window.resize_text(150)
    assert last.height() < 1.2 * height, "all in one go would be a stall"
    qtbot.waitUntil(lambda: last.height() > 1.2 * height)
    assert abs(seen.y() - bar.value() - place) < seen.height(), "it would be another place of the chat"
    field = transcript.view_of(540).begin_edit()
    field.setPlainText("Something else")
    qtbot.waitUntil(lambda: bool(transcript.kept.get(540)))
    transcript.to_end.click()
    assert transcript.view_of(540).editor is not None
    transcript.view_of(540).leave_editor()
    bar.setValue(bar.maximum() // 2)
    transcript.to_end.click()
    bar.setValue(0)
    qtbot.waitUntil(lambda: transcript.view_of(540) is not None)
    assert transcript.view_of(540).editor is None, "it was left"
    qtbot.waitUntil(lambda: not transcript.kept.get(540))
    transcript.to_end.click()
    assert transcript.view_of(560) is None, "another width or theme would take a moment for each"
    body = [view for view in transcript.body.children() if isinstance(view, MessageView) and view.isVisible()]
    assert body == sorted(body, key=MessageView.y), "a screen reader goes by that order"
    qtbot.waitUntil(lambda: transcript.view_of(580) is not None and bar.value() == bar.maximum() > 0)
    made = transcript.findChildren(MessageView)
    window.desk.new_chat()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    assert len(transcript.findChildren(MessageView)) > len(made) - 2 > 16, "all in one go would be a stall"
    qtbot.waitUntil(lambda: not transcript.findChildren(MessageView))
    window.close()


def test_an_unwritable_data_folder_is_told_and_chats_still_work(
    qtbot, qapp, server: FakeServer, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("not a folder")
    api = Api()
    api.connect_to(server.url, None)
    window = MainWindow(api, Appearance(qapp, ThemeChoice.LIGHT), tmp_path / "file" / "chats.db", tmp_path / "w.ini")
    qtbot.addWidget(window)
    window.show()
    banner = window.chats.storage_banner
    qtbot.waitUntil(lambda: "memory only" in banner.text)
    assert ask(qtbot, window, "Hi").status is Status.DONE
    window.chats.toggle_list()
    assert banner.action.text() == "Export all chats…", "they can be kept elsewhere"
    banner.action.click()
    (dialog,) = window.findChildren(QFileDialog)
    dialog.fileSelected.emit(str(tmp_path / "all.json"))
    dialog.reject()
    qtbot.waitUntil(lambda: window.chats.history.note.words.text() == "1 chat written to all.json.")
    assert window.chats.history.note.isVisible()
    assert not window.close()
    (box,) = window.findChildren(QMessageBox)
    assert "memory only" in box.informativeText()
    box.button(QMessageBox.StandardButton.Cancel).click()
    assert window.isVisible()
    window.quit_unasked()  # as where the session of the desktop ends
    assert not window.isVisible()


def test_tab_goes_through_the_window_as_it_is_read(qtbot, window: MainWindow, server: FakeServer) -> None:
    server.pieces = ["```py\nx = 1\n```\n\nDone."]
    for text in ("First", "Second"):
        ask(qtbot, window, text)
    qtbot.waitUntil(lambda: len(reply_view(window).view.copy_buttons) == 1)
    page, history, last = window.page, window.chats.history, reply_view(window)
    qtbot.waitUntil(lambda: history.list.model().rowCount() > 0)
    messages = [page.transcript.view_of(message.id) for message in window.desk.current.tree.path]
    *others, settings = window.rail.buttons.values()
    read = [
        page.composer.speed, *others, settings, history.new, history.search,
        history.list, page.sidebar_button, page.picker, page.panel_button, *messages, last.view.copy_buttons[0],
        last.copy, last.redo, page.composer.field,
    ]  # fmt: skip
    seen: list[QWidget] = []
    while len(seen) < 60 and (not seen or window.focusWidget() is not page.composer.field):
        qtbot.keyClick(window.focusWidget(), Qt.Key.Key_Tab)
        seen.append(window.focusWidget())
    places = [next(i for i, one in enumerate(seen) if part is one or part.isAncestorOf(one)) for part in read]
    assert places == sorted(places)
    for widget in (*reversed(seen[:-1]), seen[-1]):
        qtbot.keyClick(window.focusWidget(), Qt.Key.Key_Backtab)
        assert window.focusWidget() is widget


def test_a_long_reply_that_opens_is_never_painted_below_its_own_figures(
    qtbot, qapp, window: MainWindow, server: FakeServer
) -> None:
    server.pieces = ["A line of a long reply.\n\n" * 300]
    chat = ask(qtbot, window, "Tell me").chat_id
    window.desk.new_chat()
    qtbot.waitUntil(window.page.welcome.isVisible)
    ends: list[tuple[int, int]] = []

    class Painted(QObject):
        def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
            if isinstance(watched, ReceiptLine) and event.type() == QEvent.Type.Paint:
                ends.append((watched.parent().view.geometry().bottom(), watched.y()))
            return False

    painted = Painted()
    qapp.installEventFilter(painted)
    window.desk.open(chat)
    qtbot.waitUntil(lambda: bool(ends) and ends[-1][0] > 5_000)
    qapp.removeEventFilter(painted)
    assert all(end < figures for end, figures in ends)


def test_each_place_where_tab_stops_shows_that_it_has_the_keyboard(
    qtbot, window: MainWindow, library_server: LibraryServer
) -> None:
    window.link.start()
    ask(qtbot, window, "Hi")
    window.desk.new_chat()
    qtbot.waitUntil(lambda: window.chats.history.model.n_chats > 0)
    for page in PAGES:
        window.show_page(page)
        if page == "library":
            models = window.library.models.list
            qtbot.waitUntil(lambda models=models: models.rows.rowCount() > 0)
        seen: set[QWidget] = set()
        while window.focusNextPrevChild(True) and (widget := window.focusWidget()) not in seen:
            seen.add(widget)
            if not isinstance(widget, (QPlainTextEdit, QTextEdit)):  # these have their cursor
                place = QRect(widget.mapTo(window, QPoint()), widget.size()).adjusted(-8, -8, 8, 8)
                with_it = window.grab(place).toImage()
                widget.clearFocus()
                assert window.grab(place).toImage() != with_it, (page, widget.accessibleName())
                widget.setFocus(Qt.FocusReason.TabFocusReason)
        assert len(seen) > len(PAGES)


def test_tab_stops_at_the_tab_that_is_shown(qtbot, window: MainWindow) -> None:
    window.show_page("server")
    tabs = list(window.server.tabs.values())
    for shown in (tabs[2], tabs[0], tabs[1]):
        shown.click()
        assert [one for one in in_reading_order(window) if one in tabs] == [shown]


def test_a_list_without_chats_gives_the_keyboard_on_and_a_menu_needs_no_menu_key(qtbot, window: MainWindow) -> None:
    ask(qtbot, window, "Hi")
    history = window.chats.history
    qtbot.waitUntil(lambda: history.model.n_chats == 1)
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    history.list.setFocus()
    qtbot.keyClick(history.list, Qt.Key.Key_F10, Qt.KeyboardModifier.ShiftModifier)
    menu = QApplication.activePopupWidget()
    assert menu is not None
    assert menu.actions()[0].text() == "Open"
    menu.close()
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    qtbot.keyClick(history.list, Qt.Key.Key_Delete)
    qtbot.waitUntil(lambda: history.model.n_chats == 0)
    assert window.focusWidget() is window.page.composer.field


def test_tab_brings_what_gets_the_keyboard_into_view(qtbot, window: MainWindow, server: FakeServer) -> None:
    server.pieces = ["line\n\n" * 60]
    for text in ("First", "Second"):
        ask(qtbot, window, text)
    window.page.panel_button.setFocus()
    qtbot.keyClick(window.focusWidget(), Qt.Key.Key_Tab)
    first = window.page.transcript.view_of(window.desk.current.tree.path[0].id)
    assert first is not None
    assert first.isAncestorOf(window.focusWidget())
    assert not window.focusWidget().visibleRegion().isEmpty()


def test_fields_and_sliders_of_the_settings_are_drawn_whole(window: MainWindow) -> None:
    window.chats.toggle_settings()
    for slider in window.chats.tuning.findChildren(QSlider):
        option = QStyleOptionSlider()
        slider.initStyleOption(option)
        part = QStyle.SubControl.SC_SliderHandle
        handle = slider.style().subControlRect(QStyle.ComplexControl.CC_Slider, option, part, slider)
        assert slider.rect().adjusted(0, 1, 0, -1).contains(handle)
    # What a field asks for can be read before it is filled.
    for choice, colours in ((ThemeChoice.LIGHT, LIGHT), (ThemeChoice.DARK, DARK)):
        window.choose_theme(choice)
        for field in (window.page.composer.field, window.chats.history.search, window.chats.tuning.prompt):
            asked = field.palette().color(QPalette.ColorRole.PlaceholderText)
            assert asked.alpha() == 255
            assert contrast(asked.name(), colours.raised) >= 4.5


def test_a_chat_is_archived_brought_back_and_found_by_search(qtbot, window: MainWindow) -> None:
    window.watch.start()
    ask(qtbot, window, "Tell me of foxes")
    qtbot.waitUntil(lambda: titles(window) == ["Tell me of foxes"])
    number = window.desk.current.chat.id
    window.chats.history.put_away.emit(number, True)
    qtbot.waitUntil(lambda: titles(window) == [])
    window.chats.history.archive.click()
    qtbot.waitUntil(lambda: titles(window) == ["Tell me of foxes"])
    window.chats.history.archive.click()
    qtbot.waitUntil(lambda: titles(window) == [])
    window.chats.toast.button.click()
    qtbot.waitUntil(lambda: titles(window) == ["Tell me of foxes"])
    window.chats.history.moved.emit(number, "animals")
    qtbot.waitUntil(lambda: window.chats.history.model.folders == ["animals"])
    window.chats.history.pinned.emit(number, True)
    qtbot.waitUntil(lambda: window.chats.history.model.index(0).data() == "Pinned")


def test_a_long_hint_is_read_whole_or_not_at_all(
    qtbot, qapp, window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "Eingabetaste sendet  ·  Umschalt+Eingabe beginnt eine neue Zeile"
    monkeypatch.setattr("ui.chat.chat_page.HINT", words)
    hint = window.page.hint
    hint.setText(words)
    seen = set[bool]()
    for width in range(480, 1_280, 40):
        window.resize(width, 800)
        qapp.processEvents()
        seen.add(hint.isHidden())
        bar = window.page.fit.bar
        room = window.page.composer.width() - 2 * bar.sizeHint().width()
        assert hint.isHidden() or (hint.width() >= hint.sizeHint().width() and room >= hint.sizeHint().width())
    assert seen == {True, False}
