"""The command line as a user has it: real processes, the real server, the real engine, the bundled model."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from app.client.server_process import serve_command
from app.doctor.checks import check_servers
from app.environment.exit_codes import ExitCode
from tests.support.commands import ROOT, command, ran
from tests.support.fork_server import descendants, forked
from tests.support.waiting import until

STORY = ["Tell me a story about a fox.", "--max-tokens", "24", "--seed", "1", "--temperature", "0"]
ENDLESS = ["Tell me a story about a fox.", "--max-tokens", "900", "--ignore-eos", "--temperature", "0"]

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="signals and pseudo-terminals of POSIX"),
    pytest.mark.usefixtures("home"),
]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return ran(*words, stdin=subprocess.DEVNULL)


@contextlib.contextmanager
def started(*words: str, is_forked: bool = False) -> Iterator[subprocess.Popen[bytes]]:
    """Start a command in a group of its own, as a shell does; forked where what it starts need get no signal."""
    with subprocess.Popen(
        forked(command(*words)) if is_forked else command(*words),
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as child:
        try:
            yield child
        finally:
            child.kill()


def family(pid: int) -> list[psutil.Process]:
    return descendants(psutil.Process(pid))


def wait_for_family(pid: int, n_members: int) -> list[psutil.Process]:
    return until(lambda: members if len(members := family(pid)) >= n_members else None)


def left_over(processes: list[psutil.Process]) -> list[psutil.Process]:
    return psutil.wait_procs(processes, timeout=60)[1]


@contextlib.contextmanager
def pipes_held_open(pid: int) -> Iterator[None]:
    """On Linux, hold both ends of all pipes of a process, so that it does not see the others go."""
    with contextlib.ExitStack() as held:
        for path in Path(f"/proc/{pid}/fd").glob("*"):
            with contextlib.suppress(FileNotFoundError):  # one that was closed meanwhile
                if os.readlink(path).startswith("pipe:"):
                    held.callback(os.close, os.open(path, os.O_RDWR))
        yield


def read_some(child: subprocess.Popen[bytes]) -> bytes:
    assert child.stdout is not None
    return os.read(child.stdout.fileno(), 1)


def test_ctrl_c_in_a_stream_ends_everything() -> None:
    with started("chat", *ENDLESS) as child:
        read_some(child)
        members = family(child.pid)
        assert len(members) >= 2, "server and engine"
        os.killpg(child.pid, signal.SIGINT)
        _, err = child.communicate(timeout=60)
        assert child.returncode == ExitCode.INTERRUPTED
        assert b"Traceback" not in err
        assert left_over(members) == []


def test_ctrl_c_while_loading_ends_everything() -> None:
    with started("chat", *ENDLESS) as child:
        members = wait_for_family(child.pid, 1)
        os.killpg(child.pid, signal.SIGINT)
        out, err = child.communicate(timeout=60)
        assert child.returncode == ExitCode.INTERRUPTED
        assert (out, err) == (b"", b"")
        assert left_over(members) == []


def test_nothing_survives_kill_9() -> None:
    """On Linux not even an engine that does not see that nobody is left: its pipes are held open here.

    To stop it would not do: Linux wakes and ends a stopped process when its parent dies.
    """
    with started("chat", *ENDLESS) as child:
        read_some(child)
        members = family(child.pid)
        (server,) = psutil.Process(child.pid).children()
        (engine,) = (one for one in members if "core.loading.worker" in one.cmdline())
        with pipes_held_open(engine.pid):
            server.kill()
            child.kill()
            assert left_over(members) == []


@pytest.mark.parametrize("moment", ["started", "an engine", "all processes"])
def test_a_server_for_one_caller_leaves_with_it_at_any_moment(moment: str) -> None:
    pipe, whole = subprocess.PIPE, serve_command() if moment == "started" else forked(serve_command())
    server = subprocess.Popen(whole, stdin=pipe, stdout=pipe, stderr=pipe, cwd=ROOT, start_new_session=True)
    assert server.stdout is not None
    if moment == "an engine":
        assert wait_for_family(server.pid, 1)
    if moment == "all processes":
        assert server.stdout.readline().startswith(b"SLIPSTREAM READY")
        assert len(wait_for_family(server.pid, 2)) == 2
    members = [psutil.Process(server.pid), *family(server.pid)]
    for stream in (server.stdin, server.stdout, server.stderr):
        assert stream is not None
        stream.close()
    assert server.wait(60) == ExitCode.OK
    assert left_over(members) == []


def test_a_reader_that_leaves_early_is_no_error_to_talk_about() -> None:
    with started("chat", *ENDLESS, is_forked=True) as child:
        read_some(child)
        members = family(child.pid)
        assert len(members) >= 2, "server and engine"
        assert child.stdout is not None
        child.stdout.close()
        assert child.stderr is not None
        assert child.stderr.read() == b""
        child.wait(60)
        assert left_over(members) == []


def chat_on_a_terminal() -> None:
    import pty

    controller, terminal = pty.openpty()
    with subprocess.Popen(
        forked(command("chat", "--max-tokens", "8")), cwd=ROOT, stdin=terminal, stdout=terminal, stderr=terminal
    ) as child:
        os.close(terminal)
        seen = read_until(controller, b"> ")
        assert b"It is a toy" in seen
        os.write(controller, b"Hello\n")
        assert b"tok/s" in read_until(controller, b"\n> ")
        os.write(controller, b"/quit\n")
        read_until(controller, b"never")
        assert child.wait(60) == 0
    os.close(controller)


def read_until(controller: int, mark: bytes) -> bytes:
    seen = b""
    with contextlib.suppress(OSError):  # how Linux says that the other side is gone
        while mark not in seen and (data := os.read(controller, 4096)):
            seen += data
    return seen


@pytest.mark.slow
def test_a_server_that_runs_is_used_and_named_by_doctor(home: Path) -> None:
    with started("serve", "--port", "0", "--announce", "--api-key", "secret", is_forked=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().decode().removeprefix("SLIPSTREAM READY ").strip()
        with started("chat", *STORY, is_forked=True) as child:
            read_some(child)
            assert family(child.pid) == [], "no server of its own"
            assert child.wait(60) == 0
        (named,) = check_servers()
        assert (named.url, named.model, named.phase) == (url, "ember-q8_0", "ready")
        chat_on_a_terminal()
        other = ran("chat", "-n", "2", "-m", "ember draft", "--json", input="Hi!\n")  # by its title
        assert json.loads(other.stdout)["model"] == "ember-draft-q8_0"
        taken = run("serve", "--port", url.rsplit(":", 1)[1])
        assert taken.returncode == ExitCode.PORT_TAKEN
        assert taken.stderr
        assert run("chat", "hi", "--url", url).returncode == ExitCode.UNREACHABLE  # without the key
        server.terminate()
        server.communicate(timeout=60)
    assert list((home / "runtime" / "servers").iterdir()) == []


def test_folders_that_cannot_be_written_do_not_keep_it_from_answering(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path / "file"))
    done = run("chat", *STORY, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["text"]
