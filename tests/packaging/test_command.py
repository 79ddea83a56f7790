from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from first_start import lock
from first_start.advice import advise
from first_start.command import Log, run_logged
from first_start.errors import CommandFailed

from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[2]


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


@pytest.fixture
def log(tmp_path: Path):
    with Log(tmp_path / "log") as opened:
        yield opened


def test_output_reaches_the_log_and_the_listener_line_by_line(log):
    lines: list[str] = []
    run_logged("It", python("import sys; print('one'); print('two', file=sys.stderr)"), log, on_line=lines.append)
    assert sorted(line.strip() for line in lines) == ["one", "two"]
    assert {"one", "two"} <= set(log.path.read_text().splitlines())
    run_logged("It", python(r"import sys; sys.stdout.buffer.write(b'\xff\xfe\n')"), log)


def test_a_failure_holds_the_last_lines_and_the_code(log):
    with pytest.raises(CommandFailed, match=r"The step failed \(exit code 4\)") as failure:
        run_logged("The step", python("for i in range(40): print(i)\nraise SystemExit(4)"), log)
    assert failure.value.tail == tuple(str(number) for number in range(25, 40))
    with pytest.raises(CommandFailed, match="exit code 127"):
        run_logged("It", ["/nowhere/program"], log)


def test_the_clock_ticks_while_a_command_is_silent(tmp_path):
    enough, ticks = tmp_path / "enough", []

    def tick() -> None:
        ticks.append(len(ticks))
        if len(ticks) == 3:
            enough.touch()

    silent = f"import pathlib, time\nwhile not pathlib.Path({str(enough)!r}).exists(): time.sleep(0.01)"
    with Log(tmp_path / "log", tick) as log:
        run_logged("It", python(silent), log)
    assert len(ticks) >= 3


def test_an_interruption_ends_the_command_and_what_it_started(log, tmp_path):
    pid_file = tmp_path / "pid"
    grandchild = f"import os, time; open({str(pid_file)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    child = f"import subprocess, sys; print('on', flush=True); subprocess.run([sys.executable, '-c', {grandchild!r}])"

    def interrupt(line: str) -> None:
        until(lambda: pid_file.exists() and pid_file.read_text())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_logged("It", python(child), log, on_line=interrupt)
    until(lambda: not is_alive(int(pid_file.read_text())))


def test_pip_can_tidy_up_when_it_is_interrupted_also_in_a_set_up_in_the_background(log, tmp_path):
    child = (
        "import pathlib, time\n"
        "try:\n    print('on', flush=True)\n    time.sleep(60)\n"
        f"finally:\n    pathlib.Path({str(tmp_path / 'tidied')!r}).touch()"
    )

    def interrupt(line: str) -> None:
        raise KeyboardInterrupt

    usual = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_logged("It", python(child), log, on_line=interrupt)
    finally:
        signal.signal(signal.SIGINT, usual)
    assert (tmp_path / "tidied").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has died")
def test_a_set_up_that_is_killed_takes_its_command_with_it(tmp_path):
    child = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    code = (
        "import pathlib\nfrom first_start.command import Log, run_logged\n"
        f"with Log(pathlib.Path({str(tmp_path / 'log')!r})) as log:\n"
        f"    run_logged('It', {python(child)!r}, log, on_line=lambda line: print(line, end='', flush=True))"
    )
    with subprocess.Popen(python(code), stdout=subprocess.PIPE, cwd=ROOT / "packaging") as set_up:
        assert set_up.stdout is not None
        pid = int(set_up.stdout.readline())
        set_up.kill()
    until(lambda: not is_alive(pid))


def is_alive(pid: int) -> bool:
    """Whether a process still runs; one that has ended and waits to be collected does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not (state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z")


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("OSError: [Errno 28] No space left on device", "disk is full"),
        ("g++: fatal error: Killed signal terminated program cc1plus", "CMAKE_BUILD_PARALLEL_LEVEL=1"),
        ("Temporary failure in name resolution", "network did not answer"),
        ("SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED]'))", "global.cert"),
        ("ERROR: No matching distribution found for PySide6-Essentials==6.11.3", "another Python"),
        ("nvcc fatal : Unsupported gpu architecture 'compute_120'", "GGML_CUDA=off"),
        ("stdio.h: fatal error: stdio.h: No such file", "gcc and g++"),
        ("CMake Error: CMAKE_C_COMPILER not set, after EnableLanguage", "where CC or CXX names another, unset it"),
        ("something else", "Start Slipstream again"),
    ],
)
def test_a_failure_comes_with_what_to_do(line, advice):
    said = advise(("before", line, "after"))
    assert advice in said
    assert "SLIPSTREAM_PYTHON=python{}.{} ".format(*sys.version_info) not in said


def test_the_lock_makes_the_second_wait_and_dies_with_its_holder(tmp_path):
    file = tmp_path / ".venv" / "lock"
    code = (
        "import sys, time; sys.path.insert(0, sys.argv[1]); from pathlib import Path\n"
        "from first_start import lock\n"
        "with lock.hold(Path(sys.argv[2]), lambda: None): print('held', flush=True); time.sleep(60)"
    )
    folder = Path(lock.__file__).parent.parent
    holder = subprocess.Popen([*python(code), str(folder), str(file)], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    waits: list[str] = []

    def on_wait() -> None:
        waits.append("waits")
        holder.kill()

    with lock.hold(file, on_wait):
        assert waits == ["waits"]
    holder.wait()
    holder.stdout.close()


def test_a_lock_whose_file_was_deleted_meanwhile_is_taken_anew(tmp_path):
    file = tmp_path / "lock"
    with lock.hold(file, lambda: pytest.fail("waited")):
        file.unlink()
        with lock.hold(file, lambda: pytest.fail("waited")):
            assert file.exists()
