"""``slipstream worker``: what it prints, whom it lets in, and how others see it."""

from __future__ import annotations

import io
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest

from app.environment.exit_codes import ExitCode
from app.environment.paths import config_folder
from app.fit_reports.fit_reports import current_machine
from app.settings.worker_tokens import VARIABLE, named_workers, own_token, tokens_for
from core.remote_devices.borrowing import look
from core.values.errors import BadOption
from tests.app.conftest import Typed
from tests.support.commands import command
from tests.support.disks import failing_disk, fill_up, small_disk
from tests.support.fork_server import forked
from tests.support.lending import TOKEN, TestWorker

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture(scope="module")
def worker() -> Iterator[TestWorker]:
    made = TestWorker()
    yield made
    made.close()


def test_a_worker_prints_address_and_token_once_and_ends_with_ctrl_c(home: Path) -> None:
    for is_first in (True, False):
        with subprocess.Popen(
            forked(command("worker", "--port", "0", "--device", "CPU", "--memory", "0.5")),
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(4)]  # stderr may say that no speed is known
            address = lines[0].split()[-1]
            token, file, is_new = own_token(None)
            assert (token in lines[2], is_new) == (is_first, False)
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            (device,) = look(address, token).devices
            assert (device.name, device.total) == ("CPU", 1 << 29)
            process.send_signal(signal.SIGINT)
            assert "The devices are this machine's own again." in process.stdout.read()
        assert process.returncode == ExitCode.OK


def test_what_cannot_be_lent_or_reached_is_told(typed: Typed) -> None:
    code, _, err = typed("worker", "--port", "0", "--device", "CUDA7")
    assert code == ExitCode.USAGE
    assert "There is no device called 'CUDA7' (--device). This machine has CPU" in err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, err = typed("worker", "--port", str(port), "--device", "CPU")
    assert (code, f"Port {port} is taken by" in err) == (ExitCode.PORT_TAKEN, True)
    for gib in ("nan", "inf", "0", "-1"):
        code, _, err = typed("worker", "--port", "0", "--device", "CPU", "--memory", gib)
        assert (code, "--memory takes GiB above 0" in err) == (ExitCode.USAGE, True)
    code, _, err = typed("worker", "--host", "/tmp/a.socket", "--device", "CPU")
    assert (code, "an address of the network, not on /tmp/a.socket" in err) == (ExitCode.USAGE, True)
    code, _, err = typed("models", "show", "ember-q8_0", "--device", "rpc://127.0.0.1:1")
    assert (code, "cannot be reached" in err) == (ExitCode.UNREACHABLE, True)


def test_a_model_is_judged_with_the_memory_of_a_worker(
    worker: TestWorker, monkeypatch: pytest.MonkeyPatch, typed: Typed
) -> None:
    monkeypatch.setenv(VARIABLE, TOKEN)
    here = current_machine(named_workers([worker.address])).machine
    (lent,) = [here.devices[number] for number in here.gpus if here.devices[number].lent is not None]
    assert (lent.name, lent.free, lent.is_processor) == (f"{worker.address}/CPU", 1 << 29, True)
    code, out, _ = typed("models", "show", "ember-q8_0", "--device", worker.address)
    assert (code, "fits" in out) == (ExitCode.OK, True)


def test_a_token_that_was_tried_is_remembered_in_the_keyring(
    worker: TestWorker, monkeypatch: pytest.MonkeyPatch, typed: Typed
) -> None:
    kept: dict[tuple[str, str], str] = {}
    monkeypatch.setattr(keyring, "set_password", lambda service, name, secret: kept.update({(service, name): secret}))
    monkeypatch.setattr(keyring, "get_password", lambda service, name: kept.get((service, name)))
    monkeypatch.setattr(sys, "stdin", io.StringIO("a wrong token that is no text: \udcff\n"))
    code, _, err = typed("worker", "--remember", "nonsense")
    assert (code, "rpc://HOST:PORT" in err, sys.stdin.tell()) == (ExitCode.USAGE, True, 0), "no token was asked for"
    assert typed("worker", "--remember", worker.address)[0] == ExitCode.UNREACHABLE
    assert not kept
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{TOKEN}\n"))
    assert "Its token is in the system's keyring." in typed("worker", "--remember", worker.address)[1]
    assert tokens_for(["CUDA0", worker.address]) == ((worker.address, TOKEN),)
    workers = config_folder() / "workers.json"
    workers.unlink()
    workers.mkdir()  # what cannot be read as a file
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{TOKEN}\n"))
    code, _, err = typed("worker", "--remember", worker.address)
    assert (code, f"{workers} cannot be read" in err) == (ExitCode.ERROR, True)


def test_a_token_comes_from_a_file_before_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "from the environment")
    file = tmp_path / "token"
    with pytest.raises(BadOption, match="cannot be read"):
        tokens_for(["rpc://a:1"], file)
    file.write_text("short\n")
    with pytest.raises(BadOption, match="at least 16 characters"):
        tokens_for(["rpc://a:1"], file)
    file.write_text("from a file of the user's\n")
    assert tokens_for(["rpc://a:1"], file) == (("rpc://a:1", "from a file of the user's"),)
    assert tokens_for(["rpc://a:1"]) == (("rpc://a:1", "from the environment"),)


def test_a_token_that_could_not_be_written_leaves_no_empty_file_and_one_that_is_none_is_refused(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1 << 20) as disk:
        fill_up(disk / "full")
        with pytest.raises(BadOption, match="No space left on device"):
            own_token(disk / "token")
        (disk / "full").unlink()
        assert own_token(disk / "token")[2], "it is made now"
    token, file, _ = own_token(None)
    with failing_disk(file), pytest.raises(BadOption, match="Input/output error"):
        own_token(None)
    assert own_token(None) == (token, file, False), "no other takes its place"
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff" * 40)
    for path, reason in ((tmp_path, "Is a directory"), (binary, "it is no text")):
        with pytest.raises(BadOption, match=rf"read from {path}: {reason}\.$"):
            own_token(path)
