"""The palette in the window, with the keyboard alone."""

from __future__ import annotations

from functools import partial

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QFileDialog, QInputDialog, QLabel

from tests.support.chat_window import ask
from ui.chat.storage.ids import now_ms
from ui.chat.storage.store import ChatStore
from ui.client.chat_records import Chat
from ui.commands.command import Command, ranked
from ui.commands.shortcuts_dialog import ShortcutsDialog
from ui.theme.appearance import Appearance, ThemeChoice
from ui.window.main_window import MainWindow


@pytest.fixture
def window(qtbot, window: MainWindow) -> MainWindow:
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    return window


def press(qtbot, window: MainWindow, key: Qt.Key, *more: Qt.Key) -> None:
    for one in (key, *more):
        qtbot.keyClick(window.focusWidget(), one)


def rows(window: MainWindow) -> list[tuple[str, str]]:
    return [(row.title, row.right) for row in window.palette_card.list.rows.rows]


def test_a_dialog_that_is_opened_over_the_palette_gives_the_keyboard_back(qtbot, window: MainWindow) -> None:
    field = window.page.composer.field
    field.setFocus()
    window.open_palette()
    window.show_shortcuts()
    qtbot.waitUntil(window.palette_card.isHidden)
    dialog = window.findChild(ShortcutsDialog)
    qtbot.waitUntil(dialog.isActiveWindow)
    qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    assert window.focusWidget() is field


def test_a_command_is_found_and_done(qtbot, window: MainWindow, appearance: Appearance) -> None:
    qtbot.keyClick(window.page.composer.field, Qt.Key.Key_K, Qt.KeyboardModifier.ControlModifier)
    card = window.palette_card
    assert card.isVisible()
    assert window.focusWidget() is card.field
    qtbot.keyClicks(card.field, "thdark")
    assert rows(window)[0][0] == "Theme: Dark"
    press(qtbot, window, Qt.Key.Key_Return)
    assert appearance.choice is ThemeChoice.DARK
    assert not card.isVisible()
    assert window.focusWidget() is window.page.composer.field


# What newcomers type, and what is meant.
MEANT = {
    "dark": "Theme: Dark", "delete chat": "Delete this chat", "rename": "Rename this chat…", "gpu": "Speed",
    "export": "Export this chat…", "archive": "Put this chat into the archive", "hotkey": "Keyboard shortcuts",
    "temperature": "Show or hide the settings of the chat", "zoom": "Larger text", "api key": "Server",
    "switch model": "Choose a model", "download": "Library", "system prompt": "Prompts", "deep": "Jobs",
    "deep question": "Ask a hard question", "compare": "Race two ways to answer", "tools": "MCP servers",
    "pdf": "Attach files", "preferences": "Settings", "exit": "Quit", "autostart": "Start at login",
    "hf token": "Hugging Face Hub", "regenerate": "Answer again", "stop": "Stop the reply", "german": "Language",
    "split": "New chat beside this one", "tray": "Keep running without the window", "chatgpt": "Import chats…",
    "context": "Context", "privacy": "No telemetry", "storage": "Library", "font": "Larger text",
    "web search": "MCP servers", "trash": "Delete this chat", "persona": "Prompts", "fast": "Speed", "url": "Server",
    "port": "Server", "ram": "Speed", "phone": "Server", "logs": "Server", "queue": "Jobs", "cores": "Speed",
    "verify": "Speed", "convert": "Library", "startup": "Start at login", "offline": "No telemetry",
    "max tokens": "Show or hide the settings of the chat", "factory reset": "All settings of this page",
}  # fmt: skip


def test_what_is_called_otherwise_elsewhere_is_found_first(qtbot, window: MainWindow) -> None:
    card = window.palette_card
    window.open_palette()
    card.field.setText("telemetry")
    qtbot.waitUntil(lambda: rows(window) == [("No telemetry", "Setting")])  # the last section of settings
    found = {}
    for typed in MEANT:
        card.field.setText(typed)
        found[typed] = rows(window)[0][0]
    assert found == MEANT


