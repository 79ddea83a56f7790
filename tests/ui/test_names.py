"""Every control has a name for those who do not see it, and the keyboard reaches it: all pages are walked."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QLineEdit

from tests.support.nameless import nameless
from tools.stand_ins.fake_openai import FakeServer
from ui.chat.messages.user_message import UserMessage
from ui.client.speeds import Speed
from ui.library.hub_dialog import HubDialog
from ui.library.library_page import DOWNLOADS, FIND, HERE
from ui.library.quantise_dialog import QuantiseDialog
from ui.library.settings.settings_dialog import SettingsDialog
from ui.theme.appearance import Appearance
from ui.window.main_window import MainWindow
from ui.window.rail import PAGES


@pytest.mark.usefixtures("library_server")
def test_every_control_has_a_name(qtbot, window: MainWindow, appearance: Appearance, server: FakeServer) -> None:
    """One test: what is made for one page stays for the next."""
    server.thoughts = ["Let me think."]
    server.pieces = ["```py\nx = 1\n```\n\n| a |\n|--|\n| 1 |\n\nDone."]
    window.watch.start()
    for text in ("First", "Second"):
        window.page.composer.set_text(text)
        qtbot.keyClick(window.page.composer.field, Qt.Key.Key_Return)
        qtbot.waitUntil(lambda: not window.desk.current.is_running)
    question = window.page.transcript.view_of(window.desk.current.tree.path[-2].id)
    assert isinstance(question, UserMessage)
    question.begin_edit()
    window.page.composer.speed.open()
    window.page.composer.speed.card.chosen.emit(Speed.STANDARD)
    window.chats.toggle_settings()
    shown = [one for one in window.findChildren(QAbstractButton) if not isinstance(one.parent(), QLineEdit)]
    for button in (one for one in shown if one.isVisible() and one.isEnabled()):
        assert button.focusPolicy() & Qt.FocusPolicy.TabFocus, button.text() or button.accessibleName()
    for page in PAGES:
        window.show_page(page)
    made = window.library
    assert made is not None
    for tab in (FIND, DOWNLOADS, HERE):
        made.show_tab(tab)
    qtbot.waitUntil(lambda: made.models.list.rows.rowCount() > 1)
    made.models.list.choose("ember-q8_0")
    qtbot.waitUntil(lambda: made.models.details.partners.shown is not None)
    window.open_palette()
    window.palette_card.close_up()
    window.show_shortcuts()
    dialogs = [
        HubDialog(window.link, window),
        SettingsDialog(window.link, "ember-q8_0", window),
        QuantiseDialog(window.link, "ember-q8_0", window),
    ]
    assert [one for root in (window, *dialogs) for one in nameless(root)] == []
