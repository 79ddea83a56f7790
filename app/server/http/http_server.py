"""uvicorn with our start and end: says when it accepts connections, and lets running calls end with a sentence."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

import httptools
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from app.server.http.errors import refuse
from app.server.http.sse import DIRECTLY
from app.server.http.web_socket import handshake, refusal

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application

# Room for more than one read: how a read is split into heads and bodies is not known here.
MAX_HEAD = 1 << 20


# A client on a bad line sends a head within seconds. One that takes longer only keeps a connection from others.
HEAD_SECONDS = 30.0
# Seconds in which a client may close a websocket that was refused, before it is cut off.
_PARTING_SECONDS = 1.0
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
# Between two looks at whether a client that sends no more has closed the connection, and between two interim responses:
# a relay, whose own client has left, sees that by the second one.
_RESET_SECONDS, _CONTINUE_SECONDS = 0.05, 1.0
# Requests of one connection that are read while another is answered.
_MOST_WAITING = 8
# A client that reads nothing of its answer for so long has gone.
READ_SECONDS = 120.0
MOST_CONNECTIONS = 4_096
# Files that are no connections: models, databases, pipes to other processes.
_OTHER_FILES = 256


def allow_many_files() -> int:
    """Let this process have as many open files as connections may need; return how many connections that allows."""
    try:
        import resource  # not on Windows, which has no such limit
    except ImportError:
        return MOST_CONNECTIONS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_CONNECTIONS + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_CONNECTIONS if allowed == resource.RLIM_INFINITY else max(allowed - _OTHER_FILES, allowed // 2)


class _Outgoing:
    """A connection on which what is written is sent once every call that the loop runs now has had its turn.

    A step of the engine has a piece for each stream. If each is sent as soon as it is made, the client wakes up for
    every single one, and takes a core from the engine each time.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._parts: list[bytes] = []
        self._n_held = 0  # bytes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send bytes soon; at once where they are so many that the connection may ask to wait for the client."""
        if not self._parts:
            self._loop.call_soon(self._send)
        self._parts.append(data)
        self._n_held += len(data)
        if self._n_held > HIGH_WATER_LIMIT:
            self._send()

    def close(self) -> None:
        """Close the connection once all is sent."""
        self._send()
        self._transport.close()

    def _send(self) -> None:
        parts, self._parts, self._n_held = self._parts, [], 0
        if parts:
            try:
                self._transport.write(b"".join(parts))
            except RuntimeError as error:  # uvloop, about a connection that was closed a moment ago
                if "the handler is closed" not in str(error):
                    raise


