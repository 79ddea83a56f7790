"""The command as a user has it: real processes, the real server and engine, kills at any moment."""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from app.environment.exit_codes import ExitCode
from tests.app.conftest import Typed
from tests.support import commands, measured
from tests.support.commands import ROOT, command, ran
from tests.support.fork_server import forked
from tests.support.waiting import until

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="signals and limits of POSIX"),
    pytest.mark.usefixtures("home"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """A server with four slots; gives the options by which a batch finds it."""
    folder = tmp_path_factory.mktemp("home")
    measured.give(folder / "cache")
    home = {"SLIPSTREAM_HOME": str(folder), "SLIPSTREAM_API_KEY": "secret"}
    with subprocess.Popen(
        forked(command("serve", "--port", "0", "--announce", "--parallel", "4")),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **home},
    ) as child:
        assert child.stdout is not None
        url = child.stdout.readline().decode().removeprefix("SLIPSTREAM READY ").strip()
        yield ["--url", url, "--api-key", "secret"]
        child.terminate()


def write_input(path: Path, n_lines: int, **body: Any) -> None:
    path.write_text(
        "".join(input_line(f"r{number}", f"Once there were {number} foxes", **body) for number in range(n_lines))
    )


def input_line(custom_id: str, prompt: str, **body: Any) -> str:
    asked = {"prompt": prompt, "max_tokens": 3, "temperature": 0, "ignore_eos": True} | body
    line = {"custom_id": custom_id, "method": "POST", "url": "/v1/completions", "body": asked}
    return json.dumps(line) + "\n"


def started(folder: Path, *words: str, is_forked: bool = True) -> subprocess.Popen[str]:
    files, none = (str(folder / "in"), str(folder / "out")), subprocess.DEVNULL
    return commands.started("batch", *files, *words, is_forked=is_forked, stdin=none)


def run(folder: Path, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return ran("batch", str(folder / "in"), str(folder / "out"), *words, stdin=subprocess.DEVNULL, **more)


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "out").read_text().splitlines()]


def n_whole(folder: Path) -> int:
    with contextlib.suppress(FileNotFoundError):
        return (folder / "out").read_bytes().count(b"\n")
    return 0


def wait_for_lines(folder: Path, child: subprocess.Popen[str], n_lines: int) -> None:
    until(lambda: n_whole(folder) >= n_lines or child.poll() is not None, pause=0.01)


def test_a_hundred_lines_survive_kills_at_any_moment(tmp_path: Path, server: list[str]) -> None:
    write_input(tmp_path / "in", 100)
    moments = random.Random(7)
    n_before = 0
    for n_more in (0, 1, 15):
        with started(tmp_path, *server) as child:
            wait_for_lines(tmp_path, child, n_before + n_more)
            time.sleep(moments.random() * (0.2 if not n_more else 0.05))
            child.kill()
            child.wait()
        assert n_whole(tmp_path) >= n_before, "what is finished stays"
        n_before = n_whole(tmp_path)
    last = run(tmp_path, *server, "--json")
    assert last.returncode == 0, last.stderr
    found = records(tmp_path)
    assert sorted(record["custom_id"] for record in found) == sorted(f"r{number}" for number in range(100))
    assert all(record["response"]["status_code"] == 200 for record in found)
    summary = json.loads(last.stdout)
    assert (summary["lines"], summary["done"], summary["left"]) == (100, 100, 0)
    assert summary["completion_tokens"] == 300
    assert 0 < n_before < 100, "the kills came in the middle"


def test_a_server_is_started_for_the_call_and_leaves_with_it(tmp_path: Path) -> None:
    write_input(tmp_path / "in", 3)
    (tmp_path / "in").write_text((tmp_path / "in").read_text() + "nonsense\n")
    done = run(tmp_path)
    assert done.returncode == ExitCode.LINES_FAILED, done.stderr
    assert done.stdout == ""
    assert "3 of 4 lines done · 1 failed (invalid_json 1)" in done.stderr
    again = run(tmp_path, "--json", "-q")
    assert (again.returncode, again.stderr) == (ExitCode.LINES_FAILED, "")
    assert json.loads(again.stdout)["errors"] == {"invalid_json": 1}


@pytest.mark.slow
def test_kill_9_takes_the_own_server_along_and_nothing_is_lost(tmp_path: Path, server: list[str]) -> None:
    write_input(tmp_path / "in", 12, max_tokens=40)
    with started(tmp_path, "--max-parallel", "2", is_forked=False) as child:
        wait_for_lines(tmp_path, child, 2)
        child.send_signal(signal.SIGSTOP)
        members = psutil.Process(child.pid).children(recursive=True)
        child.kill()
        assert psutil.wait_procs(members, timeout=60)[1] == []
    assert 2 <= n_whole(tmp_path) < 12
    assert run(tmp_path, *server).returncode == 0
    assert {record["custom_id"] for record in records(tmp_path)} == {f"r{number}" for number in range(12)}


def test_ctrl_c_stops_and_says_how_to_go_on(tmp_path: Path, server: list[str]) -> None:
    write_input(tmp_path / "in", 100, max_tokens=60)
    with started(tmp_path, *server) as child:
        wait_for_lines(tmp_path, child, 1)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (ExitCode.INTERRUPTED, "")
    assert err.startswith("Stopped.\n")
    assert "of 100 lines done" in err
    assert err.endswith("Run the same command again to go on with the rest.\n")
    assert all(record["response"]["status_code"] == 200 for record in records(tmp_path))


