"""A damaged file of chats, a backup, and what comes back of them."""

from __future__ import annotations

import queue
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from PySide6.QtWidgets import QMenu

import ui.chat.storage.rescue as rescue_module
from models.files.disk import backup_of
from ui.chat.storage.chat_archive import ChatArchive
from ui.chat.storage.rescue import RESCUED, Rescue
from ui.chat.storage.store import MIGRATIONS, NEW_CHAT, ChatStore, StoreDamaged
from ui.client.api import Api
from ui.client.attachments import Attachment, Part
from ui.client.chat_records import Chat, Message, Prompt, Role, Status, Timings
from ui.theme.appearance import Appearance
from ui.window.main_window import MainWindow
from ui.window.storage_notice import StorageNotice

N_CHATS = 400


def rescue(source: Path, store: ChatStore) -> int:
    """Bring all back, and return how many chats came."""
    rescue = Rescue(source)
    while not rescue.is_over:
        rescue.step(store)
    return rescue.n_chats


def write_chats(path: Path) -> None:
    with closing(ChatStore(path)) as store:
        for number in range(1, N_CHATS + 1):
            store.save_chat(Chat(number, f"Chat {number}", number, number))
            question = 10_000 + 2 * number
            store.save_message(Message(question, number, None, Role.USER, "Why? " * 40, number))
            store.save_message(
                Message(question + 1, number, question, Role.ASSISTANT, "So. " * 90, number, Status.DONE)
            )