def test_a_chat_is_renamed_put_away_exported_and_deleted_by_name(qtbot, window: MainWindow) -> None:
    def run(name: str) -> None:
        window.open_palette()
        window.palette_card.field.setText(name)
        assert rows(window)[0][0] == name
        press(qtbot, window, Qt.Key.Key_Return)

    window.show_page("speed")
    run("Delete this chat")
    assert window.chats.toast.text == "Nothing has been said in this chat yet"
    assert window.page.isVisible()
    chat_id = ask(qtbot, window, "Foxes").chat_id
    run("Rename this chat…")
    dialog = window.findChild(QInputDialog)
    assert dialog.textValue() == "Foxes"
    dialog.setTextValue("  Of   hens ")
    dialog.accept()
    assert window.desk.current.chat.title == "Of hens"
    run("Export this chat…")
    dialog = window.findChild(QFileDialog)
    assert dialog.selectedFiles()[0].endswith("Of hens.md")
    dialog.reject()
    archived = []
    for name, told in (("Put this chat into the archive", "Chat archived"), ("Delete this chat", "Chat deleted")):
        run(name)
        assert window.chats.toast.text == told
        window.chats.archive.ask(ChatStore.archived, archived.append, [])
    qtbot.waitUntil(lambda: len(archived) == 2)
    assert [[chat.id for chat in chats] for chats in archived] == [[chat_id], []]
    assert window.desk.current.is_new
    window.show_page("speed")
    run("Ask a hard question")
    assert window.focusWidget() is window.jobs.question


def test_settings_pages_and_chats_are_found_too(qtbot, window: MainWindow) -> None:
    now = now_ms()
    for number, title in enumerate(("A fox and the moon", "Telemetry of rockets"), 1):
        window.chats.archive.save_chat(Chat(number, title, now, now))
    window.open_palette()
    qtbot.keyClicks(window.palette_card.field, "telemetry")
    qtbot.waitUntil(lambda: len(rows(window)) == 2)
    assert rows(window) == [("Telemetry of rockets", "Chat"), ("No telemetry", "Setting")]
    press(qtbot, window, Qt.Key.Key_Down, Qt.Key.Key_Return)
    assert window.settings is not None
    assert window.settings.isVisible()
    window.open_palette()
    qtbot.keyClicks(window.palette_card.field, "fox moon")
    qtbot.waitUntil(lambda: len(rows(window)) == 1)
    press(qtbot, window, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: window.desk.current.chat.id == 1)
    assert window.page.isVisible()


def test_models_that_come_while_it_is_open_are_found(qtbot, window: MainWindow) -> None:
    window.chats.archive.save_chat(Chat(1, "Of an ember", now_ms(), now_ms()))
    window.open_palette()
    qtbot.keyClicks(window.palette_card.field, "ember")
    qtbot.waitUntil(lambda: rows(window) == [("Of an ember", "Chat")])
    window.watch.start()
    models = [("ember-q8_0", "Model"), ("ember-draft-q8_0", "Model")]
    qtbot.waitUntil(lambda: sorted(rows(window)) == sorted([("Of an ember", "Chat"), *models]))
    window.watch.models_changed.emit(window.watch.models)
    assert len(rows(window)) == 3
    window.chats.find_beside(window.palette_card)
    window.watch.models_changed.emit(window.watch.models)
    qtbot.waitUntil(lambda: rows(window) == [("Of an ember", "Chat")])


def test_a_chat_is_opened_beside_the_one_in_use(qtbot, window: MainWindow) -> None:
    now = now_ms()
    for number, title in enumerate(("A fox and the moon", "Foxes of the north", "Wolves"), 1):
        window.chats.archive.save_chat(Chat(number, title, now, now))
    window.resize(1400, 800)
    window.desk.open(1)
    qtbot.waitUntil(lambda: window.desk.current.chat.id == 1)
    card = window.palette_card
    window.open_palette()
    assert card.hint.isHidden()  # for chats only
    qtbot.keyClicks(card.field, "north")
    qtbot.waitUntil(lambda: rows(window)[:1] == [("Foxes of the north", "Chat")])
    assert card.hint.isVisible()
    qtbot.keyClick(card.field, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: window.desk.current.chat.id == 2)
    assert [page.pane.current.chat.id for page in window.chats.panes.pages] == [1, 2]
    window.open_palette()
    qtbot.keyClicks(card.field, "chat beside")
    assert ("Open a chat beside this one", "") in rows(window)
    window.chats.find_beside(window.palette_card)
    qtbot.waitUntil(lambda: rows(window) == [("Wolves", "Chat")])  # not those that are open
    press(qtbot, window, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: 3 in [page.pane.current.chat.id for page in window.chats.panes.pages])
    assert window.desk.current.chat.id == 3


def test_the_keys_of_the_list_go_round_and_escape_gives_the_keyboard_back(qtbot, window: MainWindow) -> None:
    window.chats.history.search.setFocus()
    window.open_palette()
    listed = window.palette_card.list
    for key, at in ((Qt.Key.Key_Up, -1), (Qt.Key.Key_Down, 0), (Qt.Key.Key_Tab, 1), (Qt.Key.Key_PageUp, 0)):
        press(qtbot, window, key)
        assert listed.currentIndex().row() == at % listed.rows.rowCount()
    qtbot.keyClicks(window.palette_card.field, "nothing like this")
    assert window.palette_card.nothing.isVisible()
    press(qtbot, window, Qt.Key.Key_Return, Qt.Key.Key_Escape)
    assert window.focusWidget() is window.chats.history.search
    window.open_palette()
    window.page.composer.field.setFocus()
    assert not window.palette_card.isVisible()


