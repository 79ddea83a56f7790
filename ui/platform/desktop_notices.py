"""Notices of the desktop, and the icon in its tray."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, QSocketNotifier, QTimer, Signal
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QMenu, QSystemTrayIcon

from ui.language import tr
from ui.platform.display import use_activation_token

SHOWN_MS = 10_000
# Of the Desktop Notifications specification, specifications.freedesktop.org.
SERVICE, PATH = "org.freedesktop.Notifications", "/org/freedesktop/Notifications"
# Of the Status Notifier Items, www.freedesktop.org/wiki/Specifications/StatusNotifierItem, as all desktops name it.
WATCHER, WATCHER_PATH = "org.kde.StatusNotifierWatcher", "/StatusNotifierWatcher"
BY_CLICK = "default"  # the action that a click on the notice itself stands for
EXPIRED = 1  # why a notice was closed: desktops list it still, and it can be clicked there
BUS_SECONDS = 1.0  # a bus answers at once; one that does not must not hold the window
AS_USUAL = -1  # in place of milliseconds: for as long as this desktop shows its notices
Act = Callable[[], object]


class DesktopNotices(QObject):
    """Tells something while the window is not looked at: by the desktop's own service, else by the tray's icon."""

    opened = Signal()  # the icon was clicked
    told = Signal(str, str)  # a title and a sentence; for tests and whoever else wants to know

    def __init__(self, icon: QIcon, menu: QMenu, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._icon, self._menu = icon, menu
        self._tray: QSystemTrayIcon | None = None
        self._clicked: Act = self.opened.emit  # what a click on the tray's notice does
        self._service = _NoticeService(self)
        self._stays = False
        self._leave = QTimer(self, singleShot=True, interval=SHOWN_MS)
        self._leave.timeout.connect(lambda: self.show_icon(self._stays))

    def show_icon(self, is_shown: bool) -> None:
        """Show the icon in the tray, or take it away."""
        self._stays = is_shown
        if is_shown and has_tray():
            self._placed()
        elif self._tray is not None:
            self._tray.hide()

    def _placed(self) -> QSystemTrayIcon:
        """Return the icon in the tray. One that was made before there was a tray would never come into it."""
        if self._tray is None or not self._tray.isVisible():
            if self._tray is not None:
                self._tray.deleteLater()
            self._tray = QSystemTrayIcon(self._icon, self)
            self._tray.setToolTip("Slipstream")
            self._tray.setContextMenu(self._menu)
            self._tray.activated.connect(self._on_activated)
            self._tray.messageClicked.connect(self._on_message_clicked)
            self._tray.show()
        return self._tray

    def tell(self, title: str, sentence: str, clicked: Act | None = None) -> None:
        """Tell something, where this desktop has a way to. ``clicked`` is what a click on it does, else ``opened``."""
        self.told.emit(title, sentence)
        act = clicked or self.opened.emit
        self._service.tell(title, sentence, act, lambda: self._tell_by_tray(title, sentence, act))

    def close(self) -> None:
        """Take the icon away."""
        self._leave.stop()
        self._service.leave()
        if self._tray is not None:
            self._tray.hide()

    def _tell_by_tray(self, title: str, sentence: str, clicked: Act) -> None:
        if has_tray():
            self._clicked = clicked
            self._placed().showMessage(title, sentence, self._icon, SHOWN_MS)
            self._leave.start()

    def _on_message_clicked(self) -> None:
        self._clicked()

    def _on_activated(self, how: QSystemTrayIcon.ActivationReason) -> None:
        if how != QSystemTrayIcon.ActivationReason.Context:
            self.opened.emit()


class _NoticeService(QObject):
    """The program of a desktop that shows notices. Qt's tray asks it too, but is never told of a click."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._bus: Any = None  # jeepney has no types
        self._readable: QSocketNotifier | None = None
        self._asked: dict[int, tuple[Act, Act]] = {}  # by number of the call: what a click does; what to do instead
        self._shown: dict[int, Act] = {}  # by number of the notice

    def tell(self, title: str, sentence: str, clicked: Act, otherwise: Act) -> None:
        """Show a notice; ``otherwise`` is done where nobody shows it."""
        try:
            from jeepney import DBusAddress, new_method_call

            if self._bus is None:
                self._connect()
            words = title, html.escape(sentence, quote=False)  # the second may have marks, as <b>
            actions, hints = [BY_CLICK, tr("Open")], {"desktop-entry": ("s", "slipstream")}
            notice = ("Slipstream", 0, "slipstream", *words, actions, hints, AS_USUAL)
            call = new_method_call(DBusAddress(PATH, SERVICE, SERVICE), "Notify", "susssasa{sv}i", notice)
            number = next(self._bus.outgoing_serial)
            self._asked[number] = (clicked, otherwise)
            self._bus.send(call, serial=number)
        except (ImportError, OSError, KeyError, ValueError, RuntimeError):  # there is no bus that can be spoken to
            self.leave()
            otherwise()

    def leave(self) -> None:
        """Forget the notices, and the bus."""
        if self._readable is not None:
            self._readable.setEnabled(False)
            self._readable.deleteLater()
        if self._bus is not None:
            self._bus.close()
        self._bus = self._readable = None
        self._asked, self._shown = {}, {}

    def _connect(self) -> None:
        from jeepney import MatchRule, message_bus
        from jeepney.io.blocking import Proxy, open_dbus_connection

        self._bus = open_dbus_connection("SESSION")
        Proxy(message_bus, self._bus, timeout=BUS_SECONDS).AddMatch(
            MatchRule(type="signal", interface=SERVICE, path=PATH)
        )
        self._readable = QSocketNotifier(self._bus.sock.fileno(), QSocketNotifier.Type.Read, self)
        self._readable.activated.connect(lambda *readable: self._on_readable())

    def _on_readable(self) -> None:
        try:
            while self._bus is not None:
                self._take(self._bus.receive(timeout=0))
        except TimeoutError:
            pass  # that was all
        except OSError:
            self.leave()

    def _take(self, message: Any) -> None:
        from jeepney import HeaderFields, MessageType

        fields, kind = message.header.fields, message.header.message_type
        clicked, otherwise = self._asked.pop(fields.get(HeaderFields.reply_serial), (None, None))
        if clicked is not None and kind is MessageType.method_return:
            self._shown[message.body[0]] = clicked
        elif otherwise is not None:
            otherwise()
        elif fields.get(HeaderFields.member) == "ActivationToken":  # comes before the click
            if message.body[0] in self._shown:
                use_activation_token(message.body[1])
        elif fields.get(HeaderFields.member) == "ActionInvoked":
            self._shown.pop(message.body[0], lambda: None)()
        elif fields.get(HeaderFields.member) == "NotificationClosed" and message.body[1] != EXPIRED:
            self._shown.pop(message.body[0], None)


def has_tray() -> bool:
    """Return whether this desktop has a tray that shows icons."""
    return QSystemTrayIcon.isSystemTrayAvailable() and not _has_only_watcher()


def _has_only_watcher() -> bool:
    """Return whether a program collects icons and none shows them. Qt looks for the first only."""
    try:
        from jeepney import DBusAddress, MessageFlag, MessageType, Properties
        from jeepney.io.blocking import open_dbus_connection

        ask = Properties(DBusAddress(WATCHER_PATH, WATCHER, WATCHER)).get("IsStatusNotifierHostRegistered")
        ask.header.flags = MessageFlag.no_auto_start
        with open_dbus_connection("SESSION") as bus:
            reply = bus.send_and_get_reply(ask, timeout=BUS_SECONDS)
    except (ImportError, OSError, KeyError, ValueError, RuntimeError):  # as Qt says, then
        return False
    return reply.header.message_type is MessageType.method_return and reply.body == (("b", False),)
