"""The way back to the window's thread for work done on other threads."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Qt, Signal, Slot


class GuiThread(QObject):
    """Runs functions on the thread it was made on, later, in the order they were posted."""

    _posted = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.is_open = True  # until ``close``
        self._posted.connect(self._run, Qt.ConnectionType.QueuedConnection)

    def post(self, call: Callable[[], None]) -> None:
        """Run ``call`` soon; from any thread. After ``close`` it is dropped."""
        if self.is_open:
            self._posted.emit(call)

    def close(self) -> None:
        """Drop what is posted from now on, and what has not run yet."""
        self.is_open = False

    @Slot(object)
    def _run(self, call: Callable[[], None]) -> None:
        if self.is_open:
            call()
