"""Chats on disk: what is written is there again, also after the worst."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from ui.chat.storage.search_hit import hit_spans
from ui.chat.storage.store import MIGRATIONS, NEW_CHAT, ChatStore, StoreDamaged, match_expression
from ui.client.chat_records import Chat, ChatSettings, Message, Role, Status, Timings, title_of
from ui.client.speeds import Speed

ROOT = Path(__file__).resolve().parents[3]


def a_chat(number: int = 1, title: str = "Foxes", updated_ms: int = 10) -> Chat:
    return Chat(number, title, created_ms=5, updated_ms=updated_ms)


def said(number: int, text: str, chat: int = 1, parent: int | None = None, **more: object) -> Message:
    return Message(number, chat, parent, Role.USER, text, created_ms=5, **more)


@pytest.fixture
def store(tmp_path: Path):
    store = ChatStore(tmp_path / "chats.db")
    yield store
    store.close()


def test_a_chat_and_its_messages_come_back_as_they_were(tmp_path: Path) -> None:
    settings = ChatSettings(model="ember", system_prompt="Be brief.", temperature=0.2, max_tokens=9, seed=7)
    chat = Chat(1, "Foxes", 5, 10, settings, leaf_id=12)
    reply = Message(
        12, 1, 11, Role.ASSISTANT, "Hi 🦊", 6, Status.FAILED, "It broke.", "length", "ember", Timings(3.5, seed=4)
    )
    first = ChatStore(tmp_path / "chats.db")
    first.save_chat(chat)
    first.save_message(said(11, "Hello"))
    first.save_message(reply)
    first.close()
    again = ChatStore(tmp_path / "chats.db")
    assert again.chat(1) == chat
    assert again.messages(1) == [said(11, "Hello"), reply]
    assert again.highest_id() == 12
    again.close()


def test_only_the_user_can_read_chats_also_older_ones_and_their_copy(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    with closing(sqlite3.connect(path)) as older:
        older.executescript(f"{MIGRATIONS[0]}; PRAGMA user_version=1; PRAGMA journal_mode=WAL;")
    path.chmod(0o644)
    store = ChatStore(path)
    store.save_chat(a_chat())
    files = {file.name: oct(stat.S_IMODE(file.stat().st_mode)) for file in tmp_path.iterdir()}
    store.close()
    assert files == dict.fromkeys(("chats.db", "chats.db-wal", "chats.db-shm", "chats.backup.db"), "0o600")


def test_what_was_written_and_not_sent_is_kept_with_its_chat(tmp_path: Path) -> None:
    store = ChatStore(tmp_path / "chats.db")
    store.save_chat(Chat(1, "a", 1, 1))
    for chat_id, text in ((NEW_CHAT, "one"), (NEW_CHAT, "two\nlines"), (1, "three"), (7, "of a chat that is gone")):
        store.save_draft(chat_id, text)
    store.close()
    again = ChatStore(tmp_path / "chats.db")
    assert again.drafts() == {NEW_CHAT: "two\nlines", 1: "three"}
    again.save_draft(1, "")
    assert again.drafts() == {NEW_CHAT: "two\nlines"}
    again.close()


def test_settings_that_nobody_chose_are_left_to_the_model(tmp_path: Path) -> None:
    old = {"model": "a", "temperature": 0.8, "top_k": 7, "top_p": 0.95, "min_p": 0.05, "repeat_penalty": 1.0}
    with sqlite3.connect(tmp_path / "chats.db") as db:
        db.executescript(f"{MIGRATIONS[0]}; {MIGRATIONS[1]}; PRAGMA user_version=2;")
        insert = "INSERT INTO chat(id, title, created_ms, updated_ms, settings) VALUES (?, 'a', 1, 1, ?)"
        kept = [(1, json.dumps(old | {"speed": "standard"})), (2, '{"speed": "deep"}'), (3, "broken")]
        db.executemany(insert, kept)
    db.close()
    store = ChatStore(tmp_path / "chats.db")
    chats = [store.chat(number) for number in (1, 2, 3)]
    found = [chat.settings for chat in chats if chat is not None]
    assert found == [ChatSettings(model="a", top_k=7), ChatSettings(speed=Speed.DEEP), ChatSettings()]
    store.close()


def test_saving_twice_keeps_one(store: ChatStore) -> None:
    for title in ("One", "Two"):
        store.save_chat(a_chat(title=title))
        store.save_message(said(11, title))
    assert [chat.title for chat in store.chats()] == ["Two"]
    assert [message.content for message in store.messages(1)] == ["Two"]
    assert store.search("one") == []


def test_a_deleted_chat_can_be_restored_until_the_next_start(tmp_path: Path) -> None:
    store = ChatStore(tmp_path / "chats.db")
    store.save_chat(a_chat())
    store.save_message(said(11, "secret"))
    store.delete(1, now_ms=20)
    assert (store.chats(), store.search("secret"), store.chat(1)) == ([], [], None)
    store.restore(1)
    assert [chat.id for chat in store.search("secret")] == [1]
    store.delete(1, now_ms=20)
    store.close()
    again = ChatStore(tmp_path / "chats.db")
    again.restore(1)
    assert (again.chats(), again.messages(1)) == ([], [])
    again.close()


@pytest.mark.parametrize(
    "words", ["what's up?", "C++", "a AND", "foo-bar", '"', "NEAR(", "*", "%", "", "   ", "🦊", "a\ud83e b", "a\0b"]
)
def test_anything_can_be_typed_into_the_search(store: ChatStore, words: str) -> None:
    store.save_chat(a_chat())
    store.save_message(said(11, "some text"))
    store.save_message(said(12, f"a\ud800{words}"))
    stored = words.replace("\ud83e", "?")
    assert store.messages(1)[-1].content == f"a?{stored}", "half a character does not stop a message"
    store.search(words)


def test_search_finds_starts_of_words_without_accents_and_titles(store: ChatStore) -> None:
    store.save_chat(a_chat(1, "Bridges", updated_ms=10))
    store.save_chat(a_chat(2, "Other", updated_ms=20))
    store.save_message(said(21, "über die Brücke gehen", chat=2))
    assert [chat.id for chat in store.search("bruck")] == [2]
    assert "Brücke" in store.search("bruck")[0].snippet
    store.save_message(said(22, "The great warrior took the path along the river and saw a boat with sails", chat=2))
    assert store.search("boat")[0].snippet.startswith("…river and saw a boat with")
    assert [chat.id for chat in store.search("idges")] == [1]
    assert store.search("bruck missing") == []
    assert match_expression('say "hi') == '"say" """hi"*'


