from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import platformdirs
import pytest

from app.client import discovery


def announce(**changes: object) -> str | None:
    facts: dict[str, object] = {"host": "127.0.0.1", "port": 8642, "api_key": "secret", "model": "ember-q8_0"}
    return discovery.enlist(**{**facts, **changes})


def entry(home: Path, pid: int, **changes: object) -> Path:
    """Write an entry as a server with this process id would."""
    announce()
    own = home / "runtime" / "servers" / f"{os.getpid()}.json"
    fields = {**json.loads(own.read_text()), "pid": pid, **changes}
    own.unlink()
    path = own.with_name(f"{pid}.json")
    path.write_text(json.dumps(fields))
    return path


def dead_pid() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_an_announced_server_is_found_and_a_withdrawn_one_is_not(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert discovery.running_servers() == ()
    assert announce() is None
    (server,) = discovery.running_servers()
    assert (server.pid, server.url, server.api_key) == (os.getpid(), "http://127.0.0.1:8642", "secret")
    assert server.model == "ember-q8_0"
    discovery.withdraw()
    assert discovery.running_servers() == ()
    discovery.withdraw()
    monkeypatch.setenv(discovery.UNLISTED_VARIABLE, "1")  # for one caller
    assert announce() is None
    assert discovery.running_servers() == ()


@pytest.mark.skipif(sys.platform != "linux", reason="runtime folders of the XDG")
def test_a_runtime_folder_is_made_as_wanted_and_one_of_somebody_else_left_alone(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SLIPSTREAM_HOME")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run" / "user"))
    expected = tmp_path / "run" / "user" / "slipstream" / "servers"
    assert announce() is None
    assert (expected / f"{os.getpid()}.json").exists()
    assert [server.pid for server in discovery.running_servers()] == [os.getpid()]
    discovery.withdraw()
    assert list(expected.iterdir()) == []

    def refuse(*_: object, **__: object) -> str:
        raise PermissionError("runtime directory is owned by uid 99")

    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    monkeypatch.setattr(platformdirs, "user_runtime_dir", refuse)
    assert announce() is None
    assert (home / "slipstream" / "runtime" / "servers" / f"{os.getpid()}.json").exists()
    discovery.withdraw()


def test_nobody_else_can_read_the_key(home: Path) -> None:
    announce()
    (path,) = (home / "runtime" / "servers").iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert "secret" not in repr(discovery.running_servers())


def test_the_entry_of_a_dead_process_is_removed(home: Path) -> None:
    path = entry(home, dead_pid())
    assert discovery.running_servers() == ()
    assert not path.exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', "\xff", '{"pid": "x", "host": 1}'])
def test_a_broken_entry_is_skipped(home: Path, text: str) -> None:
    announce()
    (home / "runtime" / "servers" / "1.json").write_bytes(text.encode("latin-1"))
    assert len(discovery.running_servers()) == 1


def test_a_server_that_somebody_else_planted_is_ignored(home: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give files away")
    os.chown(entry(home, os.getpid()), 12345, 12345)
    assert discovery.running_servers() == ()


def test_the_youngest_comes_first(home: Path) -> None:
    entry(home, os.getppid(), started=1.0)
    announce()
    assert [server.pid for server in discovery.running_servers()] == [os.getpid(), os.getppid()]


def test_a_folder_that_cannot_be_written_gives_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path / "file"))
    problem = announce()
    assert problem is not None
    assert "cannot be written" in problem
    assert discovery.running_servers() == ()
    discovery.withdraw()
    monkeypatch.setenv(discovery.UNLISTED_VARIABLE, "1")
    assert announce() is None
    assert discovery.running_servers() == ()


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:1"),
        ("0.0.0.0", "http://127.0.0.1:1"),
        ("::", "http://[::1]:1"),
        ("::1", "http://[::1]:1"),
        ("localhost", "http://localhost:1"),
    ],
)
def test_the_url_is_reachable_from_this_machine(host: str, url: str) -> None:
    assert discovery.local_url(host, 1) == url
