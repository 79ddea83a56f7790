"""uvicorn with our start and end: says when it accepts connections, and lets running calls end with a sentence."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp

from app.server.http.http_protocol import HttpProtocol

GRACE_SECONDS = 3
# Longer than the pools of the usual clients keep a connection, so that it is never closed under a request.
KEEP_ALIVE_SECONDS = 75


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return what makes the event loop: uvloop's, which takes half the time per token, where it can be had."""
    try:
        import uvloop
    except ImportError:  # Windows
        return None
    return uvloop.new_event_loop


class HttpServer(uvicorn.Server):
    """Serves on a given socket until ``stop``; ``on_started`` and ``on_stop`` run on the event loop."""

    def __init__(
        self, application: ASGIApp, on_started: Callable[[HttpServer], None], on_stop: Callable[[], None]
    ) -> None:
        config = uvicorn.Config(
            application,
            http=HttpProtocol,
            loop="none",
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        super().__init__(config)
        self._on_started, self._on_stop = on_started, on_stop

    def serve_until_stopped(self, listening: socket.socket) -> None:
        """Block until a signal or ``stop``; calls that run then get an end."""
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(self._run(listening))

    async def _run(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(NotImplementedError):
                loop.add_signal_handler(number, self.stop)
        await self._serve([listening])

    def stop(self) -> None:
        """Leave; the second time, without waiting for anybody."""
        if self.should_exit:
            self.force_exit = True
            return
        self.should_exit = True
        self._on_stop()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept connections."""
        await super().startup(sockets)
        if self.started:
            self._on_started(self)
