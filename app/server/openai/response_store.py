"""Responses that were asked to be stored, in SQLite: read, deleted and continued by their ids."""

from __future__ import annotations

import contextlib
import json
import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from app.environment.paths import make_private
from app.server.calls.generation import new_id
from app.server.http.keys import caller_id
from core.values.errors import SlipstreamError
from models.files.disk import back_up_database, backup_of, move_database

_log = logging.getLogger("slipstream.server")
Item = dict[str, Any]
R = TypeVar("R")
# As long as OpenAI keeps them.
KEPT_SECONDS = 30 * 24 * 3_600
# No conversation has so many turns: a chain that is longer is one that somebody has bent into a ring.
_MOST_LINKS = 10_000
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_SCHEMA = """
CREATE TABLE IF NOT EXISTS responses (
    id TEXT PRIMARY KEY, created REAL NOT NULL, previous TEXT, input TEXT NOT NULL, response TEXT NOT NULL, made_by TEXT
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS responses_created ON responses (created);
"""
_COLUMNS = "id, created, previous, input, response, made_by"
# Responses that were stored before this column existed are the owner's.
_NEW_COLUMN = "ALTER TABLE responses ADD COLUMN made_by TEXT"
_FIELDS = "previous, input, response, made_by"
_MAY_SEE = "(:made_by IS NULL OR made_by = :made_by)"
_CHAIN = f"""
WITH RECURSIVE chain (id, previous, input, response, made_by, depth) AS (
    SELECT id, previous, input, response, made_by, 0 FROM responses WHERE id = :id AND {_MAY_SEE}
    UNION ALL
    SELECT r.id, r.previous, r.input, r.response, r.made_by, depth + 1
    FROM responses r JOIN chain ON r.id = chain.previous
    WHERE depth < {_MOST_LINKS}
) SELECT {_FIELDS} FROM chain ORDER BY depth DESC
"""


class ResponsesRefused(SlipstreamError):
    """The file of stored responses cannot be used; the text says why."""


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response and the items that it answered, without those before ``previous``; and with which key."""

    response: dict[str, Any]
    input: list[Item]
    previous: str | None = None
    made_by: str | None = field(default_factory=caller_id.get)

    @property
    def id(self) -> str:
        """The response's id."""
        return str(self.response["id"])


def new_number() -> str:
    """Return what the ids of a response and of its items have in common: PREFIX_NUMBER, and _PLACE behind it."""
    return new_id("").removeprefix("-")


def number_of(any_id: str) -> str:
    """Return that of an id; "" where it has none."""
    return any_id.partition("_")[2].partition("_")[0]