class HttpProtocol(HttpToolsProtocol):
    """One connection. What is no HTTP, or a head without an end, is answered and closed.

    Where there are too many connections, the oldest on which nothing is answered makes room.
    """

    most = MOST_CONNECTIONS  # connections
    head_seconds = HEAD_SECONDS
    read_seconds = READ_SECONDS
    _is_in_head = False
    _offers_upgrade = False
    _refusal: bytes | None = None  # of a websocket that was opened for it
    _n_head = 0
    _head_timer: asyncio.TimerHandle | None = None
    _read_timer: asyncio.TimerHandle | None = None
    _answering: RequestResponseCycle | None = None
    _reset_timer: asyncio.TimerHandle | None = None
    _continues_at = 0.0  # when the next interim response is due, on the loop's clock
    began = 0.0  # on the loop's clock

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn's
        """Let a client in, and another out where there are too many."""
        super().connection_made(cast(asyncio.Transport, _Outgoing(transport, self.loop)))
        self.began = self.loop.time()
        self._await_head()
        if isinstance(self.server_state, _ServerState) and self.server_state.is_leaving:
            self.transport.close()  # it came while the server was leaving, so nobody else closes it
        elif len(self.connections) > self.most:
            others = [one for one in self.connections if isinstance(one, HttpProtocol) and one is not self]
            oldest = min((one for one in others if one.is_idle), key=lambda one: one.began, default=None)
            if oldest is None:
                self._refuse(503, "The server has too many connections: try again in a moment.")
            else:
                oldest.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._forget_timer()
        self._stop_waiting()
        if self._reset_timer is not None:
            self._reset_timer.cancel()
        super().connection_lost(exc)
        # uvicorn tells the last request that has come, which waits for this one where a client sends several at once.
        if self._answering is not None and not self._answering.response_complete:
            self._answering.disconnected = True
            self._answering.message_event.set()

    def eof_received(self) -> bool:  # type: ignore[override]  # as asyncio's
        """The client sends no more: it has left, or it waits for the answer to what it has sent.

        Interim responses tell these apart: a connection that was closed is reset by one. So a client that closes its
        sending side behind a request is answered. Return whether the connection stays.
        """
        cycle = self._answering
        if (
            self.is_idle
            or cycle is not self.cycle
            or cycle.response_started
            or cycle.more_body
            or cycle.scope["http_version"] == "1.0"  # knows no interim responses
        ):
            self.transport.close()  # the loop closes the connection below it, and what is held would be lost
            return False
        cycle.keep_alive = False
        self._look_for_reset()
        return True

    def _look_for_reset(self) -> None:
        if self.is_idle or self.transport.is_closing():
            return
        connection = self.transport.get_extra_info("socket")
        if connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self.transport.abort()
            return
        now = self.loop.time()
        if now >= self._continues_at and not self.cycle.response_started:
            self.transport.write(_CONTINUE)
            self._continues_at = now + _CONTINUE_SECONDS
        self._reset_timer = self.loop.call_later(_RESET_SECONDS, self._look_for_reset)

    def pause_writing(self) -> None:
        """The client reads more slowly than the answer comes; one that reads nothing is cut off in the end."""
        super().pause_writing()
        self._stop_waiting()
        self._read_timer = self.loop.call_later(self.read_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """The client has read on."""
        super().resume_writing()
        self._stop_waiting()

    def _stop_waiting(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None

    @property
    def is_idle(self) -> bool:
        """Whether no request of this connection is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def _await_head(self) -> None:
        self._forget_timer()
        self._head_timer = self.loop.call_later(self.head_seconds, self._head_is_late)

    def _head_is_late(self) -> None:
        if not self.is_idle:
            return  # if the next request's head has begun, its time counts once this one is answered
        if self._is_in_head:
            self._refuse(408, f"The request's headers did not come within {self.head_seconds:.0f} seconds.")
        else:  # browsers open connections ahead: an answer to nothing would confuse them
            self.transport.close()

    def on_response_complete(self) -> None:
        """A request is answered: from now on the time of the next one's head counts."""
        super().on_response_complete()
        if self._is_in_head and not self.transport.is_closing():
            self._await_head()

    def _forget_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def data_received(self, data: bytes) -> None:
        """Read on; the parser keeps what it has of a head, so that one may not grow without end.

        Java's clients offer to go on in another protocol (``Upgrade: h2c``). It is not taken (RFC 9110, 7.8), but the
        parser stops there, so that the request is read anew without the offer.
        """
        if self._refusal is not None:
            if self._refusal:
                self.transport.write(self._refusal)
                self.loop.call_later(_PARTING_SECONDS, self.transport.close)
            self._refusal = b""
            return
        self._unset_keepalive_if_required()
        was_in_head = self._is_in_head
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            headers = dict(self.headers)
            if self._offers_upgrade and (said := refusal(self.url.decode("latin-1"), headers)) is not None:
                self._refusal = said
                self.transport.write(handshake(headers))
                self.loop.call_later(self.head_seconds, self.transport.close)
            elif self.parser.get_method() == b"GET" and b"sec-websocket-key" in headers:
                # At this status Codex asks by POST at once; at others it tries five times more before.
                message = "There are no websockets here: send requests by POST, and stream by server-sent events."
                self._refuse(426, message, upgrade_to="HTTP/1.1")
            elif self._offers_upgrade:
                self._begin_anew(data[offer.args[0] :])
        except httptools.HttpParserError as error:
            self.logger.warning("no request in HTTP/1.1: %s", error)
            self.send_400_response(str(error))
        if was_in_head and self._is_in_head:
            self._n_head += len(data)
            if self._n_head > MAX_HEAD:
                self._refuse(431, f"The request's headers may have {MAX_HEAD:,} bytes: send fewer.")

    def _begin_anew(self, rest: bytes) -> None:
        """Read the request again without its offer; ``rest`` stands behind its head."""
        version = self.parser.get_http_version().encode()
        line = b"%s %s HTTP/%s\r\n" % (self.parser.get_method(), self.url, version)
        head = b"".join(b"%s: %s\r\n" % field for field in self.headers if field[0] != b"upgrade")
        self.parser = httptools.HttpRequestParser(self)
        self.data_received(line + head + b"\r\n" + rest)

    def on_message_begin(self) -> None:
        """A head begins."""
        self._is_in_head, self._n_head = True, 0
        if self._head_timer is None:
            self._await_head()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head is over."""
        self._is_in_head = False
        self._forget_timer()
        self._offers_upgrade = self.parser.should_upgrade() and any(name == b"upgrade" for name, _ in self.headers)
        if not self._offers_upgrade:
            super().on_headers_complete()
            # uvicorn stops reading at a request that has to wait. Then nobody would see that the client leaves.
            if 0 < len(self.pipeline) <= _MOST_WAITING:
                self.flow.resume_reading()

    def on_message_complete(self) -> None:
        """The body is over; that of a request with an offer has not begun."""
        if not self._offers_upgrade:
            super().on_message_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        """Answer a request."""

        async def answer(scope: Any, receive: Any, send: Any) -> None:
            await app(cast(Any, {**scope, DIRECTLY: send}), receive, send)

        self._answering = cycle
        super()._start_asgi_task(cycle, answer)

    def send_400_response(self, msg: str) -> None:
        """Say that this is no request; what the parser says goes to the log."""
        self._refuse(400, "This is not a request in HTTP/1.1, or its address or headers are not valid.")

    def _refuse(self, status: int, message: str, upgrade_to: str = "") -> None:
        """Answer and close; a 426 has to name the protocol that is spoken here (RFC 9110, 15.5.22)."""
        if self.transport.is_closing():
            return
        connection = f"upgrade, close\r\nupgrade: {upgrade_to}" if upgrade_to else "close"
        body = refuse(status, message).encoded()
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: {connection}\r\n\r\n"
        )
        self.transport.write(head.encode("ascii") + body)
        self.transport.close()


GRACE_SECONDS = 3
# Longer than the pools of the usual clients keep a connection, so that it is never closed under a request.
KEEP_ALIVE_SECONDS = 75


class _ServerState(ServerState):
    """What the connections of a server share."""

    is_leaving = False


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
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
        HttpProtocol.most = min(allow_many_files(), MOST_CONNECTIONS)
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
        self.server_state = self._state = _ServerState()
        self._on_started, self._on_stop = on_started, on_stop
        self._more: asyncio.Server | None = None
        self._leaving = asyncio.Event()

    def serve_until_stopped(self, listening: list[socket.socket]) -> None:
        """Block until a signal or ``stop``; calls that run then get an end."""
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(self._run(listening))

    async def _run(self, listening: list[socket.socket]) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(NotImplementedError):
                loop.add_signal_handler(number, self.stop)
        await self._serve(listening)

    async def listen(self, more: socket.socket) -> None:
        """Take connections on one more socket; ``unlisten`` gives it up."""

        def protocol() -> asyncio.Protocol:
            return HttpProtocol(self.config, self.server_state, self.lifespan.state)

        self._more = await asyncio.get_running_loop().create_server(protocol, sock=more, backlog=self.config.backlog)
        self.servers.append(self._more)

    def unlisten(self) -> None:
        """Close the socket of ``listen`` and its connections; a reply that runs ends first."""
        more, self._more = self._more, None
        if more is None:
            return
        (address,) = (one.getsockname() for one in more.sockets)
        more.close()
        self.servers.remove(more)
        for connection in list(self.server_state.connections):
            name = connection.transport.get_extra_info("sockname")
            if name and name[1:2] == address[1:2]:
                connection.shutdown()

    def stop(self) -> None:
        """Leave; the second time, without waiting for anybody."""
        if self.should_exit:
            self.force_exit = True
            return
        self.should_exit = True
        self._leaving.set()
        self._on_stop()

    async def main_loop(self) -> None:
        """Wait for ``stop``; uvicorn looks for it ten times a second. Headers say the time to a second."""
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._leaving.wait(), 1.0)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept connections."""
        await super().startup(sockets)
        if self.started:
            self._on_started(self)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Send everybody away, also who comes in just now, and wait for them to leave."""
        self._state.is_leaving = True
        await super().shutdown(sockets)
        if self.force_exit:  # uvicorn then leaves this out, and the application would end with a traceback
            await self.lifespan.shutdown()
