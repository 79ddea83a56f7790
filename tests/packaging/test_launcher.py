from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[2]
APP = ["-m", "app"]


def a_path_without_python(folder: Path, *programs: str) -> str:
    """A PATH on which the shell's usual tools are, and no Python."""
    folder.mkdir()
    for name in ("sh", "sed", "cksum", "cat", "id", "mkdir", "tail", "readlink", *programs):
        found = shutil.which(name)
        if found:
            (folder / name).symlink_to(found)
    return str(folder)


def write_script(file: Path, text: str) -> None:
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


def test_the_first_start_sets_up_and_the_second_does_not(checkout):
    assert checkout.start("chat", "two words").returncode == 0
    assert checkout.start("chat", "two words").returncode == 0
    assert checkout.set_ups == [["--stamp"]]
    assert [call[4:] for call in checkout.calls] == [[*APP, "chat", "two words"]] * 2


@pytest.mark.parametrize(
    "name",
    [
        "pyproject.toml",
        "constraints.txt",
        "packaging/bootstrap.py",
        "packaging/first_start/llama_sources.cmake",
        "packaging/first_start/new.py",
        "packaging/first_start/patches/0001-attention-row-by-row.patch",
    ],
)
def test_a_change_of_what_is_installed_sets_up_again(checkout, name):
    checkout.start()
    with (checkout.folder / name).open("a") as file:
        file.write("\n# another line\n")
    checkout.start()
    checkout.start()
    assert len(checkout.set_ups) == 2


def test_a_moved_folder_sets_up_again(checkout, tmp_path):
    checkout.start()
    elsewhere = type(checkout)(tmp_path / "else where")
    checkout.folder.rename(elsewhere.folder)
    assert elsewhere.start().returncode == 0
    assert len(elsewhere.set_ups) == 2


@pytest.mark.parametrize("lost", ["bin/python", "pyvenv.cfg", ".slipstream-stamp", "its Python"])
def test_a_venv_that_lost_something_is_set_up_again(checkout, lost):
    checkout.start()
    if lost == "its Python":
        config = checkout.folder / ".venv" / "pyvenv.cfg"
        config.write_text(config.read_text().replace("3.12.4", "3.13.0"))
    else:
        (checkout.folder / ".venv" / lost).unlink()
    assert checkout.start().returncode == 0
    assert len(checkout.set_ups) == 2


def test_a_link_to_the_launcher_finds_the_project(checkout, tmp_path):
    (tmp_path / "bin").mkdir()
    first, second = tmp_path / "bin" / "first", tmp_path / "bin" / "slip"
    first.symlink_to("../my projects/slip stream/slipstream")
    second.symlink_to(first)
    assert checkout.start("doctor", launcher=str(second), cwd=tmp_path).returncode == 0
    assert checkout.calls[0][4:] == [*APP, "doctor"]


def test_the_app_is_told_what_was_typed(checkout, tmp_path):
    on_path = tmp_path / "bin"
    on_path.mkdir()
    (on_path / "slip").symlink_to(checkout.folder / "slipstream")
    checkout.start("doctor", launcher="./slipstream")
    checkout.start("doctor", cwd=tmp_path)
    checkout.start("doctor", launcher=str(on_path / "slip"), PATH=f"{on_path}:{os.environ['PATH']}")
    assert checkout.typed == ["./slipstream", str(checkout.folder / "slipstream"), "slip"]


def test_only_the_window_reads_paths_as_qt_does(checkout):
    for arguments in ((), ("desktop", "file"), ("chat",)):
        checkout.start(*arguments, LC_ALL="en_US.ISO-8859-1")
    assert (checkout.folder / "utf8").read_text().split() == ["1", "1", "unset"]


def test_the_app_keeps_the_folder_it_was_started_in_but_takes_no_modules_from_there(checkout, tmp_path):
    checkout.start("chat", cwd=tmp_path, PYTHONPATH="/somewhere")
    folder, python_path, safe_path, *_ = checkout.calls[0]
    assert (folder, python_path, safe_path) == (str(tmp_path), "unset", "1")


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox"])
def test_other_shells_run_it_too(checkout, shell):
    program = shutil.which(shell)
    if not program:
        pytest.skip(f"{shell} is not installed")
    command = [program, "sh"] if shell == "busybox" else [program]
    for _ in range(2):
        done = subprocess.run(
            [*command, "slipstream", "--help"],
            cwd=checkout.folder,
            env={**os.environ, "SLIPSTREAM_PYTHON": sys.executable},
            check=False,
        )
        assert done.returncode == 0
    assert len(checkout.set_ups) == 1


def test_the_set_up_prints_nothing_where_the_commands_output_goes(checkout):
    failed = checkout.start("chat", "--json", STUB_EXIT="3")
    assert failed.returncode == 3
    assert failed.stdout == ""
    assert "the set-up failed" in failed.stderr
    assert checkout.calls == []
    assert checkout.start("chat", FAIL="chat").returncode == 7


