"""Tokens of workers: our own worker's, in a file, and those of other machines' workers."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from app.environment.paths import config_folder, make_private
from core.values.addresses import is_worker, worker_address
from core.values.errors import BadOption, SlipstreamError
from models.files.disk import is_there, write_whole
from models.files.json_store import JsonStore, StoreRefused
from models.files.system_keyring import forget_secret, keep_secret, kept_secret
from models.formatting.sentence import Sentence

_SERVICE = "slipstream"
VARIABLE = "SLIPSTREAM_WORKER_TOKEN"
_FEWEST_CHARACTERS = 16  # fewer could be guessed


def own_token(file: Path | None) -> tuple[str, Path, bool]:
    """Return our worker's token, the file that keeps it, and whether it was made just now; raises BadOption."""
    path = file or config_folder() / "worker-token"
    token = secrets.token_urlsafe(32)
    try:
        if is_there(path):
            return read_token(path), path, False
        make_private(path.parent)
        write_whole(path, token + "\n", is_private=True)
    except OSError as error:
        raise BadOption(f"{path} cannot be written ({error.strerror}): name another with --token-file.") from error
    return token, path, True


def read_token(path: Path) -> str:
    """Return the token in a file; raises BadOption."""
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise BadOption(f"The token cannot be read from {path}: {reason}.") from error
    if len(token) < _FEWEST_CHARACTERS:
        raise BadOption(f"The token in {path} is too short: it needs at least {_FEWEST_CHARACTERS} characters.")
    return token


def tokens_for(devices: Iterable[str], file: Path | None = None) -> tuple[tuple[str, str], ...]:
    """Return each worker among ``devices`` with its token: from ``file``, the environment, or the keyring.

    A worker whose token is nowhere is left out: what connects to it says so.
    """
    given = read_token(file) if file is not None else os.environ.get(VARIABLE, "").strip()
    found = {worker: given or kept_secret(_SERVICE, worker) for worker in devices if is_worker(worker)}
    return tuple((worker, token) for worker, token in found.items() if token)


def named_workers(devices: Iterable[str], file: Path | None = None) -> tuple[tuple[str, str], ...]:
    """Return ``devices``, which must be workers, with their tokens ("" where there is none); raises BadOption."""
    names = tuple(devices)
    for name in names:
        worker_address(name)
    known = dict(tokens_for(names, file))
    return tuple((name, known.get(name, "")) for name in names)


def known_workers() -> tuple[str, ...]:
    """Return the workers that were added, as rpc://HOST:PORT; what the file says else is left out."""
    return tuple(name for name in sorted(_store().read()) if is_worker(name))


def add_worker(worker: str, token: str) -> bool:
    """Keep a worker and its token; False where no keyring could keep it. Raises SlipstreamError."""
    if not keep_secret(_SERVICE, worker, token):
        return False
    _change(lambda entries: entries.update({worker: {}}))
    return True


def forget_worker(worker: str) -> bool:
    """Keep a worker and its token no longer; False where it was not kept. Raises SlipstreamError."""
    found: list[Any] = []
    _change(lambda entries: found.append(entries.pop(worker, None)))
    return forget_secret(_SERVICE, worker) or found != [None]


def _change(change: Callable[[dict[str, Any]], None]) -> None:
    try:
        _store().update(change)
    except StoreRefused as error:
        raise SlipstreamError(str(error)) from None


def _store() -> JsonStore:
    return JsonStore(config_folder() / "workers.json", what=Sentence("The workers"))
