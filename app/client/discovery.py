"""The list of running servers: one small file for each, so that other processes of the same user find it."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from app.environment.paths import make_private, runtime_folder
from models.formatting.json_values import value_of

UNLISTED_VARIABLE = "SLIPSTREAM_UNLISTED"


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that accepts connections. ``model`` is what it was started with; ``started`` seconds since 1970."""

    pid: int
    host: str
    port: int
    url: str
    api_key: str | None = field(repr=False)
    model: str | None
    started: float


def enlist(*, host: str, port: int, api_key: str | None, model: str | None) -> str | None:
    """List this process as a running server; return a sentence when that was not possible, else None.

    A server that was started for one caller only (``SLIPSTREAM_UNLISTED`` is set) is not listed: it ends with its
    caller, under the hands of anyone else.
    """
    if os.environ.get(UNLISTED_VARIABLE):
        return None
    server = RunningServer(
        pid=os.getpid(),
        host=host,
        port=port,
        url=local_url(host, port),
        api_key=api_key,
        model=model,
        started=time.time(),
    )
    try:
        _write(server)
    except OSError as error:
        return (
            f"The server runs, but other commands will not find it: {_folder()} cannot be written ({error.strerror})."
        )
    return None


def withdraw() -> None:
    """Take this process off the list."""
    with contextlib.suppress(OSError):
        _file(os.getpid()).unlink(missing_ok=True)


def running_servers() -> tuple[RunningServer, ...]:
    """Return the servers that are listed and alive, the youngest first. Entries of dead processes are removed."""
    with contextlib.suppress(OSError):
        servers = [server for path in _folder().glob("*.json") if (server := _read(path)) is not None]
        return tuple(sorted(servers, key=lambda server: server.started, reverse=True))
    return ()


def local_url(host: str, port: int) -> str:
    """Return the address by which this machine reaches a server that listens on ``host``."""
    host = host.strip("[]")
    reachable = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{reachable}]:{port}" if ":" in reachable else f"http://{reachable}:{port}"


def is_alive(pid: int) -> bool:
    """Return whether a process with this id exists."""
    if sys.platform == "win32":
        import psutil  # os.kill would end the process there

        return bool(psutil.pid_exists(pid))
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _folder() -> Path:
    return runtime_folder() / "servers"


def _file(pid: int) -> Path:
    return _folder() / f"{pid}.json"


def _write(server: RunningServer) -> None:
    folder = _folder()
    make_private(folder)
    draft = folder / f"{server.pid}.tmp"
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        json.dump(asdict(server), file)
    draft.replace(_file(server.pid))


def _read(path: Path) -> RunningServer | None:
    if not _is_ours(path):
        return None
    try:
        server: RunningServer = value_of(RunningServer, json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError):
        return None
    if not is_alive(server.pid):
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
        return None
    return server


def _is_ours(path: Path) -> bool:
    # The folder can lie under /tmp, where somebody else could plant a server that reads our prompts.
    if sys.platform == "win32":
        return True
    with contextlib.suppress(OSError):
        return path.lstat().st_uid == os.getuid() == path.parent.lstat().st_uid
    return False
