"""A keyring in a file, for processes under test: PYTHON_KEYRING_BACKEND names the class, KEYRING_FILE the file.

The keyring package keeps the class for the whole process: without a file, in the tests that follow, it is empty.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from keyring.backend import KeyringBackend
from keyring.errors import PasswordDeleteError


class FileKeyring(KeyringBackend):
    priority = 1

    def get_password(self, service: str, username: str) -> str | None:
        return self._read().get(f"{service}|{username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        self._write(self._read() | {f"{service}|{username}": password})

    def delete_password(self, service: str, username: str) -> None:
        kept = self._read()
        if kept.pop(f"{service}|{username}", None) is None:
            raise PasswordDeleteError("none")
        self._write(kept)

    def _read(self) -> dict[str, str]:
        try:
            return json.loads(self._file.read_text())
        except (FileNotFoundError, KeyError):
            return {}

    def _write(self, kept: dict[str, str]) -> None:
        self._file.write_text(json.dumps(kept))

    @property
    def _file(self) -> Path:
        return Path(os.environ["KEYRING_FILE"])
