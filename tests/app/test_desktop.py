"""The desktop app as a process: what it does without a display, twice, and at its end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import psutil
import pytest

from app.client.discovery import RunningServer, running_servers
from app.desktop import desktop_app as desktop
from app.environment.exit_codes import ExitCode
from app.environment.paths import config_folder, models_folder, usage_file
from app.settings.model_settings_store import UsageStore
from models.library.requests import PREFIX
from tests.support.commands import ran
from tests.support.fork_server import forked_library_command
from tests.support.library_client import LibraryClient
from tests.support.waiting import until
from tools.model_factory.gguf_factory import EMBER, EMBER_DRAFT
from tools.stand_ins.hub_server import Fault, HubServer
from tools.stand_ins.library_server import LibraryServer

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
    done = ran("desktop", env=environment(tmp_path, **variables))
    assert done.returncode == ExitCode.NO_DISPLAY
    assert any(word in done.stderr for word in ("isplay", "library", "QT_QPA_PLATFORM"))
    assert "./slipstream chat" in done.stderr
    assert "./slipstream serve" in done.stderr
    assert done.stdout == ""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_the_model_used_last_is_opened_a_second_start_raises_the_window_and_ctrl_c_leaves_nothing(home: Path) -> None:
    models_folder().mkdir(parents=True)
    fox = Path(shutil.copy(EMBER_DRAFT, models_folder() / "fox.gguf"))
    bear = Path(shutil.copy(EMBER, models_folder() / "bear.gguf"))
    for seconds, model in enumerate((fox, bear, fox), 1):
        UsageStore(usage_file(), lambda now=float(seconds): now).note(model)
    variables = environment(home, QT_QPA_PLATFORM="offscreen")
    first = subprocess.Popen(COMMAND, cwd=ROOT, env=variables, stderr=subprocess.PIPE, text=True)
    try:
        assert first.stderr is not None
        assert "window shown after" in first.stderr.readline()
        assert psutil.Process(first.pid).cwd() == str(Path.home().resolve()), "dialogs of files begin there"
        second = subprocess.run(COMMAND, cwd=ROOT, env=variables, capture_output=True, timeout=60, check=False)
        assert second.returncode == ExitCode.OK
        server = _server()
    finally:
        first.send_signal(signal.SIGINT)
        first.communicate(timeout=60)
    assert first.returncode == 0
    assert server.model == "fox"
    until(lambda: not psutil.pid_exists(server.pid))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_it_ends_in_order_also_when_it_has_just_begun(home: Path) -> None:
    kept = config_folder() / "window.ini"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text("[General]\npage=speed\n")  # which does more at the start than a chat
    variables = environment(home, QT_QPA_PLATFORM="offscreen", PYTHONFAULTHANDLER="1")
    app = subprocess.Popen(COMMAND, cwd=ROOT, env=variables, stderr=subprocess.PIPE, text=True)
    assert app.stderr is not None
    assert "window shown after" in app.stderr.readline()
    app.send_signal(signal.SIGTERM)
    said = app.communicate(timeout=60)[1]
    assert (app.returncode, said) == (0, "")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_a_download_goes_on_after_the_server_died_and_after_the_app_was_left(
    home: Path, monkeypatch: pytest.MonkeyPatch, hub_server: HubServer
) -> None:
    hub_server.add("acme/fox-GGUF", {"fox-Q8_0.gguf": EMBER_DRAFT.read_bytes()})
    hub_server.fault("fox-Q8_0.gguf", Fault(bytes_per_second=5e4))
    monkeypatch.setenv("HF_HOME", str(home / "hf-home"))
    app = subprocess.Popen(COMMAND, cwd=ROOT, env=environment(home, QT_QPA_PLATFORM="offscreen"))
    try:
        first = _server()
        with _library(first) as library:
            library.post("downloads", json={"repo_id": "acme/fox-GGUF", "wanted": "Q8_0"}).raise_for_status()
        until(lambda: _n_done(first) > 0)
        os.kill(first.pid, signal.SIGKILL)
        second = _server(after=first.pid)
        # The window asks for the library by itself.
        until(lambda: any("app.library_service" in one.cmdline() for one in psutil.Process(second.pid).children()))
        until(lambda: _n_done(second) > 0)
        processes = psutil.Process(app.pid).children(recursive=True)
    finally:
        app.send_signal(signal.SIGINT)
        app.wait(60)
    assert app.returncode == 0
    assert psutil.wait_procs(processes, 60)[1] == []
    hub_server.heal()
    library = LibraryClient(LibraryServer(forked_library_command))
    library.wait_for(lambda: [one.phase for one in library.downloads] == ["done"])
    library.close()


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


@pytest.mark.parametrize("module", ["QtNetwork", "QtSvg"])
def test_a_part_of_qt_that_cannot_be_loaded_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], module: str
) -> None:
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    monkeypatch.setitem(sys.modules, f"PySide6.{module}", None)
    assert desktop.run_desktop() == ExitCode.NO_DISPLAY
    said = capsys.readouterr().err
    assert f"Qt cannot be loaded: import of PySide6.{module}" in said
    assert "./slipstream chat" in said


def _server(*, after: int = 0) -> RunningServer:
    """Return the app's server once there is one, and not ``after``'s process."""
    until(lambda: [server.pid for server in running_servers()] not in ([], [after]))
    return running_servers()[0]


def _library(server: RunningServer) -> httpx.Client:
    headers = {"Authorization": f"Bearer {server.api_key}"}
    return httpx.Client(base_url=server.url + PREFIX, headers=headers, timeout=60, trust_env=False)


def _n_done(server: RunningServer) -> int:
    with _library(server) as library:
        return int(library.get("downloads").json()[0]["progress"]["n_done"])
