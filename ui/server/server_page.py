"""The server page: how other programs use this server, what it does, and other machines."""

from __future__ import annotations

from functools import cached_property
from typing import cast

from PySide6.QtGui import QHideEvent, QShowEvent

from ui.client.api import Api
from ui.client.live_events import LiveEvents
from ui.client.server_watch import ServerWatch
from ui.language import tr
from ui.server.activity_view import ActivityView
from ui.server.connect_view import ConnectView
from ui.server.endpoint import Endpoint
from ui.server.machines_view import MachinesView
from ui.widgets.page_layout import TabPage

CONNECT, ACTIVITY, MACHINES = tr("Connect"), tr("Activity"), tr("Other machines")


class ServerPage(TabPage):
    """Three views. Follows the server only while it is seen."""

    def __init__(self, api: Api, endpoint: Endpoint, watch: ServerWatch) -> None:
        super().__init__(
            {CONNECT: lambda: self.connect_view, ACTIVITY: lambda: self.activity, MACHINES: lambda: self.machines}
        )
        self._api, self._endpoint, self._watch = api, endpoint, watch
        self._events = LiveEvents(api, watch, self)
        api.connected.connect(self._look)

    @cached_property
    def connect_view(self) -> ConnectView:
        """How other programs use the server."""
        return self.placed(CONNECT, ConnectView(self._api, self._endpoint, self._watch))

    @cached_property
    def activity(self) -> ActivityView:
        """What the server does."""
        view = ActivityView(self._api, self._watch)
        self._events.came.connect(view.show_state)
        return self.placed(ACTIVITY, view)

    @cached_property
    def machines(self) -> MachinesView:
        """Other servers and workers."""
        view = MachinesView(self._api, self._watch)
        self._events.came.connect(view.show_state)
        return self.placed(MACHINES, view)

    def show_tab(self, name: str) -> None:
        """Show one of the views, and follow what it needs."""
        super().show_tab(name)
        self._look()

    def showEvent(self, event: QShowEvent) -> None:
        """Follow the server."""
        super().showEvent(event)
        self._look()

    def hideEvent(self, event: QHideEvent) -> None:
        """Let it be."""
        super().hideEvent(event)
        self._events.stop()

    def _look(self) -> None:
        if not self.isVisible() or not self._api.is_connected:
            return
        shown = cast("ConnectView | ActivityView | MachinesView", self.shown)
        if isinstance(shown, ConnectView):
            self._events.stop()
        else:
            self._events.start()
        shown.look()