def test_search_finds_what_has_no_spaces_around_it(store: ChatStore) -> None:
    store.save_chat(a_chat(1, "Ärger im Büro", updated_ms=10))
    store.save_message(said(11, "こんにちは世界、狐🦊の話を python で"))
    for words in ("世界", "世界 狐", "python 世界", "🦊", "ÄRGER", "buro"):
        assert [chat.id for chat in store.search(words)] == [1], words
    assert "世界" in store.search("世界")[0].snippet
    assert store.search("世界 犬") == []
    assert hit_spans("a🦊世界", "世界 🦊") == [(1, 3), (3, 5)]
    assert hit_spans("unworldly world", "world") == [(10, 15)]


def test_broken_pages_are_said_to_be_damaged(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    store = ChatStore(path)
    store.save_chat(a_chat())
    for number in range(200):
        store.save_message(said(100 + number, "words " * 200))
    store.close()
    data = bytearray(path.read_bytes())
    data[8192 : len(data) - 4096] = b"\xff" * (len(data) - 12288)
    path.write_bytes(data)
    with pytest.raises(StoreDamaged):
        ChatStore(path)


def test_ten_thousand_chats_are_listed_and_searched_quickly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[sqlite3.Connection] = []
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *path, **how: opened.append(connect(*path, **how)) or opened[-1])
    store = ChatStore(tmp_path / "chats.db")
    rows = [(number + 1, f"Chat {number}", 0, number) for number in range(10_000)]
    with closing(connect(tmp_path / "chats.db")) as db, db:
        db.executemany("INSERT INTO chat(id, title, created_ms, updated_ms) VALUES (?,?,?,?)", rows)
    steps: list[int] = []
    opened[-1].set_progress_handler(lambda: steps.append(1_000), 1_000)
    assert len(store.chats()) == 10_000
    assert store.search("Chat 777")
    assert 0 < sum(steps) < 1_000_000, "SQLite does some hundred million a second"
    store.close()


