"""Drafted words, tinted in the text: found in the markdown, kept with the message, drawn also in code."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QTextDocument

from tests.support.chat_window import ask, copied_code, reply_view
from tools.stand_ins.fake_openai import FakeServer
from ui.chat.markdown.draft_tint import DraftTint
from ui.chat.messages.assistant_message import AssistantMessage
from ui.theme.tokens import LIGHT
from ui.window.main_window import MainWindow

CODE = "\n\n```python\nx = 1\nprint(x)\n```\n"


@pytest.mark.parametrize(
    ("source", "spans", "pieces", "drafted"),
    [
        ("one two", [(4, 7)], ["one two"], ["two"]),
        ("one two", [], ["one two"], []),
        ("a **b** c", [(4, 9)], ["a ", "b", " c"], ["b", " c"]),
        ("[a](http://b) b", [(13, 15)], ["a", " b"], [" b"]),
        ("&amp; b", [(5, 7)], ["&", " b"], [" b"]),
        ("- x\n  y = 1\n", [(6, 11)], ["x\ny = 1"], ["y = 1"]),
        ("abcd", [(0, 1), (2, 3)], ["abcd"], ["a", "c"]),
    ],
)
def test_the_drafted_parts_of_pieces_are_found(
    source: str, spans: list[tuple[int, int]], pieces: list[str], drafted: list[str]
) -> None:
    tint = DraftTint(source, 0, spans)
    found = [part for piece in pieces for part in tint.split(piece)]
    assert "".join(text for text, _ in found) == "".join(pieces)
    assert [text for text, is_drafted in found if is_drafted] == drafted


def tinted(document: QTextDocument) -> str:
    """Return the text on the colour of drafted words."""
    found, block = "", document.begin()
    while block.isValid():
        it = block.begin()
        while not it.atEnd():
            fragment = it.fragment()
            if fragment.charFormat().background().color().name() == LIGHT.accent_soft:
                found += fragment.text()
            it += 1
        block = block.next()
    return found


def told(qtbot, window: MainWindow) -> AssistantMessage:
    ask(qtbot, window, "Go on.")
    return reply_view(window)


@pytest.fixture
def drafting(server: FakeServer) -> FakeServer:
    server.pieces = ["The ", "**quick** fox", " runs.", "\n\n```python\nx", " = 1\nprint", "(x)\n```\n"]
    server.drafted = [[], [[2, 7]], [[1, 5]], [], [[1, 10]], [[0, 3]]]
    return server


def test_drafted_words_are_tinted_while_they_come_and_kept(qtbot, window: MainWindow, drafting: FakeServer) -> None:
    assert tinted(told(qtbot, window).view.document()) == ""
    assert "drafted_spans" not in drafting.requests[-1]
    qtbot.keyClick(window, Qt.Key.Key_D, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier)
    view = told(qtbot, window)
    assert drafting.requests[-1]["drafted_spans"] is True
    expected = "quickruns= 1print(x)"
    assert tinted(view.view.document()).replace(" ", "") == expected.replace(" ", "")
    assert copied_code(qtbot, view.view) == "x = 1\nprint(x)"
    chat = window.desk.current.chat.id
    window.desk.new_chat()
    window.desk.open(chat)
    qtbot.waitUntil(lambda: window.desk.current.chat.id == chat)
    assert tinted(reply_view(window).view.document()).replace(" ", "") == expected.replace(" ", "")
    reply_view(window).receipt.click()
    card = reply_view(window).receipt_card
    assert card is not None
    window.resize_text(150)
    window.resize(800, 600)
    qtbot.waitUntil(lambda: card.width() <= window.page.transcript.viewport().width())
    card.tint.click()
    assert tinted(reply_view(window).view.document()) == ""
    assert copied_code(qtbot, reply_view(window).view) == "x = 1\nprint(x)"


def test_the_keys_for_the_tint_say_whether_it_is_on(qtbot, window: MainWindow) -> None:
    (tint,) = (one for one in window.commands if one.keys == ("Ctrl+Shift+D",))
    tint.act()
    assert window.chats.toast.text == "Drafted words of new replies are tinted."
    assert window.tools.style.tints_drafts
    tint.act()
    assert window.chats.toast.text == "Drafted words are no longer tinted."
    assert not window.tools.style.tints_drafts
