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
from ui.widgets.page_layout import PageTabs

CONNECT, ACTIVITY, MACHINES = tr("Connect"), tr("Activity"), tr("Other machines")


class ServerPage(Dressed, QWidget):
    """Three views, one at a time. Follows the server only while it is seen."""

    def __init__(self, api: Api, endpoint: Endpoint, watch: ServerWatch, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("page")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._api = api
        self.connect_view = ConnectView(api, endpoint, watch)
        self.activity = ActivityView(api, watch)
        self.machines = MachinesView(api, watch)
        self._views = {CONNECT: self.connect_view, ACTIVITY: self.activity, MACHINES: self.machines}
        self.tabs = PageTabs(tuple(self._views), self)
        self.tabs.chosen.connect(self.show_tab)
        self.stack = QStackedWidget()
        for name, view in self._views.items():
            view.setAccessibleName(name)
            self.stack.addWidget(view)
        fill(QVBoxLayout(self), self.tabs, (self.stack, 1), spacing=0, margins=0)
        self._events = LiveEvents(api, self)
        self._events.came.connect(self._on_event)
        api.connected.connect(self._look)
        self.dress()

    def show_tab(self, name: str) -> None:
        """Show one of the views, and give it the keyboard."""
        self.tabs.tabs[name].setChecked(True)
        self.stack.setCurrentWidget(self._views[name])
        self.focus_view()
        self._look()

    def focus_view(self) -> None:
        """Give the keyboard to the view that is shown."""
        for name, view in self._views.items():
            if self.tabs.tabs[name].isChecked():
                view.focus_view()

    def dress(self) -> None:
        """Leave room for the names of the tabs."""
        self.tabs.fit()

    def showEvent(self, event: QShowEvent) -> None:
        """Follow the server."""
        super().showEvent(event)
        self._look()

    def hideEvent(self, event: QHideEvent) -> None:
        """Let it be."""
        super().hideEvent(event)
        self._events.stop()
        self.activity.leave()

    def _look(self) -> None:
        if not self.isVisible() or not self._api.is_connected:
            return
        shown = self.stack.currentWidget()
        self.activity.leave()
        if shown is self.connect_view:
            self._events.stop()
            self.connect_view.look()
            return
        self._events.start()
        if shown is self.activity:
            self.activity.look()
        else:
            self.machines.look()

    def _on_event(self, found: dict[str, Any]) -> None:
        self.activity.show_state(found)
        self.machines.show_state(found)
