"""Chats from a damaged file or a backup: every row that can still be read. No Qt here."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ui.chat.storage.store import NEW_CHAT, ChatStore, readable

Row = dict[str, Any]
RESCUED = "A chat whose title was lost"
# What else tells the ids of a table, and by what that is sorted. It is read without the table itself.
IDS = {
    "chat": (("SELECT DISTINCT chat_id AS id FROM message INDEXED BY message_chat", ("chat_id",)),),
    "message": (
        ("SELECT id FROM message INDEXED BY message_chat", ("chat_id", "id")),
        ("SELECT id FROM message INDEXED BY message_parent", ("parent_id", "id")),
        ("SELECT id FROM message_fts_docsize", ("id",)),
    ),
}
STEP_SECONDS = 0.1  # of writing: whoever opens a chat meanwhile waits so long, or until all has been read


class Rescue:
    """Brings what can be read of a file of chats into a store, which keeps what it has, some chats at each step.

    A reply whose question was lost stays, as the beginning of its chat. ``n_chats`` have come so far. The file is only
    read.
    """

    def __init__(self, source: Path) -> None:
        self.source = source
        self.n_chats = 0
        self._chats: list[Row] | None = None  # that are left, the latest last; None until read
        self._messages = defaultdict[object, list[Row]](list)  # by chat
        # By chat what was not sent there; without one all prompts, and what was written for a new chat.
        self._others = defaultdict[object, dict[str, list[Row]]](dict)
        self._n_all = 0
        self._is_stopped = threading.Event()

    @property
    def share(self) -> float | None:
        """How much was brought, of 1; None until it was read."""
        return None if self._chats is None else 1.0 - len(self._chats) / max(self._n_all, 1)

    @property
    def is_stopped(self) -> bool:
        """Whether it was stopped before it had an end."""
        return self._is_stopped.is_set() and self._chats != []

    @property
    def is_over(self) -> bool:
        """Whether there is nothing left to do."""
        return self._is_stopped.is_set() or self._chats == []

    def stop(self) -> None:
        """End the step that is at work soon; what has come stays. From any thread."""
        self._is_stopped.set()

    def step(self, store: ChatStore) -> None:
        """Read all at once, or bring some chats, each of them whole. Raises sqlite3 errors of ``store`` alone."""
        if self._chats is None:
            self._read()
            store.take_rows([], [], self._others.pop(None, {}))
            return
        until = time.monotonic() + STEP_SECONDS
        while self._chats and not self._is_stopped.is_set():
            chat = self._chats[-1]
            number = chat["id"]
            self.n_chats += store.take_rows([chat], self._messages[number], self._others.get(number, {}))
            del self._messages[number], self._chats[-1]
            if time.monotonic() > until:
                break

    def _read(self) -> None:
        chats = dict[Any, Row]()
        deleted = set[object]()  # chats, whose messages stay away with them
        messages = dict[Any, Row]()
        others = list[tuple[str, Row]]()
        with contextlib.suppress(sqlite3.Error):
            lost = sqlite3.connect(f"{self.source.absolute().as_uri()}?mode=ro", uri=True)
            lost.text_factory = readable
            with contextlib.closing(lost):
                for row in self._rows(lost, "chat"):
                    if row.get("deleted_ms") is None:
                        chats[row["id"]] = row
                    else:
                        deleted.add(row["id"])
                messages = {row["id"]: row for row in self._rows(lost, "message")}
                for table in ("prompt", "draft", "draft_attachments"):
                    others += ((table, row) for row in self._rows(lost, table))
        if self._is_stopped.is_set():
            return  # some rows are no whole chats
        for number in sorted(messages):
            row = messages[number]
            chat, when = row.get("chat_id"), row.get("created_ms")
            if chat in deleted or not isinstance(chat, int):
                continue
            if chat not in chats:
                chats[chat] = {"id": chat, "title": RESCUED, "created_ms": when, "updated_ms": when}
            if messages.get(row.get("parent_id"), {}).get("chat_id") != chat:
                row["parent_id"] = None
            self._messages[chat].append(row)
        for table, row in others:
            key = row.get("chat_id", NEW_CHAT)
            of = None if key <= NEW_CHAT else messages.get(key, {}).get("chat_id", key)
            self._others[of].setdefault(table, []).append(row)
        self._chats, self._n_all = [chats[number] for number in sorted(chats)], len(chats)

    def _rows(self, lost: sqlite3.Connection, table: str) -> Iterator[Row]:
        """Yield the rows of a table from its beginning, from its end, and what lies between two broken pages."""
        seen: set[int] = set()
        key = "chat_id" if table.startswith("draft") else "id"
        for order in ("ASC", "DESC"):
            for row in self._read_rows(lost, f"SELECT * FROM {table} ORDER BY {key} {order}"):
                if row[key] in seen:
                    break
                seen.add(row[key])
                if isinstance(row[key], int):  # else it is no file of ours
                    yield row
        for number in self._known_ids(lost, table) - seen:
            yield from self._read_rows(lost, f"SELECT * FROM {table} WHERE id = {number:d}")

    def _known_ids(self, lost: sqlite3.Connection, table: str) -> set[int]:
        """Return the ids of a table that are told elsewhere: only with them can what is behind a break be found."""
        known: set[int] = set()
        for query, columns in IDS.get(table, ()):
            here: set[int] = set()
            for order in ("ASC", "DESC"):
                sorting = ", ".join(f"{column} {order}" for column in columns)
                for row in self._read_rows(lost, f"{query} ORDER BY {sorting}"):
                    if row["id"] in here:
                        break
                    here.add(row["id"])
            known |= {one for one in here if isinstance(one, int)}  # a broken page tells anything
        return known

    def _read_rows(self, lost: sqlite3.Connection, query: str) -> Iterator[Row]:
        """Yield what a query finds up to the first broken page."""
        with contextlib.suppress(sqlite3.Error, KeyError):
            cursor = lost.execute(query)
            names = [column[0] for column in cursor.description]
            for values in cursor:
                if self._is_stopped.is_set():
                    return
                yield dict(zip(names, values, strict=True))
