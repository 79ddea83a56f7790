"""Notices of the desktop, and the icon in its tray."""

from __future__ import annotations

import shutil

from PySide6.QtCore import QObject, QProcess, QTimer, Signal
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QMenu, QSystemTrayIcon

SHOWN_MS = 10_000


class DesktopNotices(QObject):
    """Tells something while the window is not looked at, by the tray's icon or by the desktop's own program."""

    opened = Signal()  # a notice or the icon was clicked
    told = Signal(str, str)  # a title and a sentence; for tests and whoever else wants to know

    def __init__(self, icon: QIcon, menu: QMenu, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._tray = QSystemTrayIcon(icon, self)
        self._tray.setToolTip("Slipstream")
        self._tray.setContextMenu(menu)
        self._tray.activated.connect(self._on_activated)
        self._tray.messageClicked.connect(self.opened)
        self._stays = False
        self._leave = QTimer(self, singleShot=True, interval=SHOWN_MS)
        self._leave.timeout.connect(lambda: self._tray.setVisible(self._stays))

    def show_icon(self, is_shown: bool) -> None:
        """Show the icon in the tray, or take it away."""
        self._stays = is_shown
        self._tray.setVisible(is_shown and QSystemTrayIcon.isSystemTrayAvailable())

    def tell(self, title: str, sentence: str) -> None:
        """Tell something, where this desktop has a way to."""
        self.told.emit(title, sentence)
        program = shutil.which("notify-send")
        if QSystemTrayIcon.isSystemTrayAvailable():
            self._tray.show()
            self._tray.showMessage(title, sentence, self._tray.icon(), SHOWN_MS)
            self._leave.start()
        elif program is not None:
            QProcess.startDetached(program, ["--app-name=Slipstream", "--icon=slipstream", "--", title, sentence])

    def close(self) -> None:
        """Take the icon away."""
        self._leave.stop()
        self._tray.hide()

    def _on_activated(self, how: QSystemTrayIcon.ActivationReason) -> None:
        if how != QSystemTrayIcon.ActivationReason.Context:
            self.opened.emit()


def has_tray() -> bool:
    """Return whether this desktop has a tray."""
    return QSystemTrayIcon.isSystemTrayAvailable()
