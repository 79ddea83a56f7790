"""The server page: how other programs use this server, what it does, and other machines."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from ui.client.api import Api
from ui.client.live_events import LiveEvents
from ui.client.server_watch import ServerWatch
from ui.language import tr
from ui.server.activity_view import ActivityView
from ui.server.connect_view import ConnectView
from ui.server.endpoint import Endpoint
from ui.server.machines_view import MachinesView
from ui.theme.colours import Dressed
from ui.theme.layouts import fill
from ui.widgets.page_layout import PageTabs, PrepareTimer

CONNECT, ACTIVITY, MACHINES = tr("Connect"), tr("Activity"), tr("Other machines")


class ServerPage(Dressed, QWidget):
    """Three views, one at a time. Follows the server only while it is seen.

    Each view is made when it is first wanted, or by ``prepare`` while nothing else happens.
    """

    def __init__(self, api: Api, endpoint: Endpoint, watch: ServerWatch) -> None:
        super().__init__()
        self.setObjectName("page")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._api, self._endpoint, self._watch = api, endpoint, watch
        self._connect: ConnectView | None = None
        self._activity: ActivityView | None = None
        self._machines: MachinesView | None = None
        self.tabs = PageTabs((CONNECT, ACTIVITY, MACHINES), self)
        self.tabs.chosen.connect(self.show_tab)
        self.stack = QStackedWidget()
        self._prepare = PrepareTimer(self, lambda: self.connect_view, lambda: self.activity, lambda: self.machines)
        fill(QVBoxLayout(self), self.tabs, (self.stack, 1), spacing=0, margins=0)
        self._events = LiveEvents(api, self)
        self._events.came.connect(self._on_event)
        api.connected.connect(self._look)
        self.dress()

    @property
    def connect_view(self) -> ConnectView:
        """How other programs use the server."""
        if self._connect is None:
            self._connect = ConnectView(self._api, self._endpoint, self._watch)
            self._place(CONNECT, self._connect)
        return self._connect

    @property
    def activity(self) -> ActivityView:
        """What the server does."""
        if self._activity is None:
            self._activity = ActivityView(self._api, self._watch)
            self._place(ACTIVITY, self._activity)
        return self._activity

    @property
    def machines(self) -> MachinesView:
        """Other servers and workers."""
        if self._machines is None:
            self._machines = MachinesView(self._api, self._watch)
            self._place(MACHINES, self._machines)
        return self._machines

    @property
    def _shown(self) -> ConnectView | ActivityView | MachinesView:
        tabs = self.tabs.tabs
        return (
            self.activity
            if tabs[ACTIVITY].isChecked()
            else (self.machines if tabs[MACHINES].isChecked() else self.connect_view)
        )

    def prepare(self) -> None:
        """Make the views one by one, each in a moment of its own."""
        self._prepare.start()

    def show_tab(self, name: str) -> None:
        """Show one of the views, and give it the keyboard."""
        self.tabs.tabs[name].setChecked(True)
        self.stack.setCurrentWidget(self._shown)
        self.focus_view()
        self._look()

    def focus_view(self) -> None:
        """Give the keyboard to the view that is shown."""
        self._shown.focus_view()

    def dress(self) -> None:
        """Leave room for the names of the tabs."""
        self.tabs.fit()

    def _place(self, name: str, view: ConnectView | ActivityView | MachinesView) -> None:
        view.setAccessibleName(name)
        self.stack.addWidget(view)

    def showEvent(self, event: QShowEvent) -> None:
        """Follow the server."""
        super().showEvent(event)
        self.stack.setCurrentWidget(self._shown)
        self._look()

    def hideEvent(self, event: QHideEvent) -> None:
        """Let it be."""
        super().hideEvent(event)
        self._events.stop()
        self._leave_activity()

    def _leave_activity(self) -> None:
        if self._activity is not None:
            self._activity.leave()

    def _look(self) -> None:
        if not self.isVisible() or not self._api.is_connected:
            return
        shown = self._shown
        self._leave_activity()
        if shown is self._connect:
            self._events.stop()
        else:
            self._events.start()
        shown.look()

    def _on_event(self, found: dict[str, Any]) -> None:
        for view in (self._activity, self._machines):
            if view is not None:
                view.show_state(found)
