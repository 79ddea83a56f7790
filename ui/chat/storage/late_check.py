"""Looks through a large file of chats while it is in use: ``python -m ui.chat.storage.late_check PATH``. No Qt.

It prints a line of JSON: "" for a file that is whole, what is wrong with it, or null where that cannot be said now. A
process of its own can be ended at once, which a check inside SQLite before 3.41 cannot, and leaves the window alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import sys
from pathlib import Path

from ui.chat.storage.store import damage_of


def damage_in(path: Path) -> str | None:
    """Return what is wrong with a database, "" where it is whole; None where that cannot be said now."""
    try:
        with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
            return damage_of(db)
    except sqlite3.OperationalError:
        return None  # it is held, or not there
    except sqlite3.DatabaseError as error:
        return str(error) or "damaged"


def main() -> None:
    """Print what is wrong with the file that is named, at the lowest priority."""
    if hasattr(os, "nice"):
        os.nice(19)
    print(json.dumps(damage_in(Path(sys.argv[1]))), flush=True)


if __name__ == "__main__":
    main()
