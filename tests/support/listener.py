"""What a screen reader is told, taken where Qt hands it to the system."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import PySide6
import shiboken6
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QAccessibleEvent

_INSTALL = "_ZN11QAccessible20installUpdateHandlerEPFvP16QAccessibleEventE"  # PySide has no name for it
_Handler = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@contextmanager
def listening() -> Iterator[list[str]]:
    """Yield the list of what is announced from now on, and of the rows of lists to which the keyboard goes."""
    said: list[str] = []

    @_Handler
    def handle(address: int) -> None:
        event = shiboken6.wrapInstance(address, QAccessibleEvent)
        if event.type() == QAccessible.Event.Announcement:
            said.append(shiboken6.wrapInstance(address, QAccessibleAnnouncementEvent).message())
        elif event.type() == QAccessible.Event.Focus and event.child() >= 0:
            rows = QAccessible.queryAccessibleInterface(event.object())
            said.append(rows.child(event.child()).text(QAccessible.Text.Name))

    library = next((Path(PySide6.__file__).parent / "Qt" / "lib").glob("libQt6Gui.so*"))
    install = getattr(ctypes.CDLL(str(library)), _INSTALL)
    install.restype, install.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    QAccessible.setActive(True)
    before = install(handle)
    try:
        yield said
    finally:
        install(before)
        QAccessible.setActive(False)
