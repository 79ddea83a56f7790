"""The server's library routes on a real socket, with the library's real process and without an engine."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import NoReturn, cast

import psutil

from app.client.server_process import library_command, library_environment
from app.server.application import create_application
from app.server.calls.model_pool import ModelPool
from app.server.http.http_server import HttpServer
from app.server.http.listening_socket import listen
from app.server.library.worker import LibraryWorker
from app.settings.server_settings import ServerSettings
from core.values.errors import EngineUnavailable

SECONDS = 60.0
KEY = "key-of-the-library"


async def _nothing() -> None: ...


class _NoEngine(SimpleNamespace):
    @property
    def main(self) -> NoReturn:
        raise EngineUnavailable("There is no engine here.")  # commands ask whether one is at work


class LibraryServer:
    """Starts when created. ``command`` starts the library's process, with ``environment`` added to the present one."""

    def __init__(
        self, command: Callable[[], list[str]] = library_command, *, api_key: str | None = KEY, **environment: str
    ) -> None:
        merged = {**library_environment(), **environment}
        settings = ServerSettings(port=0, api_keys=() if api_key is None else (api_key,))
        no_model = SimpleNamespace(path=None)
        pool = _NoEngine(attach=lambda: None, find=lambda name: no_model, without=lambda goes: contextlib.nullcontext())
        application = create_application(settings, cast(ModelPool, pool))
        application.state.renderer = SimpleNamespace(start=_nothing, close=_nothing)  # nobody chats here
        application.state.library = LibraryWorker(command, lambda: merged, (0.1, 0.2))
        self._listening = listen(settings.hosts[0], 0)
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._command = command
        self._others = {child.pid for child in psutil.Process().children()}
        self._loop = asyncio.new_event_loop()
        self._server = HttpServer(application, lambda server: None, application.state.library.close)
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    @property
    def process(self) -> psutil.Process:
        """The library's process."""
        children = (child for child in psutil.Process().children() if child.pid not in self._others)
        (found,) = (child for child in children if child.cmdline() == self._command())
        return found

    def close(self) -> None:
        """End the server and the library's process."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._server.stop)
        self._thread.join(SECONDS)
        self._listening.close()

    def _serve(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._server.serve([self._listening]))
