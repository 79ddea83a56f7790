"""Nobody looks at the window: what it tells, and what stays of it."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication, QSystemTrayIcon

from app.desktop.desktop_app import _Signals
from models.download.progress import DownloadPhase, DownloadProgress
from models.library.values import Download
from ui.chat.storage.ids import now_ms
from ui.client.api import Api
from ui.client.chat_records import Chat, Message, Role, Status
from ui.theme.appearance import Appearance
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
    made.clock = clock  # type: ignore[attr-defined]
    window.hide()  # so it is not what is looked at
    return made


def told(background: Background) -> list[str]:
    titles: list[str] = []
    background.notices.told.connect(lambda title, sentence: titles.append(title))
    return titles


def test_the_end_of_a_long_reply_is_told_and_that_of_a_short_one_is_not(
    window: MainWindow, background: Background
) -> None:
    titles = told(background)
    for seconds in (LONG_SECONDS - 1, LONG_SECONDS + 1):
        background.on_running(frozenset({1, 2}))
        background.clock.now += seconds  # type: ignore[attr-defined]
        background.on_running(frozenset({2}))
        background.on_running(frozenset())
    assert titles == ["The reply is there"] * 2, "once for each chat's, of the second round"
    window.kept.keep("notices", False)
    background.on_running(frozenset({1}))
    background.clock.now += 2 * LONG_SECONDS  # type: ignore[attr-defined]
    background.on_running(frozenset())
    assert len(titles) == 2


def test_the_end_of_a_download_is_told_once(background: Background) -> None:
    titles = told(background)

    def at(phase: DownloadPhase) -> tuple[Download, ...]:
        return (Download(1, "acme/fox-GGUF", "Q8_0", DownloadProgress(phase, 1, 1, 0, None)),)

    phases = (DownloadPhase.DONE, DownloadPhase.DOWNLOADING, DownloadPhase.DONE, DownloadPhase.DONE)
    for phase in (*phases, DownloadPhase.DOWNLOADING, DownloadPhase.FAILED):
        background.on_downloads(at(phase))
    assert titles == ["The download is complete", "The download stopped"]


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


def test_without_a_tray_closing_ends_the_app(qtbot, window: MainWindow) -> None:
    window.kept.keep("keepsRunning", True)
    with qtbot.waitSignal(window.closed):
        window.close()


def test_page_chat_and_place_come_back(
    qtbot, window: MainWindow, appearance: Appearance, library: Api, tmp_path: Path
) -> None:
    now = now_ms()
    window.archive.save_chat(Chat(7, "A fox", now, now))
    window.archive.save_message(Message(8, 7, None, Role.USER, "Hello", now, Status.DONE))
    window.desk.open(7)
    qtbot.waitUntil(lambda: window.desk.current.chat.id == 7)
    edge = window.history.parentWidget().handle(1)  # type: ignore[union-attr]
    qtbot.mousePress(edge, Qt.MouseButton.LeftButton, pos=QPoint(0, 50))
    qtbot.mouseMove(edge, QPoint(40, 50))
    qtbot.mouseRelease(edge, Qt.MouseButton.LeftButton, pos=QPoint(0, 50))
    width = window.history.width()
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
    again.toggle_sidebar()
    qtbot.waitUntil(lambda: again.history.width() == width)
    again.close()


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
