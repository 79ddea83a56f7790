from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from app.client import server_process
from app.client.discovery import is_alive
from app.client.server_process import ServerProcess, ServerStartFailed
from app.environment.exit_codes import ExitCode
from models.formatting.program import PROGRAM_FOLDER
from tests.support.waiting import until

FAKE = Path(__file__).resolve().parents[2] / "tools" / "stand_ins" / "fake_openai.py"


@pytest.fixture(autouse=True)
def _fake_server(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_process, "serve_command", lambda options=(): [sys.executable, str(FAKE), *options])


def test_it_listens_and_ends_with_the_block() -> None:
    with ServerProcess() as process:
        assert process.wait_listening().startswith("http://127.0.0.1:")
        assert process.exit_code is None
    assert process.exit_code == 0
    assert not is_alive(process.pid)


@pytest.mark.parametrize(
    ("program", "said", "code"),
    [
        ("print('the disk is gone', file=sys.stderr); sys.exit(1)", "the disk is gone", ExitCode.ERROR),
        ("print('No such model.', file=sys.stderr); sys.exit(6)", "No such model", ExitCode.MODEL),
        ("sys.stdin.read()", "did not start within", ExitCode.ERROR),
    ],
)
def test_a_server_that_dies_at_once_or_is_silent_says_why(
    monkeypatch: pytest.MonkeyPatch, program: str, said: str, code: ExitCode
) -> None:
    command = [sys.executable, "-c", f"import sys; {program}"]
    monkeypatch.setattr(server_process, "serve_command", lambda options=(): command)
    with ServerProcess() as process, pytest.raises(ServerStartFailed, match=said) as caught:
        process.wait_listening(**({"timeout": 0.1} if "start" in said else {}))
    assert caught.value.exit_code is code
    assert not is_alive(process.pid)


def test_a_server_that_will_not_leave_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_process, "_GRACE_SECONDS", 0.3)
    ready = "print('SLIPSTREAM READY http://127.0.0.1:1/', flush=True)"
    stubborn = f"import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); {ready}; time.sleep(100)"
    monkeypatch.setattr(server_process, "serve_command", lambda options=(): [sys.executable, "-c", stubborn])
    process = ServerProcess()
    process.wait_listening()
    process.stop()
    assert process.exit_code == -signal.SIGKILL


def test_a_server_that_talks_a_lot_is_not_blocked(monkeypatch: pytest.MonkeyPatch) -> None:
    noisy = "import sys; [print('x' * 1000, file=f) for _ in range(300) for f in (sys.stdout, sys.stderr)]"
    command = [sys.executable, "-c", f"{noisy}; print('SLIPSTREAM READY http://127.0.0.1:1/', flush=True)"]
    monkeypatch.setattr(server_process, "serve_command", lambda options=(): command)
    with ServerProcess() as process:
        assert process.wait_listening() == "http://127.0.0.1:1"


def test_it_dies_with_a_caller_that_is_killed() -> None:
    caller = (
        "import sys, time\n"
        "from app.client import server_process\n"
        f"server_process.serve_command = lambda options=(): [sys.executable, {str(FAKE)!r}]\n"
        "process = server_process.ServerProcess()\n"
        "process.wait_listening()\n"
        "print(process.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", caller], stdout=subprocess.PIPE, text=True, cwd=PROGRAM_FOLDER
    ) as child:
        assert child.stdout is not None
        pid = int(child.stdout.readline())
        assert is_alive(pid)
        child.kill()
        child.wait()
    until(lambda: not is_alive(pid))


def test_the_key_travels_by_the_environment_only() -> None:
    key = server_process.new_api_key()
    environment = server_process.serve_environment(key)
    assert environment[server_process.API_KEY_VARIABLE] == key
    assert environment[server_process.UNLISTED_VARIABLE]
    assert server_process.UNLISTED_VARIABLE not in server_process.serve_environment(key, listed=True)
    assert key not in " ".join(server_process.serve_command())
    assert len({server_process.new_api_key() for _ in range(10)}) == 10
    assert os.environ.get(server_process.API_KEY_VARIABLE) is None
