"""What happens while nobody looks at the window: notices of what ended, and an app that runs on without it."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QMenu, QWidget

from models.download.progress import DownloadPhase
from models.library.values import Download
from ui.client.chat_records import Chat, Message, Status
from ui.client.tool_calls import CallStatus
from ui.language import tr
from ui.platform.desktop_notices import DesktopNotices, has_tray
from ui.settings.window_settings import WindowSettings

LONG_SECONDS = 10.0  # who waits less has hardly looked elsewhere
TRAY_MS = 5_000  # a panel that starts again is back by then
STAYS = (
    tr("Slipstream still runs"),
    tr("Other programs reach its models as before. Its icon in the tray opens it, or quits it."),
)


class Background(QObject):
    """Watches replies and downloads for a window, and keeps its icon in the tray where that is wanted."""

    chat_wanted = Signal(object)  # the id of a chat whose notice was clicked
    downloads_wanted = Signal()  # the same of a download's

    def __init__(
        self, window: QWidget, kept: WindowSettings, icon: QIcon, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(window)
        self._window, self._kept, self._clock = window, kept, clock
        self._began: dict[int, float] = {}
        self._asked = set[tuple[int, str]]()  # calls, by their replies, that were told of
        self._phases: dict[int, DownloadPhase] = {}
        self.menu = QMenu(window)
        self.notices = DesktopNotices(icon, self.menu, self)
        self._n_missed = 0  # how often in a row there was no tray
        self._look = QTimer(self, interval=TRAY_MS)
        self._look.timeout.connect(self._on_look)
        kept.changed.connect(self._on_setting)
        self._on_setting("keepsRunning")

    @property
    def keeps_running(self) -> bool:
        """Whether closing the window leaves the app running: only where its icon can be seen."""
        return self._kept.keeps_running and has_tray()

    def stay(self) -> None:
        """The window was closed: its icon is all that is seen of the app. Say once, ever, that it runs on."""
        self.notices.show_icon(True)
        if not self._kept.is_on("toldThatItStays", usually=False):
            self._kept.keep("toldThatItStays", True)
            self.notices.tell(*STAYS)

    def on_running(self, chats: frozenset[int]) -> None:
        """Take the chats in which a reply comes in."""
        now = self._clock()
        self._began = {chat: self._began.get(chat, now) for chat in chats}

    def on_answered(self, chat: Chat, reply: Message) -> None:
        """Tell of a reply that took long. Who stops one knows that it has ended."""
        now = self._clock()
        if now - self._began.get(chat.id, now) < LONG_SECONDS or reply.status is Status.STOPPED:
            return
        title = tr("The reply failed") if reply.status is Status.FAILED else tr("The reply is there")
        self._tell(title, chat.title, lambda: self.chat_wanted.emit(chat.id))

    def on_called(self, chat: Chat, reply: Message) -> None:
        """Tell of a call that waits to be allowed: until then the reply does not go on."""
        waiting = {(reply.id, call.id) for call in reply.calls if call.status is CallStatus.ASKED}
        if waiting - self._asked:
            self._tell(tr("A tool waits for your permission"), chat.title, lambda: self.chat_wanted.emit(chat.id))
        self._asked |= waiting

    def on_downloads(self, downloads: tuple[Download, ...], is_first: bool) -> None:
        """Take the list of downloads; tell of those that have ended since the last one.

        One may have ended before it was ever seen at work. ``is_first``: what has ended there is no news.
        """
        before, self._phases = self._phases, {one.number: one.phase for one in downloads}
        for one in downloads:
            if is_first or before.get(one.number) == one.phase:
                continue
            if one.phase is DownloadPhase.DONE:
                words = tr("{repo_id} can be used.", repo_id=one.repo_id)
                self._tell(tr("The download is complete"), words, self.downloads_wanted.emit)
            elif one.phase is DownloadPhase.FAILED:
                why = one.trouble.sentence if one.trouble is not None else tr("it can go on.")
                self._tell(tr("The download stopped"), f"{one.repo_id}: {why}", self.downloads_wanted.emit)

    def close(self) -> None:
        """Leave the tray."""
        self._look.stop()
        self.notices.close()

    def _tell(self, title: str, sentence: str, clicked: Callable[[], object]) -> None:
        is_looked_at = self._window.isVisible() and self._window.isActiveWindow()
        if self._kept.is_on("notices", usually=True) and not is_looked_at:
            self.notices.tell(title, sentence, clicked)

    def _on_setting(self, name: str) -> None:
        if name == "keepsRunning":
            self.notices.show_icon(self.keeps_running)
            self._look.start() if self._kept.keeps_running else self._look.stop()

    def _on_look(self) -> None:
        """Follow a tray that comes after the app, or goes: without it a window that was closed is shown again."""
        self._n_missed = 0 if has_tray() else self._n_missed + 1
        if not self._n_missed:
            self.notices.show_icon(True)
        elif self._n_missed > 1 and self._window.isHidden():
            self.notices.opened.emit()