def break_pages(path: Path) -> None:
    """Overwrite a stretch in the middle of the file."""
    with open(path, "r+b") as file:
        file.seek(path.stat().st_size // 2 // 4096 * 4096)
        file.write(b"\xff" * 4096 * 3)


def test_what_can_be_read_of_a_damaged_file_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    write_chats(path)
    break_pages(path)
    with pytest.raises(StoreDamaged):
        ChatStore(path)
    with closing(ChatStore(tmp_path / "new.db")) as store:
        n_chats = rescue(path, store)
        assert n_chats > N_CHATS * 0.5
        assert rescue(path, store) == 0, "what is there is not taken twice"
        messages = [message for chat in store.chats() for message in store.messages(chat.id)]
        assert len(messages) > N_CHATS
        assert store.search("so")
    assert path.exists()


@pytest.mark.parametrize("table", ["message", "chat"])
def test_what_lies_between_two_broken_pages_comes_back(tmp_path: Path, table: str) -> None:
    path = tmp_path / "chats.db"
    write_chats(path)
    root = root_of(path, table)
    data = bytearray(path.read_bytes())
    # The root of the table has the numbers of its pages, by id.
    n_pages = int.from_bytes(data[root + 3 : root + 5], "big")
    cells = [int.from_bytes(data[root + 12 + 2 * n : root + 14 + 2 * n], "big") for n in range(n_pages)]
    pages = [int.from_bytes(data[root + cell : root + cell + 4], "big") for cell in cells]
    for page in (pages[1], pages[-1]):
        data[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
    path.write_bytes(data)
    with closing(sqlite3.connect(path)) as db:
        numbers = range(1, N_CHATS + 1) if table == "chat" else range(10_002, 10_002 + 2 * N_CHATS)
        readable = [number for number in numbers if can_read(db, table, number)]
    assert len(numbers) * 0.5 < len(readable) < len(numbers), "both pages are of rows"
    with closing(ChatStore(tmp_path / "new.db")) as store:
        assert rescue(path, store) == N_CHATS
        if table == "chat":
            found = [chat.id for chat in store.chats() if chat.title != RESCUED]
        else:
            found = [message.id for chat in store.chats() for message in store.messages(chat.id)]
        assert sorted(found) == readable, "each of them once"


def test_an_id_that_is_no_number_stops_nothing(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    write_chats(path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA writable_schema = ON")
        db.execute("UPDATE sqlite_master SET sql = replace(sql, 'NOT NULL', '') WHERE name = 'message'")
        db.commit()
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE message SET chat_id = NULL WHERE id = (SELECT max(id) FROM message)")
        db.commit()
    with closing(ChatStore(tmp_path / "new.db")) as store:
        assert rescue(path, store) == N_CHATS


def root_of(path: Path, table: str) -> int:
    """Return where the page is in a file of chats that leads to a table's rows."""
    with closing(sqlite3.connect(path)) as db:
        (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    return int(page - 1) * 4096


def can_read(db: sqlite3.Connection, table: str, number: int) -> bool:
    try:
        return db.execute(f"SELECT * FROM {table} WHERE id = ?", (number,)).fetchone() is not None
    except sqlite3.DatabaseError:
        return False


def test_messages_without_their_chat_or_question_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    write_chats(path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("DELETE FROM chat WHERE id = 1")
        db.execute("DELETE FROM message WHERE id = 10004")
        db.commit()
    with closing(ChatStore(None)) as store:
        assert rescue(path, store) == N_CHATS
        chat = store.chat(1)
        assert chat is not None
        assert chat.title == RESCUED
        assert [message.parent_id for message in store.messages(2)] == [None]


def test_a_deleted_chat_stays_away(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    write_chats(path)
    with closing(ChatStore(path)) as store:
        store.delete(2, now_ms=1)
    with closing(ChatStore(None)) as store:
        assert rescue(path, store) == N_CHATS - 1
        assert store.chat(2) is None
        assert store.messages(2) == []
        assert RESCUED not in [chat.title for chat in store.chats()]


def test_prompts_and_what_was_not_sent_come_back(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    write_chats(path)
    files = (Attachment("a.txt", 9, (Part("some text"),)),)
    with closing(ChatStore(path)) as store:
        store.delete(3, now_ms=1)
        for number in (7_001, 7_002):
            store.save_prompt(Prompt(number, f"Prompt {number}", "Tell me why.", False))
        store.save_draft_attachments(1, files)
        for key, text in {NEW_CHAT: "new", 1: "one", 10_004: "in its place", 3: "deleted", 4: "sent since"}.items():
            store.save_draft(key, text)
    with closing(ChatStore(tmp_path / "new.db")) as store:
        store.save_chat(Chat(4, "It is here", 4, 4))
        store.save_prompt(Prompt(7_002, "It is here", "", False))
        assert rescue(path, store) == N_CHATS - 2
        assert store.drafts() == {NEW_CHAT: "new", 1: "one", 10_004: "in its place"}
        assert store.draft_attachments() == {1: files}
        assert [prompt.name for prompt in store.prompts()] == ["Prompt 7001", "It is here"]
        store.save_draft(NEW_CHAT, "newer")
        assert rescue(path, store) == 0
        assert store.drafts()[NEW_CHAT] == "newer"


def test_broken_bytes_in_a_text_cost_only_themselves(tmp_path: Path) -> None:
    """SQLite itself does not look into texts."""
    path = tmp_path / "chats.db"
    with closing(ChatStore(path)) as store:
        for number in range(1, 5):
            store.save_chat(Chat(number, f"Chat {number}", number, number))
            store.save_message(Message(10 + number, number, None, Role.USER, "Why?", 1, timings=Timings(seed=3)))
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE chat SET title = CAST(x'466fff' AS TEXT) WHERE id IN (2, 3)")
        broken = "content = CAST(x'466fff' AS TEXT), timings = '{\"se', drafted = '[['"
        db.execute(f"UPDATE message SET {broken} WHERE id = 12")
        db.commit()
    with closing(ChatStore(path)) as store, closing(ChatStore(None)) as other:
        assert rescue(path, other) == 4
        for one in (store, other):
            assert [chat.title for chat in one.chats()] == ["Chat 4", "Fo\ufffd", "Fo\ufffd", "Chat 1"]
            (message,) = one.messages(2)
            assert (message.content, message.timings, message.drafted) == ("Fo\ufffd", None, ())
            assert [chat.id for chat in one.search("why")] == [4, 3, 1]
            assert [chat.id for chat in one.search("chat")] == [4, 1]


@pytest.mark.parametrize("content", [b"", b"garbage " * 1_000, None])
def test_a_file_without_chats_brings_none(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "lost.db"
    if content is not None:
        path.write_bytes(content)
    with closing(ChatStore(None)) as store:
        assert rescue(path, store) == 0


def test_an_older_file_is_copied_before_it_is_changed(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(MIGRATIONS[0])
        db.execute("INSERT INTO chat(id, title, created_ms, updated_ms) VALUES (1, 'Old', 1, 1)")
        db.execute("PRAGMA user_version = 1")
        db.commit()
    kept = backup_of(path)
    kept.with_name(f"{kept.name}.new").write_bytes(b"of a copy that was broken off" * 1_000)
    for _ in range(2):
        ChatStore(path).close()
    with closing(sqlite3.connect(backup_of(path))) as kept:
        assert kept.execute("PRAGMA user_version").fetchone() == (1,)
        assert kept.execute("SELECT title FROM chat").fetchall() == [("Old",)]
    with closing(ChatStore(None)) as store:
        assert rescue(backup_of(path), store) == 1


def test_a_reply_to_a_question_of_another_chat_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    write_chats(path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE message SET parent_id = 10002 WHERE id = 10005")
        db.commit()
    with closing(ChatStore(None)) as store:
        assert rescue(path, store) == N_CHATS
        assert [message.parent_id for message in store.messages(2)] == [None, None]


def test_chats_are_read_and_saved_while_others_are_brought_back_and_it_can_be_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rescue_module, "STEP_SECONDS", 0.0)  # a chat each
    source, said = tmp_path / "lost.db", list[float | None]()
    write_chats(source)
    before = source.read_bytes()
    posted = queue.SimpleQueue[Callable[[], None]]()
    archive = ChatArchive(tmp_path / "chats.db", posted.put, lambda problem: None)
    one, ended, shown = Rescue(source), list[bool](), list[object]()

    def progressed() -> None:
        said.append(one.share)
        if len(said) == 3:
            archive.save_chat(Chat(7_000, "New", 9_999, 9_999))
            archive.ask(ChatStore.chats, shown.append, None)
        if len(said) == 10:
            one.stop()

    archive.bring_back(one, progressed, ended.append)
    while not ended:
        posted.get(timeout=60)()
    assert ended == [True]
    assert one.is_stopped
    n_chats = one.n_chats
    archive.close()
    assert said[0] is None or said[0] == 0.0
    assert said[1:] == sorted(said[1:])
    assert 0 < n_chats < 20
    assert len(shown) == 1
    with closing(ChatStore(tmp_path / "chats.db")) as store:
        titles = [chat.title for chat in store.chats()]
        assert len(titles) == n_chats + 1
        assert "New" in titles
        assert all(len(store.messages(chat.id)) == 2 for chat in store.chats() if chat.title != "New"), "each is whole"
    assert source.read_bytes() == before


def test_one_that_is_stopped_before_the_first_row_says_that_it_was_stopped(tmp_path: Path) -> None:
    write_chats(tmp_path / "lost.db")
    one = Rescue(tmp_path / "lost.db")
    one.stop()
    with closing(ChatStore(None)) as store:
        one.step(store)
        assert store.chats() == []
    assert (one.is_over, one.is_stopped, one.n_chats) == (True, True, 0)


def test_where_the_disk_refuses_nothing_is_said_to_be_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(store: ChatStore, *rows: object) -> int:
        raise sqlite3.OperationalError("database or disk is full")

    source = tmp_path / "lost.db"
    write_chats(source)
    posted, problems = queue.SimpleQueue[Callable[[], None]](), list[str | None]()
    archive = ChatArchive(tmp_path / "chats.db", posted.put, problems.append)
    one, ended = Rescue(source), list[bool]()
    monkeypatch.setattr(ChatStore, "take_rows", refuse)
    archive.bring_back(one, lambda: None, ended.append)
    while not ended:
        posted.get(timeout=60)()
    archive.close()
    assert ended == [False]
    assert (one.n_chats, problems) == (0, [f"Chats cannot be saved in {tmp_path}: the disk is full."])


def test_the_window_offers_ways_out_of_a_damaged_file(qtbot, qapp, lonely_api: Api, tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    write_chats(path)
    store = ChatStore(path)
    store.save_draft(NEW_CHAT, "half a thought")
    store.close()
    break_pages(path)
    appearance = Appearance(qapp)
    window = MainWindow(lonely_api, appearance, path, tmp_path / "window.ini", lonely_api)
    qtbot.addWidget(window)
    window.show()
    window.show_page("settings")
    banner = window.chats.storage_banner
    qtbot.waitUntil(lambda: "damaged" in banner.text)
    assert banner.isVisible(), "on each page"
    banner.action.click()
    menu = window.findChildren(QMenu)[-1]
    menu.actions()[0].trigger()
    menu.close()
    qtbot.waitUntil(lambda: "chats are back" in window.chats.toast.text)
    qtbot.waitUntil(lambda: window.chats.history.model.rowCount() > 100)
    assert banner.text == ""
    assert window.chats.isVisible(), "they are there to be seen"
    qtbot.waitUntil(lambda: window.page.composer.text == "half a thought")
    window.close()
    appearance.deleteLater()


def test_chats_of_a_damaged_file_come_back_also_after_another_start(
    qtbot, appearance: Appearance, lonely_api: Api, tmp_path: Path
) -> None:
    path = tmp_path / "chats.db"
    ChatStore(path).close()

    def opened() -> MainWindow:
        window = MainWindow(lonely_api, appearance, path, tmp_path / "window.ini", lonely_api)
        qtbot.addWidget(window)
        window.show()
        return window

    window = opened()
    assert "Bring chats back…" not in [action.text() for action in window.chats.history.more_menu().actions()]
    window.close()
    write_chats(path)
    break_pages(path)
    window = opened()
    qtbot.waitUntil(lambda: "damaged" in window.chats.storage_banner.text)
    window.chats.storage_banner.close_button.click()
    window.close()
    window = opened()
    (way,) = [one for one in window.chats.history.more_menu().actions() if one.text() == "Bring chats back…"]
    way.trigger()
    ways = window.findChildren(QMenu)[-1]
    ways.actions()[0].trigger()
    ways.close()
    qtbot.waitUntil(lambda: "chats are back" in window.chats.toast.text)
    more = window.chats.history.more_menu()
    more.actions()[-1].trigger()
    window.findChildren(QMenu)[-1].actions()[0].trigger()
    qtbot.waitUntil(lambda: "no chat that is not here" in window.chats.storage_banner.text)
    assert not window.chats.storage_banner.action.isVisible(), "there is no other way"


def test_bringing_back_shows_how_far_it_is_and_can_be_stopped_and_finished_later(
    qtbot, appearance: Appearance, lonely_api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rescue_module, "STEP_SECONDS", 0.0)  # a chat each
    path = tmp_path / "chats.db"
    write_chats(path)
    break_pages(path)
    window = MainWindow(lonely_api, appearance, path, tmp_path / "window.ini", lonely_api)
    qtbot.addWidget(window)
    window.show()
    banner, history = window.chats.storage_banner, window.chats.history

    def bring_back() -> None:
        next(one for one in history.more_menu().actions() if one.text() == "Bring chats back…").trigger()
        ways = window.findChildren(QMenu)[-1]
        ways.actions()[0].trigger()
        ways.close()

    qtbot.waitUntil(lambda: "damaged" in banner.text)
    bring_back()
    qtbot.waitUntil(lambda: banner.text.endswith("%") and not banner.text.endswith(" 0%"))
    assert "Bring chats back…" not in [one.text() for one in history.more_menu().actions()], "one thing at a time"
    assert banner.action.text() == "Stop"
    banner.action.click()
    qtbot.waitUntil(lambda: "Stopped. " in window.chats.toast.text)
    assert banner.text == ""
    qtbot.waitUntil(lambda: 0 < history.model.n_chats < N_CHATS // 2)
    monkeypatch.undo()
    bring_back()
    qtbot.waitUntil(lambda: history.model.n_chats > N_CHATS // 2)
    window.close()


def test_a_warning_that_comes_while_chats_are_brought_back_stays(
    qtbot, appearance: Appearance, lonely_api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "chats.db"
    write_chats(path)
    break_pages(path)
    window = MainWindow(lonely_api, appearance, path, tmp_path / "window.ini", lonely_api)
    qtbot.addWidget(window)
    window.show()
    banner, (storage,) = window.chats.storage_banner, window.chats.findChildren(StorageNotice)
    qtbot.waitUntil(lambda: "damaged" in banner.text)
    monkeypatch.setattr(rescue_module, "STEP_SECONDS", 0.0)  # a chat each
    storage.ways_back[0][1]()
    qtbot.waitUntil(lambda: banner.text.endswith("%"))
    storage.show_problem("Something could not be saved.")
    monkeypatch.undo()
    qtbot.waitUntil(lambda: "chats are back" in window.chats.toast.text)
    assert banner.text == "Something could not be saved."
    storage.show_problem(None)
    assert banner.text == ""
    window.close()
