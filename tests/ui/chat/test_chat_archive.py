"""The archive's thread: answers come later, writes are kept until they succeed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from disks import fill_up, small_disk

import ui.chat.storage.chat_archive as archive_module
import ui.chat.storage.store as store_module
from ui.chat.storage.chat_archive import ChatArchive, disk_reason
from ui.chat.storage.store import ChatStore
from ui.client.chat_records import Chat, Message, Role


class Desk:
    """An archive with what it said."""

    def __init__(self, path: Path) -> None:
        self.problems: list[str | None] = []
        self.seen: list[int] = []
        self.archive = ChatArchive(
            path, post=lambda call: call(), on_problem=self.problems.append, saw_id=self.seen.append
        )

    def ask(self, question: Callable[[ChatStore], object]) -> object:
        answers: list[object] = []
        self.archive.ask(question, answers.append, None)
        assert self.archive.flush()
        assert len(answers) == 1
        return answers[0]


@pytest.fixture
def desks():
    opened: list[Desk] = []

    def open_desk(path: Path) -> Desk:
        opened.append(Desk(path))
        return opened[-1]

    yield open_desk
    for desk in opened:
        desk.archive.close()


def a_message(number: int, text: str = "hello") -> Message:
    return Message(number, 1, None, Role.USER, text, 0)


def test_what_was_written_is_read_in_order(desks, tmp_path: Path) -> None:
    desk = desks(tmp_path / "chats.db")
    desk.archive.save_chat(Chat(1, "One", 0, 0))
    desk.archive.save_message(a_message(2))
    chat, messages = desk.ask(lambda store: store.whole_chat(1))
    assert (chat.title, [m.content for m in messages]) == ("One", ["hello"])
    assert desk.ask(lambda store: store.whole_chat(99)) is None
    assert [c.title for c in desk.ask(lambda store: store.search("hel"))] == ["One"]
    desk.archive.close()
    again = desks(tmp_path / "chats.db")
    assert [c.title for c in again.ask(ChatStore.chats)] == ["One"]
    assert again.seen == [2]
    assert again.problems == []


def test_a_damaged_file_is_kept_aside_and_a_new_one_started(desks, tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    path.write_bytes(b"garbage " * 1000)
    desk = desks(path)
    desk.archive.save_chat(Chat(1, "One", 0, 0))
    desk.ask(ChatStore.chats)
    kept = list(tmp_path.glob("chats.damaged-*.db"))
    assert [file.read_bytes() for file in kept] == [b"garbage " * 1000]
    assert "damaged" in (desk.problems[0] or "")
    desk.archive.close()
    with closing(ChatStore(path)) as store:
        assert [c.title for c in store.chats()] == ["One"]


def test_a_large_file_whose_latest_messages_are_broken_is_kept_aside_too(
    desks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "CHECKED_BYTES", 0)
    path = tmp_path / "chats.db"
    store = ChatStore(path)
    store.save_chat(Chat(1, "One", 0, 0))
    for number in range(10, 60):
        store.save_message(a_message(number, f"These are the words of message {number}. " * 20))
    store.close()
    data = path.read_bytes()
    pages = [data[at : at + 4096] for at in range(0, len(data), 4096)]
    path.write_bytes(b"".join(b"\xff" * 4096 if b"words of message 59" in page else page for page in pages))
    desk = desks(path)
    desk.archive.save_chat(Chat(2, "Two", 0, 0))
    assert [chat.title for chat in desk.ask(ChatStore.chats)] == ["Two"]
    assert "damaged" in (desk.problems[0] or "")
    assert len(list(tmp_path.glob("chats.damaged-*.db"))) == 1


def test_a_file_of_a_newer_version_stays_untouched(desks, tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    ChatStore(path).close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version=99")
    db.close()
    before = path.read_bytes()
    desk = desks(path)
    desk.archive.save_chat(Chat(1, "One", 0, 0))
    desk.ask(ChatStore.chats)
    assert "newer" in (desk.problems[0] or "")
    assert path.read_bytes() == before


def test_writes_that_failed_are_tried_again_in_order(desks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_module, "RETRY_SECONDS", 0.02)
    full = [True]
    save = ChatStore.save_chat

    def save_unless_full(store: ChatStore, chat: Chat) -> None:
        if full[0]:
            raise sqlite3.OperationalError("database or disk is full")
        save(store, chat)

    monkeypatch.setattr(ChatStore, "save_chat", save_unless_full)
    desk = desks(tmp_path / "chats.db")
    desk.archive.save_chat(Chat(1, "One", 0, 0))
    desk.archive.save_message(a_message(2))
    assert desk.ask(ChatStore.chats) == []
    assert f"saved in {tmp_path} right now: the disk is full" in (desk.problems[0] or "")
    full[0] = False
    desk.archive.close()
    assert desk.problems[-1] is None
    store = ChatStore(tmp_path / "chats.db")
    assert [m.content for m in store.messages(1)] == ["hello"]
    store.close()


def test_a_damaged_file_is_not_said_to_become_whole(desks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(store: ChatStore, chat: Chat) -> None:
        raise sqlite3.DatabaseError("database disk image is malformed")

    monkeypatch.setattr(ChatStore, "save_chat", fail)
    desk = desks(tmp_path / "chats.db")
    desk.archive.save_chat(Chat(1, "One", 0, 0))
    assert desk.archive.flush()
    (problem,) = desk.problems
    assert problem.startswith(f"Chats cannot be saved in {tmp_path}: the file is damaged.")
    assert "Trying again" not in problem


def test_what_can_be_neither_read_nor_written_stops_nothing_else(desks, tmp_path: Path) -> None:
    desk = desks(tmp_path / "chats.db")
    desk.archive.save_chat(Chat(1, "Foxes", 10**30, 1))  # more than a file of chats can hold
    desk.archive.save_chat(Chat(2, "Wolves", 1, 1))
    answers: list[object] = []
    desk.archive.ask(lambda store: 1 // 0, answers.append, 7)
    assert [chat.title for chat in desk.ask(ChatStore.chats)] == ["Wolves"]
    assert answers == [7]
    saved, read = map(str, desk.problems)
    assert saved.startswith("Something could not be saved (")
    assert read.startswith("The chats could not be read: ")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (sqlite3.OperationalError("attempt to write a readonly database"), "cannot be written"),
        (sqlite3.OperationalError("unable to open database file"), "cannot be opened"),
        (sqlite3.OperationalError("database is locked"), "another program"),
        (PermissionError(13, "Permission denied"), "cannot be written"),
        (OSError("odd"), "odd."),
        (OSError(28, "No space left on device", "/full/chats.db"), "No space left on device."),
        (sqlite3.DatabaseError("database disk image is malformed"), "Start Slipstream again: where"),
    ],
)
def test_a_disk_error_becomes_a_sentence(error: Exception, words: str) -> None:
    assert words in disk_reason(error)
    assert "[Errno" not in disk_reason(error)


@pytest.mark.parametrize("is_deleted", [True, False], ids=["with a chat to erase", "without"])
def test_a_broken_index_of_words_is_made_anew(desks, tmp_path: Path, is_deleted: bool) -> None:
    path = tmp_path / "chats.db"
    with closing(ChatStore(path)) as store:
        for number in (1, 2):
            store.save_chat(Chat(number, "One", 0, 0))
            store.save_message(replace(a_message(10 + number, "a fox"), chat_id=number))
        if is_deleted:
            store.delete(2, 1)
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE message_fts_data SET block = x'ffffffff' WHERE id > 10")  # where its words are
        db.commit()
    desk = desks(path)
    desk.archive.save_message(a_message(11, "a bear"))
    assert desk.ask(lambda store: [chat.id for chat in store.search("bear")]) == [1]
    assert desk.ask(lambda store: len(store.search("fox"))) == (0 if is_deleted else 1)
    assert desk.problems == []


def test_a_broken_index_is_made_anew_when_a_full_disk_has_room_again(desks, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 400 << 10) as disk:
        with closing(ChatStore(disk / "chats.db")) as store:
            store.save_chat(Chat(1, "One", 0, 0))
            store.save_message(a_message(11, "a fox"))
        with closing(sqlite3.connect(disk / "chats.db")) as db:
            db.execute("UPDATE message_fts_data SET block = x'ffffffff' WHERE id > 10")
            db.commit()
        desk = desks(disk / "chats.db")
        assert desk.archive.flush()
        fill_up(disk / "full")
        assert desk.ask(lambda store: len(store.search("fox"))) is None
        (disk / "full").unlink()
        assert desk.ask(lambda store: len(store.search("fox"))) == 1
        assert desk.problems == ["The chats could not be read: the disk is full."]
        desk.archive.close()