class ResponseStore:
    """The stored responses in one file, made when the first one is stored. Several threads may use it.

    A request finds those that its key may see; those of others are not there for it.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._open: sqlite3.Connection | None = None

    def put(self, stored: StoredResponse) -> bool:
        """Store a response, and drop those that are too old; False where the disk does not let it.

        Whoever waits for the response gets it all the same: the log says why it is not stored.
        """
        texts = json.dumps(stored.input), json.dumps(stored.response)
        row = (stored.id, time.time(), stored.previous, *texts, stored.made_by)

        oldest, backup = time.time() - KEPT_SECONDS, backup_of(self._file)

        def insert(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM responses WHERE created < ?", (oldest,))
            # By name: a newer version may have added columns.
            connection.execute(f"INSERT INTO responses ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", row)
            if backup.exists() and backup.stat().st_mtime < oldest:
                backup.unlink()

        try:
            self._do(insert)
        except (OSError, ResponsesRefused) as error:
            _log.warning("A response could not be stored: %s", error)
            return False
        return True

    def get(self, response_id: str) -> StoredResponse | None:
        """Return a response by its id; None where there is none."""
        rows = self._rows(f"SELECT {_FIELDS} FROM responses WHERE id = :id AND {_MAY_SEE}", id=response_id)
        return _stored(rows[0]) if rows else None

    def item(self, item_id: str) -> Item | None:
        """Return an item of a response or of its input by its id; None where there is none."""
        stored = self.get(f"resp_{number_of(item_id)}")
        items = [*stored.response["output"], *stored.input] if stored is not None else []
        return next((item for item in items if item.get("id") == item_id), None)

    def chain(self, response_id: str) -> list[StoredResponse]:
        """Return the responses of a conversation up to this one, the oldest first; none where the id is unknown."""
        return [_stored(row) for row in self._rows(_CHAIN, id=response_id)]

    def delete(self, response_id: str) -> bool:
        """Delete a response; False where there is none."""
        if not self._file.exists():
            return False
        deleting, values = f"DELETE FROM responses WHERE id = :id AND {_MAY_SEE}", _values(id=response_id)
        is_there = self._do(lambda connection: connection.execute(deleting, values).rowcount > 0)
        if is_there:
            backup_of(self._file).unlink(missing_ok=True)  # the response is there too
        return is_there

    def listed(self, limit: int, after: StoredResponse | None, *, oldest_first: bool) -> list[StoredResponse]:
        """Return stored responses in the order of time, those behind ``after``."""
        beyond, order = (">", "ASC") if oldest_first else ("<", "DESC")
        behind = "" if after is None else f" AND created {beyond} (SELECT created FROM responses WHERE id = :after)"
        query = f"SELECT {_FIELDS} FROM responses WHERE {_MAY_SEE}{behind} ORDER BY created {order} LIMIT :limit"
        return [_stored(row) for row in self._rows(query, limit=limit, after=after and after.id)]

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._shut()

    def _shut(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def _rows(self, query: str, **values: Any) -> list[Any]:
        if not self._file.exists():
            return []
        return self._do(lambda connection: connection.execute(query, _values(**values)).fetchall())

    def _do(self, work: Callable[[sqlite3.Connection], R]) -> R:
        """Return what ``work`` does with the file. One that is damaged is set aside, and it is done with a new one.

        Raises OSError and ResponsesRefused.
        """
        with self._lock:
            try:
                with self._connection() as connection:
                    return work(connection)
            except sqlite3.Error as error:
                # The upper bits of the code say more exactly what is damaged.
                if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _DAMAGED:
                    raise self._refused(error) from error
                self._shut()
                self._set_aside()
                with self._connection() as connection:
                    return work(connection)

    def _refused(self, error: sqlite3.Error) -> ResponsesRefused:
        found = set[str]()
        with contextlib.suppress(sqlite3.Error):
            found = _columns(self._open) if self._open is not None else found
        if found - set(_COLUMNS.split(", ")):
            return ResponsesRefused(
                "A newer Slipstream has changed {file}, where responses are stored: update this one. ({error})",
                file=self._file,
                error=error,
            )
        return ResponsesRefused(
            "{file}, where responses are stored, cannot be used: {error}.", file=self._file, error=error
        )

    def _connection(self) -> sqlite3.Connection:
        if self._open is None:
            make_private(self._file.parent)
            self._open = self._opened()
        return self._open

    def _opened(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._file, check_same_thread=False)
        try:
            # Another server of this user may do so at the same time, for whom SQLite does not wait here.
            with contextlib.suppress(sqlite3.OperationalError):
                connection.execute("PRAGMA journal_mode = WAL")
            if _is_older(connection):
                back_up_database(connection, self._file)
                with connection:
                    connection.execute("BEGIN IMMEDIATE")
                    if _is_older(connection):  # no other server of this user has changed it meanwhile
                        connection.execute(_NEW_COLUMN)
            connection.executescript(_SCHEMA)
        except (OSError, sqlite3.Error):
            connection.close()
            raise
        with contextlib.suppress(OSError):  # a file system without rights
            self._file.chmod(0o600)
        return connection

    def _set_aside(self) -> None:
        """Keep a damaged file under another name, so that a new one can begin. Raises OSError."""
        aside = self._file.with_name(f"{self._file.name}.broken-{time.time_ns()}")
        move_database(self._file, aside)
        _log.warning("The stored responses could not be read: the file is damaged. It was kept as %s.", aside)


def _is_older(connection: sqlite3.Connection) -> bool:
    columns = _columns(connection)
    return bool(columns) and "made_by" not in columns


def _columns(connection: sqlite3.Connection) -> set[str]:
    return {row[1] for row in connection.execute("PRAGMA table_info(responses)")}


def _values(**values: Any) -> dict[str, Any]:
    return values | {"made_by": caller_id.get()}


def _stored(row: tuple[str | None, str, str, str | None]) -> StoredResponse:
    previous, items, response, made_by = row
    return StoredResponse(json.loads(response), json.loads(items), previous, made_by)
