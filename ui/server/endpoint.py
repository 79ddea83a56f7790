"""The port by which other programs reach the window's server: what the user wants, kept, and what the server says."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from PySide6.QtCore import QObject, Signal

from ui.client.api import Api
from ui.settings.window_settings import WindowSettings

PORT = 8642  # the one that `serve` has
PORT_CODES = ("port_taken", "port_forbidden")  # of the server's errors that another port mends


@dataclass(frozen=True, slots=True)
class EndpointState:
    """Whether other programs may use the server; ``urls`` are the addresses here and, with ``is_lan``, outside.

    ``origins`` are those of web pages that may use it from a browser. Where it is shut against the user's wish,
    ``problem`` says why; another port helps where ``needs_port`` is true, and ``free_port`` is one that can be had.
    """

    is_open: bool = False
    is_lan: bool = False
    port: int = PORT
    urls: tuple[str, ...] = ()
    key: str = ""
    origins: tuple[str, ...] = ()
    problem: str = ""
    needs_port: bool = False
    free_port: int | None = None

    @classmethod
    def from_object(cls, found: dict[str, Any]) -> EndpointState:
        """Read the server's object."""
        return cls(
            bool(found.get("open")),
            bool(found.get("lan")),
            int(found.get("port") or PORT),
            tuple(str(url) for url in found.get("urls") or ()),
            str(found.get("key") or ""),
            tuple(str(origin) for origin in found.get("origins") or ()),
        )


class Endpoint(QObject):
    """Keeps the port as the user wants it, also with the next server and at the next start of the window."""

    changed = Signal(object)  # EndpointState

    def __init__(self, api: Api, kept: WindowSettings, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._api, self.kept = api, kept
        is_wanted, is_lan = (kept.is_on(name, usually=False) for name in ("endpoint", "endpointLan"))
        port = str(kept.value("endpointPort"))
        origins = tuple(str(kept.value("endpointOrigins") or "").split())
        self._wanted = EndpointState(is_wanted, is_lan, int(port) if port.isdigit() else PORT, origins=origins)
        self.state = replace(self._wanted, is_open=False)
        self._error: dict[str, Any] = {}
        api.connected.connect(self._on_connected)

    @property
    def is_awaited(self) -> bool:
        """Whether it opens as soon as the server has started."""
        return self._wanted.is_open and not (self.state.is_open or self.state.problem)

    def change(
        self, *, is_open: bool, is_lan: bool, port: int, origins: tuple[str, ...], new_key: bool = False
    ) -> None:
        """Open or shut the port, now and at the next start."""
        self._wanted = EndpointState(is_open, is_lan, port, origins=origins)
        self.kept.keep("endpoint", is_open)
        self.kept.keep("endpointLan", is_lan)
        self.kept.keep("endpointPort", port)
        self.kept.keep("endpointOrigins", " ".join(origins))
        self._tell(new_key)

    def try_again(self) -> None:
        """Ask once more for what could not be done."""
        self._tell()

    def _on_connected(self) -> None:
        if self._wanted.is_open:
            self._tell()

    def _tell(self, new_key: bool = False) -> None:
        wanted = self._wanted
        if not (self._api.is_connected or self._api.no_hope or new_key):  # the next server begins with what is wanted
            self.state = replace(wanted, is_open=False)
            self.changed.emit(self.state)
            return
        body = {"open": wanted.is_open, "lan": wanted.is_lan, "port": wanted.port, "origins": list(wanted.origins)}
        body["new_key"] = new_key
        self._error = {}
        self._api.ask("POST", "/slipstream/endpoint", body, self._on_answer, self._on_failure, self._on_error)

    def _on_answer(self, found: dict[str, Any]) -> None:
        self.state = EndpointState.from_object(found)
        self.changed.emit(self.state)

    def _on_error(self, error: dict[str, Any]) -> None:
        self._error = error

    def _on_failure(self, sentence: str) -> None:
        # What is kept stays: the port may be free at the next start.
        free = self._error.get("free_port")
        self.state = replace(
            self._wanted,
            is_open=False,
            problem=sentence,
            needs_port=self._error.get("code") in PORT_CODES,
            free_port=free if isinstance(free, int) else None,
        )
        self.changed.emit(self.state)
