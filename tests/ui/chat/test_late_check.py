"""A file of chats that is too large to be checked at each start is looked through while it is in use."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from PySide6.QtCore import QProcess

import ui.chat.storage.store as store_module
from ui.chat.storage.chat_archive import ChatArchive
from ui.chat.storage.late_check import damage_in
from ui.chat.storage.store import ChatStore, StoreDamaged, mark_of
from ui.client.api import Api
from ui.client.chat_records import Chat, Message, Role
from ui.theme.appearance import Appearance
from ui.window.main_window import MainWindow
from ui.window.storage_notice import FOUND_WHOLE, WHOLE_SECONDS, StorageNotice

DAMAGED = "is damaged"


@pytest.fixture(autouse=True)
def _all_files_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "CHECKED_BYTES", 0)


def write_chats(path: Path, n_chats: int = 60) -> None:
    with closing(ChatStore(path)) as store:
        for number in range(1, n_chats + 1):
            store.save_chat(Chat(number, f"Chat {number}", number, number))
            words = f"These are the words of message {number}. " * 60
            store.save_message(Message(10_000 + number, number, None, Role.USER, words, number))


def break_a_page(path: Path, words: bytes = b"words of message 20.") -> None:
    """Overwrite a page that is read neither at the start nor when something is saved."""
    data = path.read_bytes()
    at = data.index(words) // 4096 * 4096
    path.write_bytes(data[:at] + b"\xff" * 4096 + data[at + 4096 :])


def storage_of(window: MainWindow) -> StorageNotice:
    (storage,) = window.chats.findChildren(StorageNotice)
    return storage


def look_through(qtbot, window: MainWindow) -> None:
    """Ask for the check, until it has begun or there is none."""
    window.chats.check_chats()
    answers = list[object]()
    window.chats.archive.ask(lambda store: None, answers.append, None)
    qtbot.waitUntil(lambda: bool(answers))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "chats.db"
    write_chats(made)
    return made


@pytest.fixture
def opened(qtbot, appearance: Appearance, lonely_api: Api, path: Path) -> Iterator[Callable[[], MainWindow]]:
    windows: list[MainWindow] = []

    def open_window() -> MainWindow:
        window = MainWindow(lonely_api, appearance, path, path.with_name("window.ini"), lonely_api)
        qtbot.addWidget(window)
        window.show()
        assert window.chats.archive.flush()
        windows.append(window)
        return window

    yield open_window
    for window in windows:
        window.close()


def test_damage_is_found_in_a_file_that_is_in_use(path: Path) -> None:
    with closing(ChatStore(path)) as store:
        store.save_chat(Chat(7_000, "New", 1, 1))
        assert damage_in(path) == ""
    break_a_page(path)
    with closing(ChatStore(path)) as store:
        store.save_chat(Chat(7_001, "Newer", 1, 1))
        assert damage_in(path)


def test_a_broken_index_of_words_alone_is_no_damage(path: Path) -> None:
    """It is made anew when it is met."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE message_fts_data SET block = x'ffffffff' WHERE id > 10")
        db.commit()
    assert damage_in(path) == ""
    mark_of(path).touch()
    with closing(ChatStore(path)) as store:  # checked whole, which SQLite 3.44 and later could take too far
        assert [chat.id for chat in store.mended(lambda one: one.search("words of message 20"))] == [20]


def test_what_cannot_be_looked_at_is_neither_whole_nor_damaged(tmp_path: Path) -> None:
    assert damage_in(tmp_path / "gone.db") is None
    (tmp_path / "other.db").write_bytes(b"garbage " * 1_000)
    assert damage_in(tmp_path / "other.db")


def test_a_mark_lets_the_next_start_check_the_whole_file(path: Path) -> None:
    break_a_page(path)
    mark_of(path.with_name("other.db")).touch()
    ChatStore(path).close()
    mark_of(path).touch()
    with pytest.raises(StoreDamaged):
        ChatStore(path)
    problems: list[str | None] = []
    archive = ChatArchive(path, lambda call: call(), problems.append)
    assert archive.flush()
    archive.close()
    assert "was damaged" in (problems[0] or "")
    assert len(archive.damaged) == 1
    assert not mark_of(path).exists()
    assert mark_of(path.with_name("other.db")).exists()


def test_a_mark_goes_where_the_start_finds_no_damage(path: Path) -> None:
    mark_of(path).touch()
    with closing(ChatStore(path)) as store:
        assert len(store.chats()) == 60
    assert not mark_of(path).exists()


def test_damage_that_a_chat_meets_is_looked_for_at_the_next_start(path: Path) -> None:
    break_a_page(path)
    problems: list[str | None] = []
    archive = ChatArchive(path, lambda call: call(), problems.append)
    archive.ask(lambda store: [store.messages(number) for number in range(1, 61)], lambda found: None, None)
    assert archive.flush()
    archive.close()
    assert "Start Slipstream again" in (problems[0] or "")
    assert mark_of(path).exists()


