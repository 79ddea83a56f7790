"""Uploaded files and the files that batches write, in one folder: the bytes, and beside them what is known of each."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from app.environment.paths import make_private
from app.server.calls.generation import new_id
from app.server.http.keys import caller_id, may_see
from models.files.disk import read_json, write_whole

# Ids become names of files: nothing else of a request may.
_ID = re.compile(r"[a-z]+[-_][0-9a-f-]{1,80}")
_ALWAYS = frozenset({"id", "status", "created_ns"})  # what each record has
Record = dict[str, Any]


def is_seen(record: Record) -> bool:
    """Whether the request that is being answered may see a record."""
    return may_see(record.get("made_by"))


class RecordFolder:
    """JSON objects by their ids, each in a file of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, record: Record) -> None:
        """Write a record in place of the one of its id. Raises OSError."""
        make_private(self.folder)
        # A second is too coarse for the order of a list. Whose a record is does not change.
        record = {"created_ns": time.time_ns(), "made_by": caller_id.get()} | record
        write_whole(self.folder / f"{record['id']}.json", json.dumps(record))

    def get(self, record_id: str) -> Record | None:
        """Return the record of an id; None where there is none, or its file is damaged."""
        found = read_json(self.folder / f"{record_id}.json") if _ID.fullmatch(record_id) else None
        is_whole = isinstance(found, dict) and found.keys() >= _ALWAYS and found["id"] == record_id
        return found if is_whole else None

    def all(self) -> list[Record]:
        """Return the records, the newest first."""
        found = [record for path in self.folder.glob("*.json") if (record := self.get(path.stem)) is not None]
        return sorted(found, key=lambda record: int(record["created_ns"]), reverse=True)

    def delete(self, record_id: str) -> bool:
        """Delete a record; False where there is none."""
        if self.get(record_id) is None:
            return False
        (self.folder / f"{record_id}.json").unlink(missing_ok=True)
        return True


class FileStore(RecordFolder):
    """The files, with what is known of each; their ids are made here."""

    def add(self, name: str, purpose: str, write: Callable[[BinaryIO], None]) -> Record:
        """Store what ``write`` writes as a new file. Raises OSError, and then keeps nothing."""
        make_private(self.folder)
        record: Record = {
            "id": new_id("file"),
            "object": "file",
            "created_at": int(time.time()),
            "filename": name,
            "purpose": purpose,
            "status": "processed",
        }
        path = self.path(record["id"])
        try:
            with path.open("xb") as file:
                write(file)
            self.put(record | {"bytes": path.stat().st_size})
        except OSError:
            path.unlink(missing_ok=True)
            raise
        return self.get(record["id"]) or record

    def copy(self, source: BinaryIO, name: str, purpose: str) -> Record:
        """Store the rest of ``source`` as a new file. Raises OSError."""
        return self.add(name, purpose, lambda file: shutil.copyfileobj(source, file))

    def path(self, file_id: str) -> Path:
        """Return where the bytes of a file are; the id is one of ours."""
        return self.folder / f"{file_id}.data"

    def delete(self, record_id: str) -> bool:
        """Delete a file; False where there is none."""
        is_there = super().delete(record_id)
        if is_there:
            self.path(record_id).unlink(missing_ok=True)
        return is_there
