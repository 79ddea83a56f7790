"""The API keys that clients of this machine's servers have, by name. Of a key only its hash is kept."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.environment.paths import config_folder, make_private
from core.values.errors import BadOption, SlipstreamError
from models.files.disk import is_there
from models.files.json_store import JsonStore, StoreRefused
from models.formatting.sentence import Sentence
from models.formatting.system_error import system_reason

_NAMES = re.compile(r"[\w][\w .@-]{0,63}")
# The use of a key is noted so often at most: each note writes the file.
_NOTE_SECONDS = 600.0
PREFIX = "slip-"  # tells what a key in a configuration belongs to


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key without its secret: its name, and when it was made and last used, in seconds since 1970.

    A key may use models. With ``may_manage`` it may also load, download, change and remove them.
    """

    name: str
    made: float
    used: float | None = None
    may_manage: bool = False


class KeyStore:
    """The keys in a file; what was read is remembered until the file changes. Thread-safe."""

    def __init__(self, path: Path | None = None) -> None:
        """``path`` None is the file of this user."""
        self._store = JsonStore(
            path or config_folder() / "api-keys.json", what=Sentence("The API keys"), is_private=True
        )
        self._lock = threading.Lock()
        self._problem: str | None = None
        self._hashes: dict[str, bytes] = {}
        self._entries: dict[str, Any] = {}
        self._noted: dict[str, float] = {}

    @property
    def is_empty(self) -> bool:
        """Whether there is no key. A file that cannot be read counts as one with keys that nobody has."""
        self._look()
        return not self._entries and self._problem is None

    def has(self, name: str) -> bool:
        """Whether there is a key of this name."""
        self._look()
        return name in self._entries

    def all(self) -> tuple[ApiKey, ...]:
        """Return the keys, the oldest first. Raises SlipstreamError where the file cannot be read."""
        self._look()
        if self._problem is not None:
            raise SlipstreamError(self._problem)
        found = [
            ApiKey(name, float(entry.get("made", 0)), entry.get("used"), entry.get("may_manage") is True)
            for name, entry in self._entries.items()
        ]
        return tuple(sorted(found, key=lambda key: key.made))

    def add(self, name: str, *, may_manage: bool = False) -> str:
        """Make a key of this name and return it: it is told this once. Raises BadOption and SlipstreamError."""
        if not _NAMES.fullmatch(name):
            raise BadOption(
                "A key cannot be called {name}: a name has up to 64 letters, digits, spaces and . @ _ -, and "
                "begins with a letter or digit.",
                name=repr(name[:80]),
            )
        key = PREFIX + secrets.token_urlsafe(32)

        def change(entries: dict[str, Any]) -> None:
            if name in entries:
                raise BadOption(
                    "There is a key called {name} already: revoke it first, or take another name.", name=repr(name)
                )
            entries[name] = {"sha256": _hash(key.encode()).hex(), "made": time.time(), "may_manage": may_manage}

        self._change(change)
        return key

    def let(self, name: str, *, may_manage: bool) -> None:
        """Let a key manage models or only use them, from the next request on. Raises BadOption and SlipstreamError."""

        def change(entries: dict[str, Any]) -> None:
            _check_is_there(name, entries)
            entries[name]["may_manage"] = may_manage

        self._change(change)

    def revoke(self, name: str) -> None:
        """Forget a key; servers that run refuse it from the next request on. Raises BadOption and SlipstreamError."""

        def change(entries: dict[str, Any]) -> None:
            _check_is_there(name, entries)
            del entries[name]

        self._change(change)

    def name_of(self, sent: bytes) -> str | None:
        """Return the name of a key that a client sent. The time does not depend on how nearly right the key is."""
        self._look()
        found, given = None, _hash(sent)
        for name, known in self._hashes.items():
            if secrets.compare_digest(given, known):
                found = name
        return found

    def may_manage(self, sent: bytes) -> bool:
        """Return whether a key that a client sent may manage models; those of before this was asked may not."""
        name = self.name_of(sent)
        return name is not None and self._entries.get(name, {}).get("may_manage") is True

    def note_use(self, name: str) -> None:
        """Remember that a key was used now, some times an hour. Where that cannot be written, nothing is remembered."""
        now = time.time()
        if now - self._noted.get(name, 0.0) < _NOTE_SECONDS:
            return
        self._noted[name] = now

        def change(entries: dict[str, Any]) -> None:
            if name in entries:
                entries[name]["used"] = now

        with contextlib.suppress(StoreRefused):
            self._store.update(change)

    def _change(self, change: Any) -> None:
        try:
            self._store.update(change)
        except StoreRefused as error:
            raise SlipstreamError(str(error)) from None

    def _look(self) -> None:
        with self._lock:
            if (entries := self._store.changed()) is None:
                return
            # A damaged file is set aside, and then there is none: that must not open a server that runs.
            if self._store.problem is not None or entries:
                self._problem = self._store.problem
            self._entries = {name: entry for name, entry in entries.items() if _is_key(entry)}
            self._hashes = {name: bytes.fromhex(entry["sha256"]) for name, entry in self._entries.items()}


def endpoint_key(*, anew: bool = False) -> str:
    """Return the key by which this user's programs reach the window's server: the same at each start.

    It is shown again and again, so it is kept as it is, in a file that is the user's alone; ``anew`` makes another one.
    Raises SlipstreamError.
    """
    path = config_folder() / "endpoint-key"
    try:
        kept = path.read_text(encoding="ascii").strip() if is_there(path) and not anew else ""
        if kept.startswith(PREFIX):
            return kept
        key = PREFIX + secrets.token_urlsafe(32)
        make_private(path.parent)
        path.unlink(missing_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(key + "\n")
    except (OSError, UnicodeDecodeError) as error:
        raise SlipstreamError(
            "The key cannot be kept in {path}: {error}.", path=path, error=system_reason(error)
        ) from None
    return key


def _hash(key: bytes) -> bytes:
    # A key has 256 random bits: nobody finds it by trying, so a slow hash would only slow down every request.
    return hashlib.sha256(key).digest()


def _check_is_there(name: str, entries: dict[str, Any]) -> None:
    if not isinstance(entries.get(name), dict):
        known = ", ".join(sorted(entries)) or "none"
        raise BadOption("There is no key called {name}. Keys: {known}.", name=repr(name[:80]), known=known)


def _is_key(entry: Any) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("sha256"), str):
        return False
    return re.fullmatch(r"[0-9a-f]{64}", entry["sha256"]) is not None and isinstance(entry.get("made", 0), int | float)
