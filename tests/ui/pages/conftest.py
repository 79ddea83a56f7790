"""A real server with the bundled model, one for all tests of a page, and a window that uses it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing

import pytest
from PySide6.QtWidgets import QMessageBox, QWidget

from app.client.server_process import ServerProcess
from tests.support.fork_server import ForkedServer
from ui.client.api import Api
from ui.window.main_window import MainWindow


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        return taken.getsockname()[1]


def agree(page: QWidget) -> None:
    """Press the button that goes on in the one question that is asked."""
    (box,) = page.window().findChildren(QMessageBox)
    next(button for button in box.buttons() if box.buttonRole(button) is QMessageBox.ButtonRole.AcceptRole).click()


@pytest.fixture(scope="module")
def real_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLIPSTREAM_HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv("PYTHON_KEYRING_BACKEND", "tests.support.file_keyring.FileKeyring")
        patch.setenv("KEYRING_FILE", str(tmp_path_factory.mktemp("keyring") / "keys.json"))
        running = ForkedServer(["--parallel", "2", "--no-draft", "--no-calibration"])
        running.wait_listening()
        yield running
        running.stop()


@pytest.fixture
def served(qtbot, window: MainWindow, lonely_api: Api, real_server: ServerProcess) -> MainWindow:
    """The window, its model loaded."""
    lonely_api.connect_to(real_server.wait_listening(), real_server.api_key)
    window.watch.start()
    qtbot.waitUntil(lambda: window.watch.state.phase == "ready")
    return window


@pytest.fixture
def api(lonely_api: Api) -> Api:
    """The window's own client is connected to the real server."""
    return lonely_api