def test_the_same_output_is_not_written_twice_at_once(tmp_path: Path, server: list[str]) -> None:
    write_input(tmp_path / "in", 60, max_tokens=60)
    with started(tmp_path, *server, is_forked=False) as child:
        wait_for_lines(tmp_path, child, 1)
        child.send_signal(signal.SIGSTOP)  # it is not done before the second comes
        second = run(tmp_path, *server)
        assert second.returncode == ExitCode.USAGE
        assert f"out is being written by process {child.pid}. Wait" in second.stderr
        child.kill()
    assert len({record["custom_id"] for record in records(tmp_path)}) == len(records(tmp_path))


def test_an_engine_that_dies_loses_no_line(tmp_path: Path, server: list[str]) -> None:
    write_input(tmp_path / "in", 40, max_tokens=20)
    with started(tmp_path, *server, "--json") as child:
        ours = psutil.Process().children(recursive=True)
        engine = next(one for one in ours if "core.loading.worker" in " ".join(one.cmdline()))
        wait_for_lines(tmp_path, child, 3)
        engine.kill()
        out, err = child.communicate(timeout=100)
    assert child.returncode == 0, err
    assert json.loads(out)["done"] == 40
    assert len({record["custom_id"] for record in records(tmp_path)}) == 40


def test_an_empty_input_needs_no_server(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("")
    done = run(tmp_path, "--url", "http://127.0.0.1:9", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["lines"] == 0


def test_a_huge_line_is_reported_and_the_rest_runs(tmp_path: Path, server: list[str]) -> None:
    write_input(tmp_path / "in", 2)
    with (tmp_path / "in").open("a") as file:
        file.write(input_line("large", "x" * 9_000_000) + f'{{"custom_id": "{"y" * 17_000_000}"}}\n')
    done = run(tmp_path, *server)
    assert done.returncode == ExitCode.LINES_FAILED
    assert "2 of 4 lines done · 2 failed" in done.stderr
    found = {record["custom_id"]: record for record in records(tmp_path)}
    assert found["large"]["response"]["status_code"] == 400
    assert found[None]["error"]["code"] == "line_too_long"


def test_a_full_disk_stops_the_batch_and_loses_nothing(tmp_path: Path, server: list[str]) -> None:
    write_input(tmp_path / "in", 30)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (6_000, 6_000))

    done = run(tmp_path, *server, is_forked=False, preexec_fn=limit)
    assert done.returncode == ExitCode.ERROR
    assert "out cannot be written: File too large." in done.stderr
    assert "Run the same command again" in done.stderr
    assert 0 < len(records(tmp_path)) < 30
    assert run(tmp_path, *server).returncode == 0
    assert {record["custom_id"] for record in records(tmp_path)} == {f"r{number}" for number in range(30)}


def test_files_that_cannot_be_used_are_refused(typed: Typed, tmp_path: Path) -> None:
    write_input(tmp_path / "in", 1)
    unknown = run(tmp_path, "-m", "nobody")
    assert (unknown.returncode, (tmp_path / "out").exists()) == (ExitCode.MODEL, False), unknown.stderr
    assert unknown.stderr.startswith("Error: There is no model called 'nobody'.")
    assert len(unknown.stderr.splitlines()) == 1, "nothing is said of an output that is not there"
    (tmp_path / "out").symlink_to(tmp_path / "in")
    # In this process, where a file that is left open is noticed.
    code, _, err = typed("batch", str(tmp_path / "in"), str(tmp_path / "out"))
    assert (code, "IN and OUT are the same file" in err) == (ExitCode.USAGE, True)
    (tmp_path / "out").unlink()
    (tmp_path / "out").write_text("something else\n")
    to_stdout = ran("batch", str(tmp_path / "in"), "-")
    assert (to_stdout.returncode, "OUT must be a file" in to_stdout.stderr) == (ExitCode.USAGE, True)
    assert typed("batch", str(tmp_path / "in"), str(tmp_path / "out"))[0] == ExitCode.USAGE
    assert (tmp_path / "out").read_text() == "something else\n"
    (tmp_path / "in").unlink()
    assert "No such file" in run(tmp_path).stderr


def test_what_is_piped_in_is_run_and_resumed(tmp_path: Path, server: list[str]) -> None:
    write_input(tmp_path / "in", 4)
    lines = (tmp_path / "in").read_text().splitlines(keepends=True)
    for n_lines in (2, 4):
        piped = "".join(lines[:n_lines])
        assert ran("batch", "-", str(tmp_path / "out"), *server, input=piped).returncode == 0
        assert len(records(tmp_path)) == n_lines


def test_a_batch_on_a_terminal_has_a_bar(tmp_path: Path, server: list[str]) -> None:
    import pty

    write_input(tmp_path / "in", 6)
    controller, terminal = pty.openpty()
    with subprocess.Popen(
        forked(command("batch", str(tmp_path / "in"), str(tmp_path / "out"), *server)),
        cwd=ROOT, stdin=terminal, stdout=terminal, stderr=terminal, env={**os.environ, "TERM": "xterm"},
    ) as child:  # fmt: skip
        os.close(terminal)
        seen = b""
        with contextlib.suppress(OSError):  # how Linux says that the other side is gone
            while data := os.read(controller, 4096):
                seen += data
        assert child.wait(60) == 0
    os.close(controller)
    assert "━" in seen.decode()
    assert "6 of 6 lines done" in seen.decode()