def test_ten_thousand_chats_are_found_in(qtbot, window: MainWindow) -> None:
    opened: list[int] = []
    window.palette_card.open([Command(f"Chat {n} about foxes", partial(opened.append, n)) for n in range(10_000)])
    qtbot.keyClicks(window.palette_card.field, "fox 9876")
    press(qtbot, window, Qt.Key.Key_Return)
    assert opened == [9876]


def test_every_key_is_listed_once(qtbot, window: MainWindow) -> None:
    keys = [key for command in window.commands for key in command.keys]
    shortcuts = [one.key().toString() for one in window.findChildren(QShortcut) if one.parent() is window]
    assert sorted(QKeySequence(key).toString() for key in keys) == sorted(shortcuts)
    assert len(set(keys)) == len(keys)
    qtbot.keyClick(window, Qt.Key.Key_F1)
    dialog = window.findChildren(ShortcutsDialog)[-1]
    listed = [key for lines in dialog.lines.values() for _, of in lines for key in of]
    assert set(listed) >= set(keys)
    assert len(set(listed)) == len(listed)
    headings = [label.text() for label in dialog.findChildren(QLabel) if label.property("tone") == "section"]
    assert headings == list(dialog.lines) == ["Chat", "Chats", "Pages", "Window"]
    assert "Ctrl+R" in [key for _, of in dialog.lines["Chat"] for key in of]
    press(qtbot, dialog, Qt.Key.Key_Return)


def test_ctrl_f_searches_the_page_that_is_shown(qtbot, window: MainWindow) -> None:
    fields = {
        "chat": lambda: window.chats.history.search,
        "settings": lambda: window.settings.search,
        "library": lambda: window.library.models.filter,
    }
    for page, field in fields.items():
        window.show_page(page)
        qtbot.keyClick(window.focusWidget(), Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
        assert window.focusWidget() is field()


NAMES = ("New chat", "Show or hide the chats", "Theme: Dark", "A fox and the moon", "Straße nach Köln", "Rechat")


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("", list(NAMES)),
        ("chat", ["New chat", "Show or hide the chats", "Rechat"]),
        ("CHAT new", ["New chat"]),
        ("thdk", ["Theme: Dark"]),
        ("td", ["Theme: Dark"]),
        ("ha", ["New chat", "Show or hide the chats", "Rechat"]),
        ("nc", ["New chat"]),
        ("at", ["New chat", "Show or hide the chats", "Rechat", "A fox and the moon"]),
        ("tha", ["Show or hide the chats", "Theme: Dark"]),
        ("the", ["Theme: Dark", "Show or hide the chats", "A fox and the moon"]),
        ("hen", []),
        ("strasse", ["Straße nach Köln"]),
        ("n", ["New chat", "Straße nach Köln", "A fox and the moon"]),
        ("zzz", []),
    ],
)
def test_every_typed_word_fits_and_the_best_comes_first(typed: str, found: list[str]) -> None:
    commands = [Command(name, lambda: None) for name in NAMES]
    assert [command.name for command in ranked(commands, typed, 10)] == found
    assert [command.name for command in ranked(commands, typed, 2)] == found[:2]


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("q4", ["Qwen3-8B-Q4_K_M"]),
        ("qwen q8", ["Qwen3-4B-Q8_0"]),
        ("k", ["Qwen3-8B-Q4_K_M"]),
        ("load", ["Download models", "Look over all documents here"]),
        ("nc", ["New chat", "A French encyclopaedia"]),
    ],
)
def test_words_of_names_end_at_hyphens_and_some_initials_come_last(typed: str, found: list[str]) -> None:
    names = ("A French encyclopaedia", "Qwen3-4B-Q8_0", "Qwen3-8B-Q4_K_M", "Look over all documents here", "New chat")
    commands = [Command(name, lambda: None) for name in (*names, "Download models")]
    assert [command.name for command in ranked(commands, typed, 10)][: len(found)] == found


def test_scattered_letters_fit_where_they_are_closest() -> None:
    names = ("Keyboard shortcuts", "Caption tests", "Cabin list, clean table")
    commands = [Command(name, lambda: None) for name in names]
    assert [command.name for command in ranked(commands, "kbs", 3)] == ["Keyboard shortcuts"]
    assert [command.name for command in ranked(commands, "cnt", 3)] == ["Cabin list, clean table", "Caption tests"]
