"""The window as a screen reader has it: what is announced by itself, and what is said where the keyboard is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QWidget

from tests.support.chat_window import ask, ended, reply_view, say
from tests.support.listener import listening
from tools.stand_ins.fake_openai import FakeServer
from ui.chat.history.history_model import HistoryModel
from ui.chat.tools.calls_view import CallsView
from ui.client.chat_records import ChatSummary, Message, Role
from ui.client.speeds import Speed
from ui.client.tool_calls import ToolCall
from ui.widgets.note_card import CALM, NoteCard
from ui.widgets.row_list import ListRow, RowList
from ui.window.main_window import MainWindow


@pytest.fixture
def window(qtbot, window: MainWindow) -> MainWindow:
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    return window


@pytest.fixture
def said() -> Iterator[list[str]]:
    with listening() as heard:
        yield heard


def but_the_wait(said: list[str]) -> list[str]:
    """Leave out what is said where the first reply takes long to begin, as on a busy machine."""
    return said[said[:1] == ["Starting the engine…"] :]


def name_of(widget: QWidget) -> str:
    interface = QAccessible.queryAccessibleInterface(widget)
    assert interface is not None
    return str(interface.text(QAccessible.Text.Name))


def test_a_reply_is_said_by_paragraphs(qtbot, window: MainWindow, server: FakeServer, said: list[str]) -> None:
    code, table = "```py\nx = 1\ny = 2\n```", "| a | b |\n|--|--|\n| 1 | 2 |"
    text = f"First of **all** this.\n\n{code}\n\nAnd [a link](https://x.y).\n\n{table}"
    server.pieces = [f"{word} " for word in text.split(" ")]
    reply = ask(qtbot, window, "Hello")
    words = "First of all this.\npy, 2 lines of code\nAnd a link.\na\nb\n1\n2"
    assert "\n".join(but_the_wait(said)) == words
    assert len(said) <= 5, "a paragraph is said when it is whole"
    said.clear()
    window.desk.new_chat()
    window.desk.open(reply.chat_id)
    qtbot.waitUntil(lambda: bool(window.desk.current.tree.path))
    qtbot.waitUntil(lambda: bool(reply_view(window).text))
    assert said == [], "what is only shown again is not said"


def test_waiting_thinking_and_every_end_are_said(
    qtbot, window: MainWindow, server: FakeServer, said: list[str]
) -> None:
    server.thoughts = ["Hm, ", "well."]
    ask(qtbot, window, "Hello")
    assert but_the_wait(said) == ["Thinking…", "Hello there."]
    said.clear()
    server.error = (503, {"error": {"message": "The engine is gone.", "code": "engine_died"}})
    ask(qtbot, window, "Again")
    assert said == ["The engine is gone."]
    said.clear()
    server.error, server.thoughts, server.pieces, server.delay = None, [], ["One. "] * 1_000, 0.01
    say(qtbot, window, "On and on")
    qtbot.waitUntil(lambda: bool(reply_view(window).text))
    qtbot.keyClick(window.page.composer.field, Qt.Key.Key_Escape)
    ended(qtbot, window)
    assert said[-1].startswith("One. One.") or said[-1] == "One.\nStopped"
    assert said[-1].endswith("\nStopped")


def test_a_call_that_waits_is_said_once(qtbot, window: MainWindow, said: list[str]) -> None:
    view = CallsView(window.tools, window)
    call = ToolCall("1", "weight", '{"animal": "fox"}', server="animals", tool="weight")
    for _ in range(2):
        view.show_calls(Message(2, 1, None, Role.ASSISTANT, "", 0, calls=(call,)))
    assert said == ['The model wants to call weight of animals with\n{"animal": "fox"}']


def test_the_palette_says_what_enter_would_do(qtbot, window: MainWindow, said: list[str]) -> None:
    window.open_palette()
    field = window.palette_card.field
    qtbot.keyClicks(field, "theme")
    assert said[-1].startswith("Theme: ")
    qtbot.keyClick(field, Qt.Key.Key_Down)
    assert said[-1] == window.palette_card.list.rows.rows[1].words
    qtbot.keyClicks(field, "qqqq")
    assert said[-1] == "Nothing like that"


def test_copying_and_notes_are_said(qtbot, window: MainWindow, server: FakeServer, said: list[str]) -> None:
    server.pieces = ["```py\nx = 1\n```"]
    ask(qtbot, window, "Hello")
    view = reply_view(window)
    qtbot.waitUntil(lambda: bool(view.view.copy_buttons))
    said.clear()
    view.copy.click()
    view.view.copy_buttons[0].click()
    assert said == ["Copied", "Copied"]
    note = NoteCard(CALM)
    note.setParent(window)
    for words in ("Reading, 10 %", "Reading, 20 %", ""):
        note.say(words)
    assert said[2:] == ["Reading, 10 %"]


def test_names_have_what_is_seen(qtbot, window: MainWindow, server: FakeServer) -> None:
    """A name of one's own takes the place of the words on a button: it has to have them."""
    window.watch.start()
    server.thoughts = ["Hm."]
    ask(qtbot, window, "Hello")
    view = reply_view(window)
    parts = [part for part in view.children() if part in (view.thoughts, view.view, view.receipt)]
    assert parts == [view.thoughts, view.view, view.receipt], "they are read in the order they are seen in"
    qtbot.waitUntil(window.page.fit.bar.isVisible)
    page = window.page
    assert name_of(page.picker.button) == "Model: ember-q8_0"
    assert page.fit.bar.text() in name_of(page.fit.bar)
    assert name_of(reply_view(window).receipt).startswith("Receipt: 412 tok/s, 1.7× plain, 62 of 80 drafts accepted")
    page.composer.speed.open()
    rows = page.composer.speed.card.rows
    assert [name_of(rows[speed]) for speed in (Speed.AUTO, Speed.FAST)] == ["Auto, chosen", "Fast"]
    page.composer.speed.card.close()


