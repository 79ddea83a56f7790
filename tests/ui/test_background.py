"""Nobody looks at the window: what it tells, and what stays of it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication, QSystemTrayIcon

from app.desktop.desktop_app import TITLE_BAR, _fit, _Signals
from models.download.progress import DownloadPhase, DownloadProgress
from models.library.values import Download
from tools.stand_ins.library_server import LibraryServer
from ui.chat.storage.ids import now_ms
from ui.client.api import Api
from ui.client.chat_records import Chat, Message, Role, Status
from ui.client.tool_calls import CallStatus, ToolCall
from ui.platform.desktop_notices import BY_CLICK, PATH, SERVICE, WATCHER
from ui.platform.display import ACTIVATION_TOKEN
from ui.theme.appearance import Appearance
from ui.theme.icons import icon
from ui.theme.tokens import SIDEBAR
from ui.window.background import LONG_SECONDS, Background
from ui.window.main_window import MainWindow


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def tray(monkeypatch: pytest.MonkeyPatch) -> None:
    """A desktop with a tray: a window without a screen has none."""
    monkeypatch.setattr(QSystemTrayIcon, "isSystemTrayAvailable", staticmethod(lambda: True))


@pytest.fixture
def background(window: MainWindow) -> Background:
    clock = Clock()
    made = Background(window, window.kept, window.windowIcon(), clock)
    made.clock = clock
    window.hide()  # so it is not what is looked at
    return made


def told(background: Background) -> list[str]:
    titles: list[str] = []
    background.notices.told.connect(lambda title, sentence: titles.append(title))
    return titles


def answer(background: Background, seconds: float, status: Status = Status.DONE) -> None:
    chat, reply = Chat(1, "A fox", 0, 0), Message(2, 1, None, Role.ASSISTANT, "Once", 0, status)
    background.on_running(frozenset({1}))
    background.clock.now += seconds
    background.on_answered(chat, reply)
    background.on_running(frozenset())


def test_the_end_of_a_long_reply_is_told_and_that_of_a_short_one_is_not(
    window: MainWindow, background: Background
) -> None:
    notices: list[tuple[str, str]] = []
    background.notices.told.connect(lambda title, sentence: notices.append((title, sentence)))
    answer(background, LONG_SECONDS - 1)
    answer(background, LONG_SECONDS + 1)
    answer(background, LONG_SECONDS + 1, Status.STOPPED)  # by somebody, who knows it
    answer(background, LONG_SECONDS + 1, Status.FAILED)
    assert notices == [("The reply is there", "A fox"), ("The reply failed", "A fox")]
    window.kept.keep("notices", False)
    answer(background, 2 * LONG_SECONDS)
    assert len(notices) == 2


def test_a_call_that_waits_to_be_allowed_is_told_once(background: Background) -> None:
    titles = told(background)
    chat, call = Chat(1, "A fox", 0, 0), ToolCall("0-c0", "weight", "{}")
    reply = Message(2, 1, None, Role.ASSISTANT, "", 0, Status.STREAMING)
    for calls in ((replace(call, status=CallStatus.RUNNING),), (call,), (call,), (call, replace(call, id="1-c0"))):
        background.on_called(chat, replace(reply, calls=calls))
    assert titles == ["A tool waits for your permission"] * 2


class Desktop:
    """What shows notices, and what collects icons for the tray. ``shown`` has the notices by number."""

    has_host = False  # the icons are shown too

    def __init__(self, address: str) -> None:
        from jeepney import message_bus
        from jeepney.io.blocking import Proxy, open_dbus_connection

        self._bus: Any = open_dbus_connection(address)
        for name in (SERVICE, WATCHER):
            Proxy(message_bus, self._bus).RequestName(name)
        self.shown: dict[int, tuple[Any, ...]] = {}
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        from jeepney import HeaderFields, new_method_return

        with suppress(OSError, ValueError):  # until the bus ends
            while True:
                message = self._bus.receive()
                if message.header.fields.get(HeaderFields.member) == "Notify":
                    number = len(self.shown) + 1
                    self._bus.send(new_method_return(message, "u", (number,)))
                    self.shown[number] = message.body
                elif message.body == (WATCHER, "IsStatusNotifierHostRegistered"):
                    self._bus.send(new_method_return(message, "v", (("b", self.has_host),)))

    def close(self) -> None:
        """End what listens, once the bus has ended."""
        self._thread.join()
        self._bus.close()

    def click(self, number: int) -> None:
        """Click on a notice: desktops tell every program of it."""
        from jeepney import DBusAddress, new_signal

        for name, what in ("ActivationToken", f"token {number}"), ("ActionInvoked", BY_CLICK):
            self._bus.send(new_signal(DBusAddress(PATH, interface=SERVICE), name, "us", (number, what)))


@pytest.fixture
def desktop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desktop]:
    if shutil.which("dbus-daemon") is None:
        pytest.skip("needs dbus-daemon")
    command = ("dbus-daemon", "--session", "--nofork", "--print-address", f"--address=unix:path={tmp_path / 'bus'}")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as bus:
        assert bus.stdout is not None
        address = bus.stdout.readline().strip()
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
        made = Desktop(address)
        yield made
        bus.terminate()
    made.close()


def test_a_click_on_the_notice_of_a_reply_opens_its_chat(
    qtbot, desktop: Desktop, window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ui.window.background.LONG_SECONDS", 0.0)
    monkeypatch.setenv(ACTIVATION_TOKEN, "")
    window.desk.current.send("Is <b> bold?")
    chat = window.desk.current.chat.id
    window.desk.new_chat()
    window.show_page("jobs")
    window.hide()
    qtbot.waitUntil(lambda: len(desktop.shown) == 1)
    name, _, icon, title, sentence, actions, *_ = desktop.shown[1]
    assert (name, icon, title, sentence) == ("Slipstream", "slipstream", "The reply is there", "Is &lt;b&gt; bold?")
    assert actions == [BY_CLICK, "Open"]
    desktop.click(2)  # of another program
    desktop.click(1)
    qtbot.waitUntil(lambda: window.isVisible() and window.desk.current.chat.id == chat)
    assert window.page.isVisible()
    assert os.environ[ACTIVATION_TOKEN] == "token 1"  # with which Wayland lets the window come to the front


def test_the_end_of_a_download_is_told_once(background: Background) -> None:
    titles = told(background)

    def at(phase: DownloadPhase) -> tuple[Download, ...]:
        return (Download(1, "acme/fox-GGUF", "Q8_0", DownloadProgress(phase, 1, 1, 0, None)),)

    phases = (DownloadPhase.DONE, DownloadPhase.DOWNLOADING, DownloadPhase.DONE, DownloadPhase.DONE)
    for number, phase in enumerate((*phases, DownloadPhase.DOWNLOADING, DownloadPhase.FAILED)):
        background.on_downloads(at(phase), is_first=number == 0)
    assert titles == ["The download is complete", "The download stopped"]


def test_a_download_that_ends_before_it_is_seen_at_work_is_told(
    qtbot, window: MainWindow, library_server: LibraryServer
) -> None:
    titles = told(window.background)
    failed = DownloadProgress(DownloadPhase.FAILED, 0, 1, 0, None)
    window.hide()
    window.link.downloads_changed.emit((Download(1, "acme/fox-GGUF", "Q8_0", failed),))
    assert titles == [], "it had ended before"
    window.link.start()
    qtbot.waitUntil(lambda: window.link.knows_downloads)
    window.link.downloads_changed.emit((Download(2, "acme/fox-GGUF", "Q8_0", failed),))
    assert titles == ["The download stopped"]


@pytest.mark.qt_log_ignore("systemTrayWindowChanged", "This plugin does not support ")  # Qt asks a screen that has none
def test_closing_may_leave_the_app_running_and_says_so_once(qtbot, tray: None, window: MainWindow) -> None:
    titles = told(window.background)
    window.kept.keep("keepsRunning", True)
    for _ in range(2):
        with qtbot.assertNotEmitted(window.closed):
            assert not window.close()
        assert not window.isVisible()
        window.background.notices.opened.emit()
        assert window.isVisible()
    assert titles == ["Slipstream still runs"]
    with qtbot.waitSignal(window.closed):
        window.quit()


@pytest.mark.qt_log_ignore("systemTrayWindowChanged", "This plugin does not support ")
def test_the_icon_follows_a_tray_that_comes_later_and_a_closed_window_is_back_when_it_goes(
    qtbot, monkeypatch: pytest.MonkeyPatch, window: MainWindow
) -> None:
    has_tray = [False]
    monkeypatch.setattr(QSystemTrayIcon, "isSystemTrayAvailable", staticmethod(lambda: has_tray[0]))
    monkeypatch.setattr("ui.window.background.TRAY_MS", 10)
    background = Background(window, window.kept, icon("stream", "#000000", size=64))
    background.notices.opened.connect(window.bring_forward)

    def icons() -> list[bool]:
        return [one.isVisible() for one in background.notices.findChildren(QSystemTrayIcon)]

    window.kept.keep("keepsRunning", True)
    qtbot.wait(30)
    assert icons() == []
    has_tray[0] = True
    qtbot.waitUntil(lambda: icons() == [True])
    window.close()
    assert window.isHidden()
    has_tray[0] = False
    qtbot.waitUntil(window.isVisible)
    background.close()


def test_without_a_tray_closing_ends_the_app(qtbot, window: MainWindow) -> None:
    window.kept.keep("keepsRunning", True)
    with qtbot.waitSignal(window.closed):
        window.close()


@pytest.mark.qt_log_ignore("systemTrayWindowChanged", "This plugin does not support ")
def test_a_tray_whose_icons_nobody_shows_is_none(qtbot, desktop: Desktop, tray: None, window: MainWindow) -> None:
    desktop.has_host = True
    window.kept.keep("keepsRunning", True)
    assert not window.close()
    assert window.isHidden()
    window.bring_forward()
    desktop.has_host = False
    with qtbot.waitSignal(window.closed):
        window.close()


def test_page_chat_and_place_come_back(
    qtbot, window: MainWindow, appearance: Appearance, library: Api, tmp_path: Path
) -> None:
    now = now_ms()
    window.chats.archive.save_chat(Chat(7, "A fox", now, now))
    window.chats.archive.save_message(Message(8, 7, None, Role.USER, "Hello", now, Status.DONE))
    window.desk.open(7)
    qtbot.waitUntil(lambda: window.desk.current.chat.id == 7)
    edge = window.chats.history.parentWidget().handle(1)
    qtbot.mousePress(edge, Qt.MouseButton.LeftButton, pos=QPoint(0, 50))
    qtbot.mouseMove(edge, QPoint(40, 50))
    qtbot.mouseRelease(edge, Qt.MouseButton.LeftButton, pos=QPoint(0, 50))
    width = window.chats.history.width()
    assert SIDEBAR < width < SIDEBAR + 50
    window.show_page("settings")
    window.resize(700, 500)
    window.close()
    again = MainWindow(Api(), appearance, tmp_path / "chats.db", tmp_path / "window.ini", library)
    qtbot.addWidget(again)
    again.show()
    qtbot.waitUntil(
        lambda: again.desk.current.chat.id == 7 and again.settings is not None and again.settings.isVisible()
    )
    assert (again.width(), again.height()) == (700, 500)
    again.show_page("chat")
    again.chats.toggle_list()
    qtbot.waitUntil(lambda: again.chats.history.width() == width)
    again.close()


def test_a_narrow_window_leaves_the_list_of_chats_its_width(
    qtbot, window: MainWindow, appearance: Appearance, library: Api, tmp_path: Path
) -> None:
    window.resize(1180, 700)
    qtbot.waitUntil(lambda: window.chats.history.width() == SIDEBAR)
    window.resize(700, 500)
    qtbot.waitUntil(window.chats.history.isHidden)
    QApplication.processEvents()
    window.close()
    again = MainWindow(Api(), appearance, tmp_path / "chats.db", tmp_path / "window.ini", library)
    qtbot.addWidget(again)
    again.show()
    again.resize(1180, 700)
    qtbot.waitUntil(lambda: again.chats.history.isVisible() and again.chats.history.width() == SIDEBAR)
    again.close()


def test_a_window_that_is_larger_than_its_screen_is_seen_whole(window: MainWindow) -> None:
    room = window.screen().availableSize()
    window.resize(room.width() + 300, room.height())
    _fit(window)
    assert (window.width(), window.height()) == (room.width(), room.height() - TITLE_BAR)
    window.resize(600, 500)
    _fit(window)
    assert (window.width(), window.height()) == (600, 500)


@pytest.mark.parametrize(("page", "chat"), [("nowhere", "999"), ("", "-1"), ("settings", "x")])
def test_a_place_that_is_gone_is_the_usual_one(
    qtbot, appearance: Appearance, library: Api, tmp_path: Path, window: MainWindow, page: str, chat: str
) -> None:
    for name, value in (("page", page), ("chat", chat)):
        window.kept.keep(name, value)
    again = MainWindow(Api(), appearance, tmp_path / "other.db", tmp_path / "window.ini", library)
    qtbot.addWidget(again)
    assert again.desk.current.is_new
    again.close()


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_a_signal_waits_until_what_it_interrupts_has_left_its_locks(qtbot, qapp: QApplication) -> None:
    lock, ended = threading.Lock(), list[bool]()

    def end() -> None:
        ended.append(lock.acquire(timeout=5))

    with _Signals(qapp, end):
        with lock:
            signal.raise_signal(signal.SIGINT)
        qtbot.waitUntil(lambda: ended == [True])
