"""What the server does just now, ten times a second, for pages that show it while they are seen."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from models.formatting.json_values import fitting
from ui.client.api import Api, ServerState
from ui.client.library_link import LibraryCall
from ui.client.server_watch import ServerWatch

AGAIN_MS = 1_000


class LiveEvents(QObject):
    """Follows ``/slipstream/events`` between ``start`` and ``stop``, also when the server is another one meanwhile.

    The ``watch`` is told each state first, so it asks for none meanwhile.
    """

    came = Signal(object)  # dict: the state of the server, with its ``requests``

    def __init__(self, api: Api, watch: ServerWatch, parent: QObject) -> None:
        super().__init__(parent)
        self._api, self._watch = api, watch
        self._call: LibraryCall | None = None
        self._is_wanted = False
        self._again = QTimer(self, singleShot=True, interval=AGAIN_MS)
        self._again.timeout.connect(self._begin)
        api.connected.connect(self._begin)

    def start(self) -> None:
        """Follow from now on."""
        self._is_wanted = True
        self._begin()

    def stop(self) -> None:
        """Ask for nothing any more."""
        self._is_wanted = False
        self._again.stop()
        self._end()

    def _begin(self) -> None:
        self._end()
        if not self._is_wanted or not self._api.is_connected:
            return
        reply = self._api.open("GET", "/slipstream/events", {}, is_stream=True)
        self._call = LibraryCall(reply, None, is_stream=True, parent=self)
        self._call.part.connect(self._on_part)
        self._call.failed.connect(lambda trouble: self._on_end())
        self._call.done.connect(lambda value: self._on_end())

    def _on_part(self, found: Any) -> None:
        # A server that is being left still tells of itself: that must not bring it back.
        if isinstance(found, dict) and self._api.is_connected:
            self._watch.take(fitting(ServerState, found) or ServerState())
            self.came.emit(found)

    def _on_end(self) -> None:
        self._end()
        if self._is_wanted:
            self._again.start()

    def _end(self) -> None:
        call, self._call = self._call, None
        if call is not None:
            call.end()
