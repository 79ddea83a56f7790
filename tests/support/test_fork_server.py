"""A forked library is as one that was started: its own environment and streams, and it ends as told or killed."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from app.client.server_process import library_environment
from models.formatting.program import PROGRAM_FOLDER
from tests.support.fork_server import CAN_FORK, forked_library_command

pytestmark = pytest.mark.skipif(not CAN_FORK, reason="forks are watched by pidfd, which only Linux has")


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path))


def started(**environment: str) -> subprocess.Popen[bytes]:
    pipe, merged = subprocess.PIPE, {**library_environment(), **environment}
    return subprocess.Popen(forked_library_command(), cwd=PROGRAM_FOLDER, env=merged, stdin=pipe, stdout=pipe)


def asked(client: subprocess.Popen[bytes], name: str) -> Any:
    assert client.stdin is not None
    assert client.stdout is not None
    client.stdin.write(json.dumps({"id": 7, "ask": name, "with": {}}).encode() + b"\n")
    client.stdin.flush()
    return next(found["value"] for found in map(json.loads, client.stdout) if found.get("id") == 7)


def test_each_has_its_environment_and_ends_with_its_stdin() -> None:
    clients = [started(HF_ENDPOINT=f"http://127.0.0.{number}") for number in (1, 2)]
    assert [asked(client, "ShowHub")["address"] for client in clients] == ["http://127.0.0.1", "http://127.0.0.2"]
    for client in clients:
        client.communicate(timeout=60)
        assert client.returncode == 0


def test_a_client_takes_its_library_along_when_it_is_killed_and_no_other() -> None:
    killed, other = started(), started()
    assert asked(killed, "ListPlaces") == []
    killed.kill()
    killed.communicate(timeout=60)  # its stdout ends when the library does
    assert killed.returncode == -signal.SIGKILL
    assert asked(other, "ListPlaces") == []
    other.communicate(timeout=60)
    assert other.returncode == 0
