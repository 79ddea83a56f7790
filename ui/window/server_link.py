"""Ties the private server to the window: where to send requests, and what to say when it is away."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal

from ui.client.api import Api
from ui.client.private_server import PrivateServer, last_line
from ui.client.server_watch import ServerWatch
from ui.language import tr
from ui.settings.engine_options import RESTARTING
from ui.widgets.banner import Banner

CANNOT_START = tr("The server that runs the models cannot start")
OWN_SETTINGS = tr("It may be what you chose for the engine in the settings: starting as recommended resets that.")


class ServerLink(QObject):
    """Follows a server through start, loss and return."""

    recommended_wanted = Signal()  # it does not start as it was set up

    def __init__(
        self,
        server: PrivateServer,
        key: str,
        api: Api,
        watch: ServerWatch,
        banner: Banner,
        parent: QObject | None = None,
        *,
        is_recommended: bool = True,
    ) -> None:
        super().__init__(parent)
        self._server, self._key, self._api, self._watch, self._banner = server, key, api, watch, banner
        self._is_recommended = is_recommended
        server.ready.connect(self._on_ready)
        server.lost.connect(self._on_lost)
        server.gave_up.connect(self._on_gave_up)

    def start(self) -> None:
        """Start the server, also after it gave up."""
        self._api.expect()
        self._watch.stop()
        self._banner.take_back(self)
        self._server.start()

    def restart(self, command: Sequence[str], *, is_recommended: bool) -> None:
        """Start the server anew with another command line; replies that are being written end."""
        self._is_recommended = is_recommended
        self._api.expect()
        self._watch.stop()
        self._banner.say(RESTARTING, "plain", can_close=False, by=self)
        self._server.restart(command)

    def _on_ready(self, url: str) -> None:
        self._api.connect_to(url, self._key)
        self._watch.start()
        self._banner.take_back(self)

    def _on_lost(self, how: str) -> None:
        self._api.expect()
        self._watch.stop()
        self._banner.say(
            tr("The server stopped and is starting again. What you send now waits for it."), can_close=False, by=self
        )

    def _on_gave_up(self, last_words: str) -> None:
        self._watch.stop(is_gone=True)
        reason = tr("{what}: “{words}”", what=CANNOT_START, words=last_line(last_words).removeprefix("Error: "))
        self._api.give_up(reason)
        way_out = (tr("Try again"), self.start)
        if not self._is_recommended:
            way_out = (tr("Start as recommended"), self.recommended_wanted.emit)
            reason = f"{reason} {OWN_SETTINGS}"
        self._banner.say(reason, "danger", way_out, can_close=False, by=self)