WRITER = """
import sys
from pathlib import Path
from ui.client.chat_records import Chat, Message, Role, Status
from ui.chat.storage.store import ChatStore
store = ChatStore(Path(sys.argv[1]))
base = store.highest_id() + 1
store.save_chat(Chat(base, "run", 0, base))
store.save_message(Message(base + 1, base, None, Role.USER, "go", 0))
text = ""
print(base, flush=True)
while True:
    text += "word " * 40
    store.save_message(Message(base + 2, base, base + 1, Role.ASSISTANT, text, 0, Status.STREAMING))
    print(len(text), flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_kill_minus_nine_at_any_moment_loses_nothing_that_was_saved(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    saved: dict[int, int] = {}
    for wait in (0.0, 0.011, 0.05, 0.12):
        child = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        base = int(child.stdout.readline())
        saved[base] = int(child.stdout.readline())
        time.sleep(wait)
        os.kill(child.pid, signal.SIGKILL)
        rest = child.communicate()[0].splitlines()
        # The last line may have been cut by the kill.
        saved[base] = max([saved[base], *(int(line) for line in rest[:-1])])
    store = ChatStore(path)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        db.execute("INSERT INTO message_fts(message_fts, rank) VALUES('integrity-check', 1)")
    for base, length in saved.items():
        reply = store.messages(base)[-1]
        assert reply.status is Status.STOPPED
        assert len(reply.content) >= length
        assert reply.content == "word " * (len(reply.content) // 5)
    store.close()


def test_settings_survive_odd_fields_and_a_title_is_the_first_line() -> None:
    odd = '{"temperature": "hot", "top_k": 3, "seed": true, "later": 1}'
    assert ChatSettings.from_json(odd) == ChatSettings(top_k=3)
    assert ChatSettings.from_json("broken") == ChatSettings()
    assert ChatSettings.from_json("[]") == ChatSettings()
    assert title_of("\n\n## Tell me   a story\nmore") == "Tell me a story"
    assert title_of("   ") == "New chat"
    assert len(title_of("x" * 500)) == 60


def test_chats_are_pinned_put_into_folders_and_into_the_archive(store: ChatStore) -> None:
    for number in range(1, 7):
        store.save_chat(a_chat(number, f"Fox {number}", updated_ms=number))
    store.pin(1, True)
    store.move((2, 3), "work")
    store.put_away(4, True)
    assert [(chat.id, chat.folder, chat.is_pinned) for chat in store.chats(1)] == [
        (6, "", False), (3, "work", False), (2, "work", False), (1, "", True),
    ]  # fmt: skip
    assert [chat.id for chat in store.archived()] == [4]
    assert [(chat.id, chat.is_archived) for chat in store.search("fox")] == [
        (6, False), (5, False), (4, True), (3, False), (2, False), (1, False),
    ]  # fmt: skip
    assert store.rename_folder("work", "play") == [2, 3]
    store.save_chat(a_chat(3, "Fox again", updated_ms=9))
    store.put_away(4, False)
    assert {chat.id: chat.folder for chat in store.chats()} == {1: "", 2: "play", 3: "play", 4: "", 5: "", 6: ""}
    store.rename_folder("play", "")
    assert {chat.folder for chat in store.chats()} == {""}