def test_setup_sets_up_again_and_starts_nothing(checkout):
    checkout.start()
    assert checkout.start("setup", "--fresh").returncode == 0
    assert checkout.set_ups[-1] == ["--stamp", "--again", "--fresh"]
    assert len(checkout.calls) == 1


def test_the_checks_install_what_they_need_once(checkout):
    checkout.start()
    checkout.start("test", "-q")
    checkout.start("test", "-q")
    checkout.start()
    assert checkout.set_ups == [["--stamp"], ["--stamp", "--dev"]]


def test_a_benchmark_has_the_packages_of_the_checks_and_the_list_does_without(checkout):
    checkout.start("bench")
    checkout.start("bench", "--json")
    checkout.start("bench", "none-of-this-name")
    assert checkout.set_ups == [["--stamp"]]
    (checkout.folder / "benchmarks").mkdir()
    (checkout.folder / "benchmarks" / "engine.py").write_text("")
    checkout.start("bench", "--json", "engine")
    checkout.start("bench", "engine", "--rounds", "3")
    assert checkout.set_ups == [["--stamp"], ["--stamp", "--dev"]]
    assert [call[-2:] for call in checkout.calls][-1] == ["--rounds", "3"]


@pytest.mark.parametrize("more", [(), ("--slow",)])
def test_without_names_every_check_runs(checkout, tmp_path, more):
    done = checkout.start("test", *more, cwd=tmp_path)
    assert done.returncode == 0
    assert [call[4:][1] for call in checkout.calls] == ["ruff", "mypy", "mypy", "app"]
    assert [call[5:] for call in checkout.calls][-1] == ["app", "test", *more]
    assert {(call[0], call[3]) for call in checkout.calls} == {(str(checkout.folder), "offscreen")}
    assert "All checks passed." in done.stdout


@pytest.mark.parametrize(("check", "command"), [("ruff", "ruff"), ("mypy", "mypy"), ("pytest", "-m app test")])
def test_a_failing_check_is_named_and_the_others_still_run(checkout, check, command):
    done = checkout.start("test", FAIL=command)
    assert done.returncode == 1
    assert f"Failed: {check}" in done.stdout
    assert len(checkout.calls) == 4


def test_with_arguments_pytest_alone_runs(checkout):
    done = checkout.start("test", "tests/core", "-k", "a or b", FAIL="tests/core")
    assert done.returncode == 7
    assert [call[4:] for call in checkout.calls] == [["-m", "pytest", "tests/core", "-k", "a or b"]]


def test_the_help_of_the_checks_needs_nothing_of_theirs(checkout):
    checkout.start("test", "--help")
    checkout.start("test", "-h")
    assert checkout.set_ups == [["--stamp"]]
    assert [call[4:] for call in checkout.calls] == [[*APP, "test", "--help"], [*APP, "test", "-h"]]


def test_a_python_that_is_too_old_is_refused(checkout, tmp_path):
    old = tmp_path / "python3"
    write_script(old, "exit 1")
    done = checkout.start(SLIPSTREAM_PYTHON=str(old))
    assert done.returncode == 1
    assert "not a Python 3.11 or newer" in done.stderr


def test_without_python_and_rights_it_prints_the_command_to_type(checkout, tmp_path):
    path = a_path_without_python(tmp_path / "bin")
    for name in ("apt-get", "apt-cache", "sudo"):
        write_script(tmp_path / "bin" / name, "exit 0")
    (tmp_path / "bin" / "id").unlink()
    write_script(tmp_path / "bin" / "id", "echo 1000")
    done = checkout.start(SLIPSTREAM_PYTHON="", PATH=path)
    assert done.returncode == 3
    assert "sudo apt-get update && sudo apt-get install -y --no-install-recommends python3 python3-venv" in done.stderr
    assert " gcc g++ libglib2.0-0 " in done.stderr


def test_without_python_and_apt_it_says_what_is_needed(checkout, tmp_path):
    done = checkout.start(SLIPSTREAM_PYTHON="", PATH=a_path_without_python(tmp_path / "bin"))
    assert done.returncode == 3
    assert "needs Python 3.11 or newer" in done.stderr


def test_root_gets_python_from_apt(checkout, tmp_path):
    path = a_path_without_python(tmp_path / "bin", "flock")
    write_script(tmp_path / "bin" / "dpkg", "exit 0")
    write_script(tmp_path / "bin" / "apt-cache", 'echo "  Candidate: 3.11.2-1+b1"')
    # Installing python3 is what makes it appear.
    write_script(
        tmp_path / "bin" / "apt-get",
        f'echo "$*" >>"{tmp_path}/apt"; case "$1" in install) {shutil.which("ln")} -sf "{sys.executable}" '
        f'"{tmp_path}/bin/python3";; esac',
    )
    (tmp_path / "bin" / "id").unlink()
    write_script(tmp_path / "bin" / "id", "echo 0")
    done = checkout.start("chat", SLIPSTREAM_PYTHON="", PATH=path)
    assert done.returncode == 0, done.stderr
    assert "python3 python3-venv" in (tmp_path / "apt").read_text()
    assert checkout.calls[0][4:] == [*APP, "chat"]


