"""Chats in SQLite. No Qt here; one thread owns a store (see ``archive``)."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

from models.files.disk import back_up_database
from ui.chat.storage.search_hit import folded, has_edges
from ui.client import attachments, tool_calls
from ui.client.attachments import Attachment
from ui.client.chat_records import Chat, ChatSettings, ChatSummary, Message, Prompt, Role, Status, Timings
from ui.client.speeds import speed_of

MIGRATIONS = (
    """
    CREATE TABLE chat(
        id INTEGER PRIMARY KEY,
        title TEXT NOT NULL,
        created_ms INTEGER NOT NULL,
        updated_ms INTEGER NOT NULL,
        deleted_ms INTEGER,
        settings TEXT NOT NULL DEFAULT '{}',
        leaf_id INTEGER
    ) STRICT;
    CREATE INDEX chat_updated ON chat(updated_ms DESC) WHERE deleted_ms IS NULL;
    CREATE TABLE message(
        id INTEGER PRIMARY KEY,
        chat_id INTEGER NOT NULL REFERENCES chat(id) ON DELETE CASCADE,
        parent_id INTEGER REFERENCES message(id) ON DELETE CASCADE,
        role TEXT NOT NULL CHECK(role IN ('user', 'assistant')),
        content TEXT NOT NULL,
        created_ms INTEGER NOT NULL,
        status TEXT NOT NULL CHECK(status IN ('streaming', 'done', 'stopped', 'failed')),
        problem TEXT,
        finish_reason TEXT,
        model TEXT,
        timings TEXT
    ) STRICT;
    CREATE INDEX message_chat ON message(chat_id, id);
    CREATE INDEX message_parent ON message(parent_id);
    CREATE INDEX message_streaming ON message(id) WHERE status = 'streaming';
    CREATE VIRTUAL TABLE message_fts USING fts5(
        content, content='message', content_rowid='id', tokenize='unicode61 remove_diacritics 2'
    );
    CREATE TRIGGER message_inserted AFTER INSERT ON message BEGIN
        INSERT INTO message_fts(rowid, content) VALUES (new.id, new.content);
    END;
    CREATE TRIGGER message_deleted AFTER DELETE ON message BEGIN
        INSERT INTO message_fts(message_fts, rowid, content) VALUES ('delete', old.id, old.content);
    END;
    CREATE TRIGGER message_updated AFTER UPDATE OF content ON message WHEN old.content IS NOT new.content BEGIN
        INSERT INTO message_fts(message_fts, rowid, content) VALUES ('delete', old.id, old.content);
        INSERT INTO message_fts(rowid, content) VALUES (new.id, new.content);
    END;
    """,
    """
    ALTER TABLE message ADD COLUMN speed TEXT NOT NULL DEFAULT 'standard';
    ALTER TABLE message ADD COLUMN answered_by TEXT;
    """,
    # Until here the defaults were kept, and sent, as if they had been chosen.
    """
    UPDATE chat SET settings = '{}' WHERE NOT json_valid(settings);
    UPDATE chat SET settings = json_remove(settings, '$.temperature')
        WHERE json_extract(settings, '$.temperature') = 0.8;
    UPDATE chat SET settings = json_remove(settings, '$.top_k') WHERE json_extract(settings, '$.top_k') = 40;
    UPDATE chat SET settings = json_remove(settings, '$.top_p') WHERE json_extract(settings, '$.top_p') = 0.95;
    UPDATE chat SET settings = json_remove(settings, '$.min_p') WHERE json_extract(settings, '$.min_p') = 0.05;
    UPDATE chat SET settings = json_remove(settings, '$.repeat_penalty')
        WHERE json_extract(settings, '$.repeat_penalty') = 1.0;
    UPDATE chat SET settings = json_remove(settings, '$.speed') WHERE json_extract(settings, '$.speed') = 'standard';
    CREATE TABLE draft(chat_id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT;
    """,
    """
    ALTER TABLE message ADD COLUMN thoughts TEXT NOT NULL DEFAULT '';
    ALTER TABLE message ADD COLUMN thinking_ms REAL;
    """,
    """
    ALTER TABLE message ADD COLUMN attachments TEXT NOT NULL DEFAULT '[]';
    CREATE TABLE draft_attachments(chat_id INTEGER PRIMARY KEY, attachments TEXT NOT NULL) STRICT;
    """,
    # A folder is there as long as a chat is in it.
    """
    ALTER TABLE chat ADD COLUMN folder TEXT NOT NULL DEFAULT '';
    ALTER TABLE chat ADD COLUMN is_pinned INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE chat ADD COLUMN is_archived INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX chat_sorted ON chat(folder) WHERE folder <> '' OR is_pinned OR is_archived;
    """,
    "ALTER TABLE message ADD COLUMN drafted TEXT NOT NULL DEFAULT '[]';",
    # Of an imported chat: the program that it comes from, and what it is called there.
    """
    ALTER TABLE chat ADD COLUMN source TEXT;
    CREATE INDEX chat_source ON chat(source) WHERE source IS NOT NULL;
    """,
    """
    CREATE TABLE prompt(
        id INTEGER PRIMARY KEY, name TEXT NOT NULL, text TEXT NOT NULL, is_system INTEGER NOT NULL, model TEXT NOT NULL
    ) STRICT;
    """,
    "ALTER TABLE message ADD COLUMN calls TEXT NOT NULL DEFAULT '[]';",
)
ResultT = TypeVar("ResultT")
_NUMBERED = ("chat", "message", "prompt")
MEMORY = ":memory:"
NEW_CHAT, NEW_BESIDE = 0, -1  # no chat has these ids: one that has not begun, alone or beside another
CHECKED_BYTES = 64 << 20  # a file up to this size is checked whole at each start; it takes well under a second
SEARCH_LIMIT = 200
_BEFORE = 20  # characters that a snippet has before what was found
_MARKS = re.compile(r"[*`#>|~]+|^\s*[-+] ", re.MULTILINE)


def _make_private(path: Path) -> None:
    """Let only its owner read a database, also one that is there; SQLite's files beside it are then made like it."""
    with contextlib.suppress(OSError):  # SQLite says what is wrong with the folder
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        path.chmod(0o600)


def is_large(path: Path) -> bool:
    """Return whether a file of chats is too large to be checked at each start."""
    return path.stat().st_size > CHECKED_BYTES


def mark_of(path: Path) -> Path:
    """Return the empty file that lets the next start check a file of chats whole, however large that is."""
    return path.with_name(f"{path.name}.check")


def forget_mark(path: Path) -> None:
    """Let the next start check a file of chats as usual."""
    with contextlib.suppress(OSError):  # a mark that stays costs a check, nothing else
        mark_of(path).unlink()


def damage_of(db: sqlite3.Connection) -> str:
    """Return what is wrong with a database, "" where it is whole; raises sqlite3 errors.

    Virtual tables are left out. From SQLite 3.44 on a check of all calls an index of words damaged that is made anew
    when it is met, and 3.44.0 to 3.45.0 also whole ones. Their contents are in ordinary tables.
    """
    tables = db.execute("SELECT name FROM sqlite_master WHERE type='table' AND rootpage > 0").fetchall()
    for (table,) in tables:
        quoted = table.replace('"', '""')
        verdict = str(db.execute(f'PRAGMA quick_check("{quoted}")').fetchone()[0])
        if verdict != "ok":
            return verdict
    return ""


class StoreDamaged(Exception):
    """The file is not a database, or its pages are broken."""


class StoreTooNew(Exception):
    """The file was written by a newer version of this program."""


class ChatStore:
    """One connection to the chats; every method is one transaction."""

    def __init__(self, path: Path | None) -> None:
        """Open or create the file (None: in memory only). Raises StoreDamaged, StoreTooNew, sqlite3 errors, OSError."""
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            _make_private(path)
        self._db = sqlite3.connect(MEMORY if path is None else path, isolation_level=None, check_same_thread=False)
        self._db.text_factory = readable
        self._is_mended = False
        self.checked_at = 0.0  # when all of the file was found whole, in seconds since 1970; 0: it was not checked
        try:
            self._prepare(path)
        except sqlite3.OperationalError:
            self._db.close()
            raise
        except sqlite3.DatabaseError as error:
            self._db.close()
            raise StoreDamaged(str(error)) from error
        except BaseException:
            self._db.close()
            raise

    def _prepare(self, path: Path | None) -> None:
        # They are given bytes, for which see ``readable``.
        self._db.create_function("folded", 1, lambda text: folded(readable(text)), deterministic=True)
        self._db.create_function("around", 2, lambda text, word: _around(readable(text), word), deterministic=True)
        for pragma in ("busy_timeout=5000", "journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
            self._db.execute(f"PRAGMA {pragma}")
        if path is not None and (mark_of(path).exists() or not is_large(path)):
            self._check()
            self.checked_at = time.time()
            forget_mark(path)
        if path is not None:
            self._back_up(path)
        self._migrate()
        self.mended(ChatStore._tidy)
        self.highest_id()  # of a large file, which was not checked: what is written next goes there

    def mended(self, work: Callable[[ChatStore], ResultT]) -> ResultT:
        """Return what ``work`` returns. A broken index of words is made anew before it is tried again.

        That index alone is not looked through at start, and without it no message can be written. Nothing is lost with
        it: it follows from the messages.
        """
        try:
            return work(self)
        except sqlite3.DatabaseError as error:
            if self._is_mended or not any(words in str(error) for words in ("malformed", "fts5")):
                raise
            self._is_mended = True
            try:
                self._db.execute("INSERT INTO message_fts(message_fts) VALUES ('rebuild')")
            except sqlite3.OperationalError:
                self._is_mended = False  # the disk is full or the file is held: it may work the next time
                raise
            return work(self)

    def _check(self) -> None:
        verdict = damage_of(self._db)
        if verdict:
            raise StoreDamaged(verdict)

    def _back_up(self, path: Path) -> None:
        """Copy a file of an older version before it is changed; where that fails, it is not changed."""
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if 0 < version < len(MIGRATIONS):
            back_up_database(self._db, path)

    def _migrate(self) -> None:
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version > len(MIGRATIONS):
            raise StoreTooNew(f"version {version}")
        for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
            try:
                self._db.executescript(f"BEGIN IMMEDIATE; {script}; PRAGMA user_version={number}; COMMIT;")
            except sqlite3.Error:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def _tidy(self) -> None:
        with self._transaction():
            self._db.execute("UPDATE message SET status='stopped' WHERE status='streaming'")
            self._db.execute("DELETE FROM chat WHERE deleted_ms IS NOT NULL")
            for table in ("draft", "draft_attachments"):
                self._db.execute(
                    f"DELETE FROM {table} WHERE chat_id > ? AND chat_id NOT IN (SELECT id FROM chat) "
                    "AND chat_id NOT IN (SELECT id FROM message)",
                    (NEW_CHAT,),
                )

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            # Some errors (a full disk) have already rolled back.
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def highest_id(self) -> int:
        """Return the highest id in use, 0 where there is none."""
        # From the end of each table; else SQLite may read all of an index for it.
        latest = " UNION ALL ".join(f"SELECT max(id) AS id FROM {name} NOT INDEXED" for name in _NUMBERED)
        return int(self._db.execute(f"SELECT ifnull(max(id), 0) FROM ({latest})").fetchone()[0])

    # Writing. All can be repeated: what was saved twice is there once.

    def save_chat(self, chat: Chat) -> None:
        """Write a chat's own fields, new or known."""
        with self._transaction():
            self._write_chat(chat)

    def save_message(self, message: Message) -> None:
        """Write a message, new or known. Its chat and its parent must have been saved."""
        with self._transaction():
            self._write_message(message)

    def _write_chat(self, chat: Chat) -> None:
        self._db.execute(
            "INSERT INTO chat(id, title, created_ms, updated_ms, settings, leaf_id) VALUES (?,?,?,?,?,?) "
            "ON CONFLICT(id) DO UPDATE SET title=excluded.title, updated_ms=excluded.updated_ms, "
            "settings=excluded.settings, leaf_id=excluded.leaf_id",
            (
                chat.id,
                _storable(chat.title),
                chat.created_ms,
                chat.updated_ms,
                _storable(chat.settings.to_json()),
                chat.leaf_id,
            ),
        )

    def _write_message(self, message: Message) -> None:
        timings = None if message.timings is None else json.dumps(asdict(message.timings))
        self._db.execute(
            "INSERT INTO message(id, chat_id, parent_id, role, content, created_ms, status, problem, "
            "finish_reason, model, timings, speed, answered_by, thoughts, thinking_ms, attachments, drafted, calls) "
            "VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) "
            "ON CONFLICT(id) DO UPDATE SET content=excluded.content, status=excluded.status, "
            "problem=excluded.problem, finish_reason=excluded.finish_reason, model=excluded.model, "
            "timings=excluded.timings, answered_by=excluded.answered_by, thoughts=excluded.thoughts, "
            "thinking_ms=excluded.thinking_ms, drafted=excluded.drafted, calls=excluded.calls",
            (
                message.id,
                message.chat_id,
                message.parent_id,
                message.role.value,
                _storable(message.content),
                message.created_ms,
                message.status.value,
                message.problem,
                message.finish_reason,
                message.model,
                timings,
                message.speed.value,
                message.answered_by,
                _storable(message.thoughts),
                message.thinking_ms,
                _storable(attachments.to_json(message.attachments)),
                json.dumps(message.drafted),
                _storable(tool_calls.to_json(message.calls)),
            ),
        )

    def rename(self, chat_id: int, title: str) -> None:
        """Give a chat another title."""
        with self._transaction():
            self._db.execute("UPDATE chat SET title=? WHERE id=?", (_storable(title), chat_id))

    def delete(self, chat_id: int, now_ms: int) -> None:
        """Hide a chat; it is erased at the next start, until then ``restore`` brings it back."""
        with self._transaction():
            self._db.execute("UPDATE chat SET deleted_ms=? WHERE id=?", (now_ms, chat_id))

    def restore(self, chat_id: int) -> None:
        """Bring back a deleted chat."""
        with self._transaction():
            self._db.execute("UPDATE chat SET deleted_ms=NULL WHERE id=?", (chat_id,))

    def add_chat(self, chat: Chat, messages: Sequence[Message], source: str, sorting: tuple[str, bool, bool]) -> None:
        """Write a chat that comes from elsewhere, all or nothing; parents come before what follows them.

        ``sorting`` is its folder, whether it is pinned, and whether it is archived.
        """
        with self._transaction():
            self._write_chat(chat)
            for message in messages:
                self._write_message(message)
            self._db.execute(
                "UPDATE chat SET source=?, folder=?, is_pinned=?, is_archived=? WHERE id=?",
                (_storable(source), *sorting, chat.id),
            )

    def chat_from(self, source: str) -> int | None:
        """Return the chat that came from there; None where it is not here."""
        query = "SELECT id FROM chat WHERE source=? AND deleted_ms IS NULL"
        found = self._db.execute(query, (_storable(source),)).fetchone()
        return found[0] if found is not None else None

    def save_prompt(self, prompt: Prompt) -> None:
        """Write a prompt, new or known."""
        row = (prompt.id, _storable(prompt.name), _storable(prompt.text), prompt.is_system, _storable(prompt.model))
        with self._transaction():
            self._db.execute("INSERT OR REPLACE INTO prompt(id, name, text, is_system, model) VALUES (?,?,?,?,?)", row)

    def delete_prompt(self, prompt_id: int) -> None:
        """Forget a prompt."""
        with self._transaction():
            self._db.execute("DELETE FROM prompt WHERE id=?", (prompt_id,))

    def pin(self, chat_id: int, is_pinned: bool) -> None:
        """Keep a chat above the others, or no longer."""
        with self._transaction():
            self._db.execute("UPDATE chat SET is_pinned=? WHERE id=?", (is_pinned, chat_id))

    def put_away(self, chat_id: int, is_archived: bool) -> None:
        """Put a chat into the archive, or take it out."""
        with self._transaction():
            self._db.execute("UPDATE chat SET is_archived=? WHERE id=?", (is_archived, chat_id))

    def move(self, chat_ids: Iterable[int], folder: str, out_of: str | None = None) -> None:
        """Put chats into a folder, "" for none; with ``out_of`` only those that are in that one."""
        with self._transaction():
            rows = [(_storable(folder), chat_id, out_of, _storable(out_of or "")) for chat_id in chat_ids]
            self._db.executemany("UPDATE chat SET folder=? WHERE id=? AND (? IS NULL OR folder=?)", rows)

    def rename_folder(self, folder: str, name: str) -> list[int]:
        """Give a folder another name, which may be that of another folder; "" takes its chats out. Return these."""
        with self._transaction():
            moved = self._db.execute("UPDATE chat SET folder=? WHERE folder=? RETURNING id", (_storable(name), folder))
            return [chat_id for (chat_id,) in moved]

    def save_draft(self, chat_id: int, text: str) -> None:
        """Keep what was written in a chat and not sent; "" forgets it. ``NEW_CHAT`` is the one that has not begun.

        What was written in place of a message is kept by the id of that one, which no chat has.
        """
        with self._transaction():
            self._db.execute("DELETE FROM draft WHERE chat_id=?", (chat_id,))
            if text:
                self._db.execute("INSERT INTO draft(chat_id, text) VALUES (?,?)", (chat_id, _storable(text)))

    def save_draft_attachments(self, chat_id: int, files: tuple[Attachment, ...]) -> None:
        """Keep the files that were attached in a chat and not sent; none forgets them."""
        with self._transaction():
            self._db.execute("DELETE FROM draft_attachments WHERE chat_id=?", (chat_id,))
            if files:
                row = (chat_id, _storable(attachments.to_json(files)))
                self._db.execute("INSERT INTO draft_attachments(chat_id, attachments) VALUES (?,?)", row)

    def take_rows(
        self, chats: list[dict[str, Any]], messages: list[dict[str, Any]], others: dict[str, list[dict[str, Any]]]
    ) -> int:
        """Write rows of another file that are not there yet, as far as they can be; return how many chats were.

        ``others`` are rows by table. With a chat that is there they stay away: what was not sent may have been since.
        """
        with self._transaction():
            n_chats = self._take("chat", chats)
            self._take("message", messages)
            if n_chats or not chats:
                for table, rows in others.items():
                    self._take(table, rows)
        return n_chats

    def _take(self, table: str, rows: list[dict[str, Any]]) -> int:
        known = {row[1] for row in self._db.execute(f"PRAGMA table_info({table})")}
        n_taken = 0
        for row in rows:
            kept = {name: value for name, value in row.items() if name in known}
            places = ",".join("?" * len(kept))
            try:
                done = self._db.execute(
                    f"INSERT INTO {table}({','.join(kept)}) VALUES ({places}) ON CONFLICT DO NOTHING",
                    list(kept.values()),
                )
            except sqlite3.IntegrityError:
                continue  # a row whose values make no sense
            n_taken += done.rowcount
        return n_taken

    # Reading.

    def prompts(self) -> list[Prompt]:
        """Return all prompts."""
        rows = self._db.execute("SELECT id, name, text, is_system, model FROM prompt ORDER BY id")
        return [Prompt(number, name, text, bool(is_system), model) for number, name, text, is_system, model in rows]

    def draft_attachments(self) -> dict[int, tuple[Attachment, ...]]:
        """Return by chat the files that were attached and not sent."""
        rows = self._db.execute("SELECT chat_id, attachments FROM draft_attachments")
        return {chat_id: attachments.from_json(files) for chat_id, files in rows}

    def drafts(self) -> dict[int, str]:
        """Return by chat, or by the message that was edited, what was written and not sent."""
        return dict(self._db.execute("SELECT chat_id, text FROM draft").fetchall())

    def chats(self, limit: int = -1) -> list[ChatSummary]:
        """Return what is pinned or in a folder, and of the others the ``limit`` written to last, all below 0.

        The latest come first. What is archived is left out.
        """
        rows = self._db.execute(
            f"SELECT {_SUMMARY} FROM chat c WHERE deleted_ms IS NULL AND NOT is_archived "
            "AND (folder <> '' OR is_pinned) UNION ALL SELECT * FROM ("
            f"SELECT {_SUMMARY} FROM chat c WHERE deleted_ms IS NULL AND NOT is_archived "
            "AND folder = '' AND NOT is_pinned ORDER BY updated_ms DESC, id DESC LIMIT ?) "
            "ORDER BY updated_ms DESC, id DESC",
            (limit,),
        )
        return [_summary(row) for row in rows]

    def archived(self) -> list[ChatSummary]:
        """Return the chats in the archive, the latest first."""
        rows = self._db.execute(
            f"SELECT {_SUMMARY} FROM chat c WHERE deleted_ms IS NULL AND is_archived ORDER BY updated_ms DESC, id DESC"
        )
        return [_summary(row) for row in rows]

    def chat(self, chat_id: int) -> Chat | None:
        """Return one chat, or None where it is not there."""
        row = self._db.execute(
            "SELECT id, title, created_ms, updated_ms, settings, leaf_id FROM chat WHERE id=? AND deleted_ms IS NULL",
            (chat_id,),
        ).fetchone()
        if row is None:
            return None
        return Chat(row[0], row[1], row[2], row[3], ChatSettings.from_json(row[4]), row[5])

    def messages(self, chat_id: int) -> list[Message]:
        """Return all messages of a chat, of all branches, oldest first."""
        rows = self._db.execute(
            "SELECT id, chat_id, parent_id, role, content, created_ms, status, problem, finish_reason, model, timings, "
            "speed, answered_by, thoughts, thinking_ms, attachments, drafted, calls "
            "FROM message WHERE chat_id=? ORDER BY id",
            (chat_id,),
        )
        return [_message(row) for row in rows]

    def whole_chat(self, chat_id: int) -> tuple[Chat, list[Message]] | None:
        """Return a chat with its messages, or None where it is not there."""
        chat = self.chat(chat_id)
        return None if chat is None else (chat, self.messages(chat_id))

    def search(self, words: str) -> list[ChatSummary]:
        """Return the chats whose title or messages hold all of ``words``; the last one may be the start of a word."""
        words = _storable(words).replace("\0", " ")  # an expression would end there
        found = {chat.id: chat for chat in self._search_titles(words)}
        for chat in self._search_messages(words):
            known = found.get(chat.id)
            if known is None or not known.snippet:
                found[chat.id] = chat
        return sorted(found.values(), key=lambda chat: (-chat.updated_ms, -chat.id))[:SEARCH_LIMIT]

    def _search_titles(self, words: str) -> list[ChatSummary]:
        parts = words.split()
        if not parts:
            return []
        has = " AND ".join(["instr(folded(CAST(title AS BLOB)), ?)"] * len(parts))
        rows = self._db.execute(
            f"SELECT {_SUMMARY} FROM chat c WHERE deleted_ms IS NULL AND {has} "
            f"ORDER BY updated_ms DESC LIMIT {SEARCH_LIMIT}",
            [folded(part) for part in parts],
        )
        return [_summary(row) for row in rows]

    def _search_messages(self, words: str) -> list[ChatSummary]:
        # The index knows where runs of letters begin; words without edges are looked for in the texts themselves.
        query, inside = match_expression(words), [word for word in words.split() if not has_edges(word)]
        has = "".join([" AND instr(m.content, ?)"] * len(inside))
        if query:
            rows = self._db.execute(
                f"SELECT {_SUMMARY}, snippet(message_fts, 0, char(1), '', '…', 12) FROM message_fts "
                "JOIN message m ON m.id = message_fts.rowid JOIN chat c ON c.id = m.chat_id "
                f"WHERE message_fts MATCH ? AND c.deleted_ms IS NULL{has} ORDER BY rank LIMIT {SEARCH_LIMIT}",
                (query, *inside),
            )
        elif inside:
            rows = self._db.execute(
                f"SELECT {_SUMMARY}, around(CAST(m.content AS BLOB), ?) FROM message m JOIN chat c ON c.id = m.chat_id "
                f"WHERE c.deleted_ms IS NULL{has} ORDER BY m.id DESC LIMIT {SEARCH_LIMIT}",
                (inside[0], *inside),
            )
        else:
            return []
        best: dict[int, ChatSummary] = {}
        for *row, snippet in rows:
            best.setdefault(row[0], replace(_summary(row), snippet=without_marks(_from_match(snippet))))
        return list(best.values())

    def close(self) -> None:
        """Leave the file tidy and let go of it."""
        with contextlib.suppress(sqlite3.Error):
            self._db.execute("PRAGMA optimize")
        self._db.close()


def match_expression(words: str) -> str:
    """Return an FTS5 query for what a user typed: each word quoted, the last one open at its end."""
    parts = [f'"{word.replace(chr(34), chr(34) * 2)}"' for word in words.split() if has_edges(word)]
    return " ".join(parts) + "*" if parts else ""


def without_marks(snippet: str) -> str:
    """Return a piece of markdown on one line, without its marks."""
    return " ".join(_MARKS.sub(" ", snippet).split())


def _from_match(snippet: str) -> str:
    """Return a snippet from a little before its first match on, which is marked by char(1): a list shows few words."""
    before, mark, rest = snippet.partition("\x01")
    if mark and len(before) > _BEFORE:
        last = before[-_BEFORE:]
        before = f"…{last.partition(' ')[2] or last}"
    return before + rest.replace("\x01", "")


def _around(text: str, word: str) -> str:
    """Return a text from a little before a word on, as a snippet of the index is."""
    at = max(0, text.find(word) - _BEFORE)
    return f"{'…' if at else ''}{text[at : at + 80]}{'…' if len(text) > at + 80 else ''}"


def readable(text: bytes) -> str:
    """Return a text of a file of chats. Where bytes of it are broken, the others are still worth reading."""
    return text.decode("utf-8", "replace")


def _storable(text: str) -> str:
    """Return ``text`` without lone surrogates, which SQLite's UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _message(row: tuple[Any, ...]) -> Message:
    number, chat_id, parent_id, role, content, created_ms, status, problem, finish_reason, model, *rest = row
    timings, speed, answered_by, thoughts, thinking_ms, files, drafted, calls = rest
    return Message(
        id=number,
        chat_id=chat_id,
        parent_id=parent_id,
        role=Role(role),
        content=content,
        created_ms=created_ms,
        status=Status(status),
        problem=problem,
        finish_reason=finish_reason,
        model=model,
        timings=None if timings is None else Timings.from_object(_from_json(timings)),
        speed=speed_of(speed),
        answered_by=answered_by,
        thoughts=thoughts,
        thinking_ms=thinking_ms,
        attachments=attachments.from_json(files),
        calls=tool_calls.from_json(calls),
        drafted=tuple((begin, end) for begin, end in _from_json(drafted) or ()),
    )


_SUMMARY = "c.id, c.title, c.updated_ms, c.folder, c.is_pinned, c.is_archived"


def _summary(row: Sequence[Any]) -> ChatSummary:
    chat_id, title, updated_ms, folder, is_pinned, is_archived = row
    return ChatSummary(chat_id, title, updated_ms, "", folder, bool(is_pinned), bool(is_archived))


def _from_json(text: str) -> Any:
    """Return the value, None where the text is broken: a reply can be read without its figures."""
    try:
        return json.loads(text)
    except ValueError:
        return None
