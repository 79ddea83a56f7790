"""Chats from a damaged file or a backup: every row that can still be read. No Qt here."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ui.chat.storage.store import ChatStore, readable

Row = dict[str, Any]
RESCUED = "A chat whose title was lost"


def rescue(source: Path, store: ChatStore) -> int:
    """Bring what can be read of ``source`` into ``store``, which keeps what it has; return how many chats came.

    A reply whose question was lost stays, as the beginning of its chat. Raises sqlite3 errors of ``store`` alone.
    """
    try:
        lost = sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)
    except sqlite3.Error:
        return 0
    lost.text_factory = readable
    try:
        chats = {row["id"]: row for row in _rows(lost, "chat") if row.get("deleted_ms") is None}
        messages = {row["id"]: row for row in _rows(lost, "message")}
    finally:
        lost.close()
    for row in messages.values():
        if row.get("chat_id") not in chats:
            when = row.get("created_ms")
            made = {"id": row.get("chat_id"), "title": RESCUED, "created_ms": when, "updated_ms": when}
            chats[row.get("chat_id")] = made
        if row.get("parent_id") not in messages:
            row["parent_id"] = None
    return store.take_rows(list(chats.values()), [messages[number] for number in sorted(messages)])


def _rows(lost: sqlite3.Connection, table: str) -> Iterator[Row]:
    """Yield the rows of a table from its beginning and then from its end, each time up to the first broken page."""
    seen: set[int] = set()
    for order in ("ASC", "DESC"):
        try:
            cursor = lost.execute(f"SELECT * FROM {table} ORDER BY id {order}")
            names = [column[0] for column in cursor.description]
            for values in cursor:
                row = dict(zip(names, values, strict=True))
                if row.get("id") in seen:
                    break
                seen.add(row["id"])
                yield row
        except (sqlite3.Error, KeyError):
            continue
