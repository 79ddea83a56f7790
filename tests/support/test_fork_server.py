"""A forked library is as one that was started: its own environment and streams, and it ends as told or killed."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from app.client.library_process import library_environment, library_folder
from models.library.lines import request_line
from models.library.requests import ListPlaces, ShowHub
from tests.support.fork_server import CAN_FORK, forked_library_command
from tests.support.library_pipe import LibraryPipe

pytestmark = pytest.mark.skipif(not CAN_FORK, reason="forks are watched by pidfd, which only Linux has")


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path))


def test_each_has_its_environment_and_ends_with_its_stdin() -> None:
    pipes = [LibraryPipe(HF_ENDPOINT=f"http://127.0.0.{number}") for number in (1, 2)]
    assert [pipe.get(ShowHub()).address for pipe in pipes] == ["http://127.0.0.1", "http://127.0.0.2"]
    assert len({pipe.process.pid for pipe in pipes} | {os.getpid()}) == 3
    assert [pipe.close() for pipe in pipes] == [0, 0]


def test_a_signal_is_told_and_costs_no_other() -> None:
    killed, other = LibraryPipe(), LibraryPipe()
    killed.kill()
    assert killed.process.wait() == -signal.SIGKILL
    assert other.get(ListPlaces()) == ()
    assert (killed.close(), other.close()) == (-signal.SIGKILL, 0)


def test_a_client_ends_as_its_library_and_takes_it_along_when_it_is_killed() -> None:
    def started() -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        return subprocess.Popen(
            forked_library_command(), cwd=library_folder(), env=library_environment(), stdin=pipe, stdout=pipe
        )

    with started() as client:
        assert client.stdin is not None
        assert client.stdout is not None
        client.stdin.write(request_line(7, ListPlaces()))
        client.stdin.flush()
        assert any(b'"id": 7' in line for line in client.stdout)
        client.stdin.close()
        assert client.wait(60) == 0
    with started() as client:
        assert client.stdout is not None
        assert client.stdout.readline()
        client.kill()
        client.stdout.read()  # ends when the library does
        assert client.wait(60) == -signal.SIGKILL
