"""The desktop app as a process: what it does without a display, twice, and at its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.desktop import desktop_app as desktop
from app.environment.exit_codes import ExitCode
from app.environment.paths import starter_folder, usage_file
from app.settings.model_settings_store import UsageStore

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "app", "desktop"]


def environment(home: Path, **more: str) -> dict[str, str]:
    without = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    kept = {name: value for name, value in os.environ.items() if name not in without}
    return {**kept, "SLIPSTREAM_HOME": str(home), "SLIPSTREAM_TRACE_START": "1", **more}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="displays are named by variables on Linux only")
@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"DISPLAY": ":931"},
        {"WAYLAND_DISPLAY": "wayland-931"},
        {"WAYLAND_DISPLAY": "wayland-931", "DISPLAY": ":931"},
        {"QT_QPA_PLATFORM": "xcb"},
        {"QT_QPA_PLATFORM": "wayland", "DISPLAY": ":931"},
        {"QT_QPA_PLATFORM": "wayland;xcb"},
        {"QT_QPA_PLATFORM": "nonsense"},
    ],
    ids=lambda variables: " ".join(f"{name}={value}" for name, value in variables.items()) or "none",
)
def test_without_a_display_it_says_so_and_offers_what_works(tmp_path: Path, variables: dict[str, str]) -> None:
    done = subprocess.run(
        COMMAND,
        cwd=ROOT,
        env=environment(tmp_path, **variables),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == ExitCode.NO_DISPLAY
    assert any(word in done.stderr for word in ("isplay", "library", "QT_QPA_PLATFORM"))
    assert "./slipstream chat" in done.stderr
    assert "./slipstream serve" in done.stderr
    assert done.stdout == ""


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_a_second_start_raises_the_first_window_and_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    variables = environment(tmp_path, QT_QPA_PLATFORM="offscreen")
    first = subprocess.Popen(COMMAND, cwd=ROOT, env=variables, stderr=subprocess.PIPE, text=True)
    try:
        assert first.stderr is not None
        assert "window shown after" in first.stderr.readline()
        second = subprocess.run(COMMAND, cwd=ROOT, env=variables, capture_output=True, timeout=60, check=False)
        assert second.returncode == ExitCode.OK
        server = _server_of(tmp_path)
    finally:
        first.send_signal(signal.SIGINT)
        first.communicate(timeout=60)
    assert first.returncode == 0
    assert _is_gone(server)


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_a_restart_opens_the_model_that_was_used_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path))
    for seconds, name in enumerate(("ember-draft-q8_0", "ember-q8_0", "ember-draft-q8_0"), 1):
        UsageStore(usage_file(), lambda now=float(seconds): now).note(starter_folder() / f"{name}.gguf")
    app = subprocess.Popen(COMMAND, cwd=ROOT, env=environment(tmp_path, QT_QPA_PLATFORM="offscreen"))
    try:
        server = _server_of(tmp_path)
        listed = json.loads((tmp_path / "runtime" / "servers" / f"{server}.json").read_text())
    finally:
        app.send_signal(signal.SIGINT)
        app.wait(60)
    assert listed["model"] == "ember-draft-q8_0"


def test_ctrl_c_while_qt_is_imported_does_not_look_as_if_it_were_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def import_qt() -> str:
        signal.raise_signal(signal.SIGINT)
        return "Qt cannot be loaded."

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(desktop, "why_no_window", import_qt)
    assert desktop.run_desktop() == ExitCode.INTERRUPTED
    assert capsys.readouterr().err == ""
    assert signal.getsignal(signal.SIGINT) is before


def _server_of(home: Path) -> int:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for file in (home / "runtime" / "servers").glob("*.json"):
            return int(file.stem)
        time.sleep(0.05)
    raise AssertionError("the server was never there")


def _is_gone(pid: int) -> bool:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False
