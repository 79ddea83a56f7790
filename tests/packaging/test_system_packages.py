from __future__ import annotations

import os
from pathlib import Path

import pytest
from first_start import system_packages
from first_start.errors import CommandFailed, PackagesMissing, SetupError
from first_start.system_packages import Need, command_to_type, ensure_checks, is_there, missing, parse_needs, read_needs

ROOT = Path(__file__).resolve().parents[2]

GCC = Need("program", "gcc", "gcc")
CURSOR = Need("library", "libxcb-cursor.so.0", "libxcb-cursor0")


def tools(*names: str):
    return lambda name: name in names


@pytest.fixture
def on_linux(monkeypatch):
    monkeypatch.setattr(system_packages.platform, "system", lambda: "Linux")
    monkeypatch.delenv("SLIPSTREAM_SKIP_PACKAGES", raising=False)


def test_the_list_is_read_and_asks_for_compilers_and_qts_libraries():
    assert parse_needs(
        "# kind name package\n\nprogram gcc gcc\n  # x\nlibrary libxcb-cursor.so.0 libxcb-cursor0\n"
    ) == (GCC, CURSOR)
    packages = {need.package for need in read_needs(ROOT)}
    assert {"gcc", "g++", "libegl1", "libxcb-cursor0", "libwayland-cursor0", "libgssapi-krb5-2"} <= packages
    assert any(package.endswith("-venv") for package in packages)
    assert {"xvfb", "xdotool"}.isdisjoint(need.package for need in read_needs(ROOT))
    assert is_there(Need("library", "libc.so.6", "libc6"))
    assert not is_there(Need("library", "libnowhere.so.9", "libnowhere9"))


def test_clang_stands_in_for_gcc(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    assert not is_there(GCC)
    (tmp_path / "clang").touch(0o755)
    assert is_there(GCC)


def test_the_command_to_type_is_exact(monkeypatch):
    assert (
        "sudo apt-get update && sudo apt-get install -y --no-install-recommends gcc libxcb-cursor0\n"
        in command_to_type((GCC, CURSOR), tools("apt-get", "sudo"))
    )
    assert (
        "su -c 'apt-get update && apt-get install -y --no-install-recommends gcc libxcb-cursor0'\n"
        in command_to_type((GCC, CURSOR), tools("apt-get"))
    )
    assert "sudo dnf install -y /usr/bin/gcc 'libxcb-cursor.so.0()(64bit)'" in command_to_type(
        (GCC, CURSOR), tools("dnf")
    )
    assert command_to_type((GCC, CURSOR), tools()).endswith(": gcc, libxcb-cursor.so.0")
    monkeypatch.setattr(system_packages.platform, "system", lambda: "Darwin")
    assert missing((GCC, CURSOR), lambda need: False) == (GCC,)
    assert "xcode-select --install" in command_to_type((GCC,), tools())


def test_who_is_not_root_is_told_and_nothing_is_run(monkeypatch, on_linux):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(system_packages, "is_there", lambda need: need != CURSOR)
    monkeypatch.setattr(system_packages, "run_logged", lambda *_: pytest.fail("ran a command"))
    monkeypatch.setattr(system_packages, "missing", lambda needs: (CURSOR,))
    with pytest.raises(PackagesMissing, match="libxcb-cursor") as stopped:
        system_packages.ensure((GCC, CURSOR), None, lambda line: None)
    assert stopped.value.exit_code == 3
    assert "whoever administers this machine" in str(stopped.value)
    assert "SLIPSTREAM_SKIP_PACKAGES=1" in str(stopped.value)


def test_who_lacks_a_compiler_is_promised_nothing_that_cannot_work(monkeypatch, on_linux):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(system_packages, "missing", lambda needs: (GCC, CURSOR))
    with pytest.raises(PackagesMissing, match="CC=FILE") as stopped:
        system_packages.ensure((), None, lambda line: None)
    assert "SKIP" not in str(stopped.value)


def test_who_wants_to_can_go_on_without(monkeypatch, on_linux):
    monkeypatch.setenv("SLIPSTREAM_SKIP_PACKAGES", "1")
    monkeypatch.setattr(system_packages, "missing", lambda needs: (CURSOR,))
    assert "libxcb-cursor.so.0" in system_packages.ensure((CURSOR,), None, lambda line: None)


def test_without_the_module_that_makes_venvs_there_is_no_going_on(monkeypatch, on_linux):
    monkeypatch.setenv("SLIPSTREAM_SKIP_PACKAGES", "1")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(system_packages, "missing", lambda needs: (Need("module", "ensurepip", "python3.11-venv"),))
    with pytest.raises(PackagesMissing) as stopped:
        system_packages.ensure((), None, lambda line: None)
    assert "SKIP" not in str(stopped.value)
    assert "SLIPSTREAM_PYTHON=FILE" in str(stopped.value)


def as_root_with_apt(monkeypatch, answers):
    """Run as root where apt-get only writes down its commands; ``answers`` are what is missing before and after."""
    commands: list[tuple[str, ...]] = []
    replies = iter(answers)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(system_packages.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(system_packages, "missing", lambda needs: next(replies))
    monkeypatch.setattr(
        system_packages, "run_logged", lambda what, command, log, environment, on_line: commands.append(command)
    )
    return commands


def test_root_gets_what_is_missing_and_nothing_else(monkeypatch, on_linux):
    commands = as_root_with_apt(monkeypatch, [(CURSOR,), ()])
    assert system_packages.ensure((GCC, CURSOR), None, lambda line: None) == "installed 1 package"
    assert [command[:2] for command in commands] == [
        ("apt-get", "update"),
        ("dpkg", "--configure"),
        ("apt-get", "install"),
    ]
    assert commands[-1][-1] == "libxcb-cursor0"
    assert "gcc" not in commands[-1]
    as_root_with_apt(monkeypatch, [(CURSOR,), (CURSOR,)])
    with pytest.raises(SetupError, match=r"libxcb-cursor\.so\.0 cannot be used"):
        system_packages.ensure((CURSOR,), None, lambda line: None)


XVFB = Need("check", "Xvfb", "xvfb")


def test_the_checks_get_their_programs_where_apt_can_bring_them(monkeypatch, on_linux):
    commands = as_root_with_apt(monkeypatch, [(XVFB,), ()])
    assert ensure_checks(ROOT, None, lambda line: None) == ""
    assert commands[-1][-1] == "xvfb"
    assert ensure_checks(ROOT, None, lambda line: None) == ""
    assert len(commands) == 3


def test_the_checks_do_without_programs_that_cannot_come(monkeypatch, on_linux):
    def fail(*_):
        raise CommandFailed("apt-get update", 100, ())

    commands = as_root_with_apt(monkeypatch, [(XVFB,), (XVFB,)])
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "xvfb are left out" in ensure_checks(ROOT, None, lambda line: None)
    assert commands == []
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(system_packages, "run_logged", fail)
    assert "xvfb are left out" in ensure_checks(ROOT, None, lambda line: None)
