"""Qt without a screen; a fake server; warnings of Qt fail tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QDialog, QWidget
from pytestqt.qtbot import QtBot

os.environ["QT_QPA_PLATFORM"] = "offscreen"
os.environ.pop("DBUS_SESSION_BUS_ADDRESS", None)  # nobody is told what tests do
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from tests.support.fork_server import forked_library_command
from tools.stand_ins.fake_openai import FakeServer
from tools.stand_ins.library_server import KEY, LibraryServer
from ui.client.api import Api
from ui.theme.appearance import Appearance, ThemeChoice
from ui.theme.colours import use_colours
from ui.theme.tokens import LIGHT
from ui.window.main_window import MainWindow


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith("tests/ui/"):
            item.add_marker(pytest.mark.qt_log_level_fail("WARNING"))
            item.add_marker(pytest.mark.qt_log_ignore("This plugin does not support "))


PATIENCE_MS = 60_000


@pytest.fixture
def qtbot(qapp, request: pytest.FixtureRequest) -> QtBot:
    """One that waits for what comes in any case as long as other programs may keep the cores."""
    bot = QtBot(request)
    for name in ("waitUntil", "waitSignal", "waitSignals"):
        setattr(bot, name, partial(getattr(bot, name), timeout=PATIENCE_MS))
    return bot


@pytest.fixture
def server():
    fake = FakeServer()
    yield fake
    fake.stop()


@pytest.fixture
def api(qtbot, server: object):
    """A client of the test's fake server; a server of another kind is connected by its test."""
    made = Api()
    if isinstance(server, FakeServer):
        made.connect_to(server.url, None)
    yield made
    made.close()


@pytest.fixture
def lonely_api(qtbot):
    """A client that knows no server yet."""
    made = Api()
    yield made
    made.close()


@pytest.fixture
def library_server(request: pytest.FixtureRequest):
    """The library's routes and its real process, forked; with a parameter it is started as the app does."""
    made = LibraryServer(getattr(request, "param", forked_library_command))
    yield made
    made.close()


@pytest.fixture
def library(lonely_api: Api, request: pytest.FixtureRequest) -> Api:
    """Who is asked for the library: a real one in tests that name ``library_server``."""
    if "library_server" in request.fixturenames:
        lonely_api.connect_to(request.getfixturevalue("library_server").url, KEY)
    return lonely_api


@pytest.fixture
def appearance(qapp):
    """How the window looks."""
    made = Appearance(qapp, ThemeChoice.LIGHT)
    yield made
    made.deleteLater()


@pytest.fixture
def window(qtbot, appearance: Appearance, api: Api, library: Api, tmp_path: Path):
    """The whole window on an empty data folder."""
    made = MainWindow(api, appearance, tmp_path / "chats.db", tmp_path / "window.ini", library)
    qtbot.addWidget(made)
    made.show()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _nothing_is_left(qapp) -> Iterator[None]:
    """Delete the widgets of each test: a change of theme or of text size looks at every widget there is."""
    use_colours(LIGHT)
    yield
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


@pytest.fixture(autouse=True)
def _no_part_is_a_window(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail where a part is shown before it has its place: on a desktop that is a window, seen for a moment."""
    alone: list[str] = []
    set_visible = QWidget.setVisible

    def watched(widget: QWidget, is_visible: bool) -> None:
        if is_visible and widget.parent() is None and not isinstance(widget, QDialog):
            alone.append(f"{type(widget).__name__} in {type(widget).__module__}")
        set_visible(widget, is_visible)

    monkeypatch.setattr(QWidget, "setVisible", watched)
    yield
    assert not alone