def test_the_window_tells_of_damage_and_the_next_start_offers_the_way_out(qtbot, path: Path, opened) -> None:
    break_a_page(path)
    window = opened()
    window.chats.check_chats()
    banner = window.chats.storage_banner
    qtbot.waitUntil(lambda: DAMAGED in banner.text)
    before = path.read_bytes()
    banner.close_button.click()  # later
    assert path.read_bytes() == before
    qtbot.waitUntil(lambda: not storage_of(window).is_looking)
    window.chats.check_chats()
    qtbot.waitUntil(lambda: DAMAGED in banner.text)
    with qtbot.waitSignal(window.closed):
        banner.action.click()
    again = opened()
    qtbot.waitUntil(lambda: again.chats.storage_banner.action.text() == "Bring chats back…")
    assert not mark_of(path).exists()


def test_a_whole_file_is_not_looked_through_again_this_week(qtbot, path: Path, opened) -> None:
    window = opened()
    storage = storage_of(window)
    window.chats.check_chats()
    qtbot.waitUntil(lambda: storage.is_looking)
    qtbot.waitUntil(lambda: window.kept.value(FOUND_WHOLE) is not None and not storage.is_looking)
    look_through(qtbot, window)
    assert not storage.is_looking
    file, when = json.loads(str(window.kept.value(FOUND_WHOLE)))
    window.kept.keep(FOUND_WHOLE, json.dumps([file, when - WHOLE_SECONDS]))
    look_through(qtbot, window)
    assert storage.is_looking
    qtbot.waitUntil(lambda: not storage.is_looking)


def test_a_file_in_place_of_the_one_that_was_whole_is_looked_through(qtbot, path: Path, opened) -> None:
    window = opened()
    window.kept.keep(FOUND_WHOLE, json.dumps([path.stat().st_ino + 1, time.time()]))
    look_through(qtbot, window)
    assert storage_of(window).is_looking
    window.close()
    assert json.loads(str(window.kept.value(FOUND_WHOLE)))[0] != path.stat().st_ino


def test_a_mark_that_cannot_be_written_is_not_promised(qtbot, path: Path, opened) -> None:
    break_a_page(path)
    window = opened()
    folder = mark_of(path)
    folder.symlink_to(path.with_name("gone") / "mark")
    window.chats.check_chats()
    banner = window.chats.storage_banner
    qtbot.waitUntil(lambda: "cannot be written" in banner.text)
    folder.unlink()
    assert banner.action.text() == "Try again"
    banner.action.click()
    assert banner.action.text() == "Quit"
    assert mark_of(path).exists()


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_quitting_does_not_wait_for_the_check(qtbot, path: Path, opened) -> None:
    window = opened()
    look_through(qtbot, window)
    (process,) = storage_of(window).findChildren(QProcess)
    qtbot.waitUntil(lambda: process.processId() > 0)
    os.kill(process.processId(), signal.SIGSTOP)
    window.close()
    assert process.state() is QProcess.ProcessState.NotRunning
    assert window.kept.value(FOUND_WHOLE) is None
    assert not mark_of(path).exists()


def test_a_small_file_is_left_to_the_start(qtbot, path: Path, opened, monkeypatch: pytest.MonkeyPatch) -> None:
    window = opened()
    monkeypatch.setattr(store_module, "CHECKED_BYTES", 1 << 30)
    look_through(qtbot, window)
    assert not storage_of(window).is_looking


def test_a_file_that_the_start_still_checks_is_not_looked_through(
    qtbot, appearance: Appearance, lonely_api: Api, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_a_page(path)
    mark_of(path).touch()
    may_check, check = threading.Event(), store_module.damage_of

    def check_late(db: sqlite3.Connection) -> str:
        assert may_check.wait(60)
        return check(db)

    monkeypatch.setattr(store_module, "damage_of", check_late)
    window = MainWindow(lonely_api, appearance, path, path.with_name("window.ini"), lonely_api)
    qtbot.addWidget(window)
    window.show()
    window.chats.check_chats()
    assert not storage_of(window).is_looking
    may_check.set()
    look_through(qtbot, window)
    assert not storage_of(window).is_looking
    assert window.chats.storage_banner.action.text() == "Bring chats back…"
    window.close()


def test_a_whole_check_at_the_start_counts_for_the_week(qtbot, path: Path, opened) -> None:
    mark_of(path).touch()
    window = opened()
    look_through(qtbot, window)
    assert not storage_of(window).is_looking
    assert json.loads(str(window.kept.value(FOUND_WHOLE)))[0] == path.stat().st_ino