def test_rows_of_lists_say_all_they_show(qtbot) -> None:
    models = RowList("Models")
    qtbot.addWidget(models)
    models.show_rows([ListRow("a", "Fox <7B>", "fits · 4 GB", "≈ 12 tok/s", "toy")])
    interface = QAccessible.queryAccessibleInterface(models)
    assert interface is not None
    row = interface.child(0)
    assert row is not None
    assert row.text(QAccessible.Text.Name) == "Fox <7B>, toy, fits · 4 GB, ≈ 12 tok/s"
    chats = HistoryModel()
    chats.show([ChatSummary(1, "A fox", 0, is_pinned=True), ChatSummary(2, "The moon", 0)])
    chats.set_running({2})
    words = [chats.index(row).data(Qt.ItemDataRole.AccessibleTextRole) for row in range(chats.rowCount())]
    assert "A fox, pinned" in words
    assert "The moon, a reply comes in" in words
    chats.show([ChatSummary(1, "A fox", 0, snippet="the red fox", is_archived=True)], is_grouped=False)
    assert chats.index(0).data(Qt.ItemDataRole.AccessibleTextRole) == "A fox, Archived · the red fox"


def test_a_long_reply_can_be_read_with_the_arrow_keys(qtbot, window: MainWindow, server: FakeServer) -> None:
    server.pieces = ["\n\n".join(f"Paragraph {number}." for number in range(60))]
    ask(qtbot, window, "Hello")
    view, transcript = reply_view(window).view, window.page.transcript
    qtbot.waitUntil(lambda: transcript.verticalScrollBar().maximum() > 500)
    view.setFocus(Qt.FocusReason.TabFocusReason)
    qtbot.keyClick(view, Qt.Key.Key_Home, Qt.KeyboardModifier.ControlModifier)

    def is_cursor_seen() -> bool:
        at = view.mapTo(transcript.viewport(), view.cursorRect().center())
        return transcript.viewport().rect().contains(at)

    assert is_cursor_seen()
    for _ in range(59):
        qtbot.keyClick(view, Qt.Key.Key_Down)
        assert is_cursor_seen()
    bar = transcript.verticalScrollBar()
    bottom = bar.value()
    qtbot.keyClick(view, Qt.Key.Key_PageUp)
    assert bar.value() == pytest.approx(bottom - bar.pageStep(), abs=2)
    window.page.composer.setFocus()
    qtbot.keyClick(window.page.composer.field, Qt.Key.Key_PageUp)
    assert bar.value() == pytest.approx(bottom - 2 * bar.pageStep(), abs=2)
    qtbot.keyClick(window.page.composer.field, Qt.Key.Key_PageDown)
    assert bar.value() == pytest.approx(bottom - bar.pageStep(), abs=2)


def test_a_banner_that_counts_on_is_said_once(qtbot, window: MainWindow, said: list[str]) -> None:
    banner = window.page.fit.banner
    for words in ("It has about 1,100 tokens.", "It has about 1,205 tokens.", "It fits no more."):
        banner.say(words)
    banner.hide()
    banner.say("It fits no more.")
    assert said == ["It has about 1,100 tokens.", "It fits no more.", "It fits no more."]


def test_where_the_keyboard_comes_into_a_list_its_row_is_said(
    qtbot, window: MainWindow, server: FakeServer, said: list[str]
) -> None:
    ask(qtbot, window, "Hello")
    qtbot.waitUntil(lambda: window.chats.history.list.currentIndex().isValid())
    window.chats.history.search.setFocus()
    said.clear()
    qtbot.keyClick(window.chats.history.search, Qt.Key.Key_Down)
    qtbot.waitUntil(lambda: bool(said))
    assert said == ["Hello"]
    models = RowList("Models", window)
    models.show_rows([ListRow("a", "Fox", ""), ListRow("b", "Owl", "4 GB")])
    models.choose("b")
    models.show()
    models.setFocus()
    qtbot.waitUntil(lambda: len(said) > 1)
    assert said[1:] == ["Owl, 4 GB"]


def test_other_versions_and_what_is_undone_are_said(
    qtbot, window: MainWindow, server: FakeServer, said: list[str]
) -> None:
    ask(qtbot, window, "Hello")
    window.page.transcript.answer_again()
    ended(qtbot, window)
    said.clear()
    qtbot.keyClick(window.page.composer.field, Qt.Key.Key_Left, Qt.KeyboardModifier.AltModifier)
    assert said == ["Version 1 of 2"]
    window.desk.delete(window.desk.current.chat.id)
    qtbot.waitUntil(lambda: "Chat deleted" in said)
    window.chats.undo()
    assert said[-1] == "Undone"


def test_escape_leaves_the_settings_of_a_chat(qtbot, window: MainWindow) -> None:
    window.resize(1180, 780)
    window.chats.toggle_settings()
    assert window.focusWidget() is window.chats.tuning.prompt
    qtbot.keyClick(window.chats.tuning.prompt, Qt.Key.Key_Escape)
    assert window.chats.tuning.isHidden()
    assert window.focusWidget() is window.page.composer.field
