"""uvicorn with our start and end: says when it accepts connections, and lets running calls end with a sentence."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable
from http import HTTPStatus

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.server.http.errors import refuse

# Room for more than one read: how a read is split into heads and bodies is not known here.
MAX_HEAD = 1 << 20


class HttpProtocol(HttpToolsProtocol):
    """One connection. What is no HTTP, or a head without an end, is answered and closed."""

    _is_in_head = False
    _n_head = 0

    def data_received(self, data: bytes) -> None:
        """Read on; the parser keeps what it has of a head, so that one may not grow without end."""
        was_in_head = self._is_in_head
        super().data_received(data)
        if was_in_head and self._is_in_head:
            self._n_head += len(data)
            if self._n_head > MAX_HEAD:
                self._refuse(431, f"The request's headers may have {MAX_HEAD:,} bytes: send fewer.")

    def on_message_begin(self) -> None:
        """A head begins."""
        self._is_in_head, self._n_head = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head is over."""
        self._is_in_head = False
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Say that this is no request; what uvicorn says goes to the log."""
        self._refuse(400, "This is not a request in HTTP/1.1, or its address or headers are not valid.")

    def _refuse(self, status: int, message: str) -> None:
        if self.transport.is_closing():
            return
        body = refuse(status, message).encoded()
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode("ascii") + body)
        self.transport.close()


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
    """Serves on given sockets until ``stop``; ``on_started`` and ``on_stop`` run on the event loop."""

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

    def serve_until_stopped(self, listening: list[socket.socket]) -> None:
        """Block until a signal or ``stop``; calls that run then get an end."""
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(self._run(listening))

    async def _run(self, listening: list[socket.socket]) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(NotImplementedError):
                loop.add_signal_handler(number, self.stop)
        await self._serve(listening)

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