def test_an_older_distribution_gets_the_newest_python_beside_its_own(checkout, tmp_path):
    path = a_path_without_python(tmp_path / "bin")
    write_script(tmp_path / "bin" / "apt-get", "exit 0")
    write_script(
        tmp_path / "bin" / "apt-cache",
        'case "$2" in python3) echo "  Candidate: 3.10.6-1";; python3.12) echo "  Candidate: 3.12.1-1";; esac',
    )
    (tmp_path / "bin" / "id").unlink()
    write_script(tmp_path / "bin" / "id", "echo 1000")
    done = checkout.start(SLIPSTREAM_PYTHON="", PATH=path)
    assert "python3.12 python3.12-venv gcc" in done.stderr


@pytest.mark.parametrize("user", [1000, 0])
def test_a_distribution_whose_pythons_are_all_too_old_is_told_so_and_nothing_is_installed(checkout, tmp_path, user):
    path = a_path_without_python(tmp_path / "bin", "flock")
    for name in ("apt-get", "dpkg"):
        write_script(tmp_path / "bin" / name, f'echo "$*" >>"{tmp_path}/apt"')
    write_script(tmp_path / "bin" / "apt-cache", 'case "$2" in python3) echo "  Candidate: 3.9.2-3";; esac')
    (tmp_path / "bin" / "id").unlink()
    write_script(tmp_path / "bin" / "id", f"echo {user}")
    done = checkout.start(SLIPSTREAM_PYTHON="", PATH=path)
    assert done.returncode == 3
    assert "needs Python 3.11 or newer" in done.stderr
    assert "SLIPSTREAM_PYTHON=FILE" in done.stderr
    assert "apt-get install" not in done.stderr
    calls = (tmp_path / "apt").read_text().split() if (tmp_path / "apt").exists() else []
    assert "install" not in calls


def test_many_starts_at_once_all_work(checkout):
    checkout.start()
    with ThreadPoolExecutor(8) as pool:
        codes = list(pool.map(lambda number: checkout.start("chat", str(number)).returncode, range(16)))
    assert codes == [0] * 16
    assert len(checkout.set_ups) == 1


def test_the_check_of_the_stamp_starts_no_python_and_only_few_programs(checkout, tmp_path):
    checkout.start()
    path = a_path_without_python(tmp_path / "bin")
    for name in ("sed", "cksum"):
        program = tmp_path / "bin" / name
        target = program.resolve()
        program.unlink()
        write_script(program, f'echo {name} >>"{tmp_path}/started"; exec {target} "$@"')
    assert checkout.start("chat", PATH=path).returncode == 0
    assert sorted((tmp_path / "started").read_text().split()) in (["cksum"], ["cksum", "sed"])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells a process that its parent died")
def test_a_launcher_that_is_killed_takes_the_set_up_with_it(checkout):
    packaging, pid = checkout.folder / "packaging", checkout.folder / "pid"
    shutil.copytree(ROOT / "packaging", packaging, dirs_exist_ok=True)
    real, guard = (packaging / "bootstrap.py").read_text(), 'if __name__ == "__main__":'
    endless = f"open({str(pid)!r}, 'w').write(str(os.getpid()))\n    import time\n    time.sleep(60)"
    (packaging / "bootstrap.py").write_text(real.replace(guard, f"def set_up(root, wish):\n    {endless}\n\n\n{guard}"))
    child = subprocess.Popen(
        [str(checkout.folder / "slipstream"), "chat"],
        env={**os.environ, "SLIPSTREAM_PYTHON": sys.executable},
        stderr=subprocess.PIPE,
        text=True,
    )
    until(lambda: pid.exists() and pid.read_text())
    child.terminate()
    assert "goes on where it stopped" in child.communicate(timeout=60)[1]
    until(lambda: not Path(f"/proc/{pid.read_text()}").exists())


def test_ctrl_c_in_the_set_up_ends_the_launcher(checkout):
    slow = (checkout.folder / "packaging" / "bootstrap.py").read_text()
    begun = checkout.folder / "begun"
    (checkout.folder / "packaging" / "bootstrap.py").write_text(
        f"import pathlib, time\ntry:\n    pathlib.Path({str(begun)!r}).touch()\n"
        f"    time.sleep(60)\nexcept KeyboardInterrupt:\n    raise SystemExit(130)\n{slow}"
    )
    child = subprocess.Popen(
        [str(checkout.folder / "slipstream"), "chat"],
        env={**os.environ, "SLIPSTREAM_PYTHON": sys.executable},
        start_new_session=True,
    )
    until(begun.exists)
    os.killpg(child.pid, signal.SIGINT)
    assert child.wait(60) in (130, -signal.SIGINT)
    assert checkout.calls == []
